//go:build real

package main_test

import (
	"net"
	"os"
	"strings"
	"testing"

	"codemode-bridge/bridge/pgtest"
)

// realPrograms is the folder of the programs that are tried: the tree's, or what REAL_BIN
// names.
func realPrograms(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("REAL_BIN"); bin != "" {
		return bin
	}
	return programs(t)
}

// startPostgres starts a PostgreSQL that ends with the test. Each option is one of its
// settings.
func startPostgres(t *testing.T, options ...string) *pgtest.Server {
	t.Helper()
	server, err := pgtest.Start(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// storeEnv has what configurations have in variables: the password of storeAt, and
// ${STORE_KEY}.
var storeEnv = []string{"STORE_PASSWORD=" + pgtest.Password, "STORE_KEY=the key of the store of a test"}

// storeAt is the address of a schema as a configuration has it.
func storeAt(server *pgtest.Server, schema string) string {
	return strings.Replace(server.URL("postgres", schema), pgtest.Password, "${STORE_PASSWORD}", 1)
}

// freeAddress returns an address on loopback at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// freePort is the port of one.
func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
