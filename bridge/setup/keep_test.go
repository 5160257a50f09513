package setup_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codemode-bridge/bridge/setup"
)

func TestStays(t *testing.T) {
	const beside = "/node_modules/@codemode-bridge/linux-x64/bin/codemode-bridge"
	for path, stays := range map[string]bool{
		"/home/me/.npm/_npx/0a1b2c3d4e5f6071" + beside:                                                  false,
		"/home/me/.cache/pnpm/dlx/abc/18f/node_modules/.pnpm/@codemode-bridge+linux-x64@1.2.3" + beside: false,
		"/home/me/.local/share/pnpm/global/5/.pnpm/@codemode-bridge+linux-x64@1.2.3" + beside:           false,
		"/tmp/xfs-1a2b3c/dlx-4711" + beside:                                                             false,
		"/tmp/bunx-0-codemode-bridge@latest" + beside:                                                   false,
		"/usr/lib" + beside: true,
		"/usr/lib/node_modules/codemode-bridge" + beside: true,
		"/home/me/app" + beside:                          true,
		"/opt/codemode-bridge/codemode-bridge":           true,
		"/home/me/dlx/codemode-bridge":                   true, // a folder that somebody called so
	} {
		got, err := setup.Stays(filepath.FromSlash(path), "1.2.3", filepath.FromSlash("/data"))
		if err != nil || (got == nil) != stays {
			t.Errorf("%s: %+v (%v), stays should be %t", path, got, err, stays)
		}
		if got != nil && got.Path() != filepath.FromSlash("/data/programs/1.2.3/codemode-bridge") {
			t.Errorf("%s is kept at %s", path, got.Path())
		}
	}
	if got, err := setup.Stays("/home/me/.npm/_npx/0"+beside, "1.2.3", ""); err == nil {
		t.Errorf("without a folder for it there is a copy: %+v", got)
	}
}

func TestCopy(t *testing.T) {
	from, data := filepath.Join(t.TempDir(), "_npx", "0", "node_modules", "p", "bin"), t.TempDir()
	ext := ""
	if runtime.GOOS == "windows" {
		ext = ".exe"
	}
	program, worker := "codemode-bridge"+ext, "codemode-worker"+ext
	write := func(folder, name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(from, program, "the bridge", 0o755)
	c, err := setup.Stays(filepath.Join(from, program), "1.2.3", data)
	if err != nil || c == nil {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := c.Make(); err == nil || !strings.Contains(err.Error(), worker) {
		t.Errorf("a copy without a worker: %v", err)
	}
	if _, err := os.Stat(c.Path()); err == nil {
		t.Error("the program is there without its worker")
	}

	check := func(what string) {
		t.Helper()
		if err := c.Make(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for name, want := range map[string]string{program: "the bridge", worker: "the worker"} {
			path := filepath.Join(c.Into, name)
			got, err := os.ReadFile(path)
			if err != nil || string(got) != want {
				t.Errorf("%s: %s has %q (%v)", what, name, got, err)
			}
			if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
				t.Errorf("%s: %s has mode %v (%v)", what, name, info.Mode(), err)
			}
		}
	}
	write(from, worker, "the worker", 0o755)
	check("a copy")
	before, err := os.Stat(c.Path())
	if err != nil {
		t.Fatal(err)
	}
	check("a second copy")
	if after, err := os.Stat(c.Path()); err != nil || !os.SameFile(before, after) {
		t.Errorf("what was there already was replaced (%v)", err)
	}
	write(c.Into, program, "the tenant", 0o755) // as long, and another
	check("over another build of the version")
	if err := os.Chmod(c.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	check("over one that cannot be executed")
}
