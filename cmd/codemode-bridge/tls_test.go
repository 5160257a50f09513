package main_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/mcphttptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// trusting is a client that trusts a certificate.
func trusting(trust *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}}
}

// A bridge serves TLS by itself: the endpoint and the page. A renewed certificate is taken
// over while a session goes on, and a broken one is not.
func TestServesTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := mcphttptest.Certificate(t, dir, 1, time.Now().Add(90*24*time.Hour))
	files := fmt.Sprintf(`{"cert": %q, "key": %q}`, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	config := `{"servers": {"time": {"builtin": "time"}}, "http": {"tls": ` + files + `}, "approvals": {"listen": "127.0.0.1:0", "tls": ` + files + `}}`
	said := new(talk)
	home := t.TempDir()
	s := serving{file: filepath.Join(home, "config.json")}
	s.write(t, config)
	cmd := exec.Command(filepath.Join(programs(t), "codemode-bridge"), "serve", "--config", s.file, "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home)
	cmd.Stderr = said
	s.start(t, cmd)
	if !strings.HasPrefix(s.endpoint, "https://127.0.0.1:") || !strings.HasPrefix(s.link, "https://127.0.0.1:") {
		t.Fatalf("it says it is at %s, the page at %s", s.endpoint, s.link)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.endpoint, MaxRetries: -1, HTTPClient: trusting(first)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	works := func() {
		t.Helper()
		if said, err := eval(t.Context(), c, `return 6 * 7`); err != nil || !strings.Contains(said, "42") {
			t.Errorf("%s, %v", said, err)
		}
	}
	works()
	if r, err := trusting(first).Get(s.page + "/login"); err != nil {
		t.Errorf("the page: %v", err)
	} else if r.Body.Close(); r.StatusCode != http.StatusOK {
		t.Errorf("the page: %s", r.Status)
	}
	if r, err := http.Get("http" + strings.TrimPrefix(s.endpoint, "https")); err == nil {
		r.Body.Close()
		t.Errorf("plain HTTP: %s", r.Status)
	}
	second := mcphttptest.Certificate(t, dir, 2, time.Now().Add(99*24*time.Hour))
	health := strings.TrimSuffix(s.endpoint, "/mcp") + "/healthz"
	healthy := func() bool {
		client := trusting(second)
		defer client.CloseIdleConnections()
		r, err := client.Get(health)
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}
	eventually(t, "the new certificate is not taken over", healthy)
	works()
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("half of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is said of a broken certificate", func() bool {
		return strings.Contains(said.String(), "the new certificate cannot be used") && strings.Contains(said.String(), "stays in force")
	})
	if !healthy() {
		t.Error("the certificate of before is gone")
	}
	works()
	if out, _ := at(t, home, s.file, "doctor"); !strings.Contains(out, "reading the certificate") {
		t.Errorf("doctor:\n%s", out)
	}
	mcphttptest.Certificate(t, dir, 3, time.Now().Add(3*24*time.Hour))
	if out, _ := at(t, home, s.file, "doctor"); !strings.Contains(out, "the certificate ends on") {
		t.Errorf("doctor of a certificate that ends soon:\n%s", out)
	}
}
