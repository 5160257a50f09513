//go:build real

package main_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
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

var addresses atomic.Int64 // that were given

// freeAddress returns an address on loopback at which nobody listens. Its port is none of
// those that systems give away, so that nothing else gets it meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+(int64(os.Getpid())*131+addresses.Add(1))%20_000)
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
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
