//go:build real

package main_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// releaseRepository is where the tests' release says that it is published.
const releaseRepository = "https://github.com/example/codemode-bridge"

// wholeRelease makes all files of the release for this machine, and, for the second
// time, in another folder: they must be the same bytes.
func wholeRelease(t *testing.T) string {
	t.Helper()
	host, _ := hostPlatform()
	into := t.TempDir()
	for root, name := range map[string]string{moduleRoot(t): "dist", copyOfTree(t): "again"} {
		cmd := exec.Command("go", "run", "./.ci/release", "-version", releaseVersion, "-commit", releaseCommit, "-repository", releaseRepository, "-out", filepath.Join(into, name), "-platforms", host)
		cmd.Dir, cmd.Env = root, append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", releaseTime))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("making a release: %v\n%s", err, out)
		}
	}
	dist := filepath.Join(into, "dist")
	one, two := mustRead(t, filepath.Join(dist, "SHA256SUMS")), mustRead(t, filepath.Join(into, "again", "SHA256SUMS"))
	if one != two {
		t.Errorf("made in another folder, files differ:\n%s\nand there\n%s", one, two)
	}
	listed := 1 // SHA256SUMS itself
	for line := range strings.Lines(one) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(mustRead(t, filepath.Join(dist, name))))); got != sum {
			t.Errorf("%s: %s is listed, it has %s", name, sum, got)
		}
		listed++
	}
	files, err := os.ReadDir(dist)
	if err != nil || len(files) != listed {
		t.Errorf("there are %d files, %d with SHA256SUMS are listed (%v)", len(files), listed, err)
	}
	return dist
}

// releaseFile is the file of the release for this machine with an ending.
func releaseFile(dist, end string) string {
	host, _ := hostPlatform()
	return filepath.Join(dist, "codemode-bridge_"+releaseVersion+"_"+strings.Replace(host, "/", "_", 1)+end)
}

// An installation is a way to install the release on a bare tree, and to remove it.
type installation struct {
	name string
	// with are the programs that it needs, besides those of the real tests.
	with []string
	// install returns what starts the bridge.
	install func(t *testing.T, root string) (command []string)
	remove  func(t *testing.T, root string)
}

// asRoot is a command as root, of a namespace if the test isn't run by it.
func asRoot(t *testing.T, command ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		command = append([]string{"unshare", "--map-root-user"}, command...)
	}
	mustDo(t, "", command...)
}

// mustDo runs a program in a folder.
func mustDo(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

func installations(r *real, dist string) []installation {
	_, npm := hostPlatform()
	mcpb := []string{"node", filepath.Join(r.npm, "judges", "node_modules", "@anthropic-ai", "mcpb", "dist", "cli", "cli.js")}
	removeAll := func(folder string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, folder)); err != nil {
				t.Error(err)
			}
		}
	}
	return []installation{
		{"archive", nil, func(t *testing.T, root string) []string {
			mustDo(t, root, "tar", "xzf", releaseFile(dist, ".tar.gz"))
			return []string{filepath.Join(root, strings.TrimSuffix(filepath.Base(releaseFile(dist, "")), ".tar.gz"), "codemode-bridge")}
		}, removeAll(filepath.Base(releaseFile(dist, "")))},
		{"deb", []string{"dpkg"}, func(t *testing.T, root string) []string {
			for _, dir := range []string{"info", "updates", "triggers"} {
				if err := os.MkdirAll(filepath.Join(root, "var", "lib", "dpkg", dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			mustWrite(t, filepath.Join(root, "var", "lib", "dpkg", "status"), "")
			asRoot(t, "dpkg", "--root="+root, "--log=/dev/null", "-i", releaseFile(dist, ".deb"))
			if said := mustDo(t, "", "dpkg", "--root="+root, "-V", "codemode-bridge"); said != "" {
				t.Errorf("dpkg finds altered files:\n%s", said)
			}
			return []string{filepath.Join(root, "usr", "bin", "codemode-bridge")}
		}, func(t *testing.T, root string) {
			asRoot(t, "dpkg", "--root="+root, "--log=/dev/null", "--purge", "codemode-bridge")
			removeAll("var")(t, root) // dpkg's own
		}},
		{"rpm", []string{"rpm"}, func(t *testing.T, root string) []string {
			if said := mustDo(t, "", "rpm", "-K", releaseFile(dist, ".rpm")); !strings.Contains(said, "digests OK") {
				t.Errorf("rpm says of the package: %s", said)
			}
			asRoot(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "-i", releaseFile(dist, ".rpm"))
			asRoot(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "-V", "codemode-bridge")
			return []string{filepath.Join(root, "usr", "bin", "codemode-bridge")}
		}, func(t *testing.T, root string) {
			asRoot(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "-e", "codemode-bridge")
			removeAll("var")(t, root) // rpm's own
		}},
		{"npm", nil, func(t *testing.T, root string) []string {
			mustDo(t, root, "npm", "install", "-g", "--prefix", root, "--offline", "--cache", filepath.Join(root, "cache"), "--no-audit", "--no-fund",
				filepath.Join(dist, "codemode-bridge-"+npm+"-"+releaseVersion+".tgz"), filepath.Join(dist, "codemode-bridge-"+releaseVersion+".tgz"))
			return []string{filepath.Join(root, "bin", "codemode-bridge")}
		}, func(t *testing.T, root string) {
			mustDo(t, root, "npm", "uninstall", "-g", "--prefix", root, "codemode-bridge", "@codemode-bridge/"+npm)
			removeAll("cache")(t, root) // npm's own
			// npm leaves the folder of a scope, empty.
			if err := os.Remove(filepath.Join(root, "lib", "node_modules", "@codemode-bridge")); err != nil {
				t.Error(err)
			}
		}},
		{"bundle", nil, func(t *testing.T, root string) []string {
			into := filepath.Join(root, "extension")
			mustDo(t, root, append(mcpb, "unpack", releaseFile(dist, ".mcpb"), into)...)
			if said := mustDo(t, into, append(mcpb, "validate", "manifest.json")...); !strings.Contains(said, "passes") {
				t.Errorf("the manifest: %s", said)
			}
			var m struct {
				Server struct {
					Config struct {
						Command string
						Args    []string
					} `json:"mcp_config"`
				}
			}
			if err := json.Unmarshal([]byte(mustRead(t, filepath.Join(into, "manifest.json"))), &m); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.Server.Config.Args, []string{"run"}) {
				t.Errorf("the bundle starts the bridge with %q", m.Server.Config.Args)
			}
			return []string{strings.ReplaceAll(m.Server.Config.Command, "${__dirname}", into)}
		}, removeAll("extension")},
	}
}

// Each way to install the release gives a bridge that makes a configuration, runs scripts
// and serves clients; removing it leaves nothing.
func TestReleaseInstalled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("packages for Linux are installed there")
	}
	base := newReal(t)
	dist := wholeRelease(t)
	for _, way := range installations(base, dist) {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			for _, program := range way.with {
				if _, err := exec.LookPath(program); err != nil {
					t.Fatalf("%v: make test-release installs it where there is apt-get", err)
				}
			}
			root := t.TempDir()
			// What every system has, and no package removes.
			for _, dir := range []string{"usr/bin", "usr/lib/systemd/system", "usr/lib/sysusers.d", "usr/share/doc", "usr/share/man/man1", "usr/share/bash-completion/completions", "usr/share/zsh/site-functions", "usr/share/zsh/vendor-completions", "usr/share/fish/vendor_completions.d", "lib/node_modules", "bin"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			before := tree(t, root)
			command := way.install(t, root)
			r := *base
			r.bin = command[0]
			if way.with != nil { // a system's package
				servesWithSystemd(t, root)
			}
			r.lives(t)
			way.remove(t, root)
			// dpkg removes folders that it leaves empty.
			after := slices.DeleteFunc(tree(t, root), func(name string) bool { return slices.Contains(before, name) })
			if len(after) > 0 {
				t.Errorf("left behind: %q", after)
			}
		})
	}
}

// servesWithSystemd checks that the units of an installed package can start: the program is
// there, and systemd-sysusers makes the user.
func servesWithSystemd(t *testing.T, root string) {
	t.Helper()
	services, err := filepath.Glob(filepath.Join(root, "usr/lib/systemd/system/*.service"))
	if err != nil || len(services) != 1 {
		t.Fatalf("the package has the services %q (%v)", services, err)
	}
	keys := map[string]string{}
	for line := range strings.Lines(mustRead(t, services[0])) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			keys[key] = value
		}
	}
	program, _, _ := strings.Cut(keys["ExecStart"], " ")
	if info, err := os.Stat(filepath.Join(root, program)); program == "" || err != nil || info.Mode()&0o111 != 0o111 {
		t.Errorf("the service starts %q, which the package does not bring (%v)", program, err)
	}
	// With a copy, since the user outlives the package.
	system := t.TempDir()
	const users = "usr/lib/sysusers.d/codemode-bridge.conf"
	for _, dir := range []string{"usr/lib/sysusers.d", "etc"} {
		if err := os.MkdirAll(filepath.Join(system, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, filepath.Join(system, users), mustRead(t, filepath.Join(root, users)))
	asRoot(t, "systemd-sysusers", "--root="+system, "codemode-bridge.conf")
	for file, name := range map[string]string{"etc/passwd": keys["User"], "etc/group": keys["Group"]} {
		if text := mustRead(t, filepath.Join(system, file)); name == "" || !strings.HasPrefix(text, name+":") {
			t.Errorf("the service runs as %q; %s has\n%s", name, file, text)
		}
	}
}

// tree is everything below a folder.
func tree(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, strings.TrimPrefix(path, root))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lives takes an installed bridge through its first hour: a configuration from a client's
// servers, a script, a client over standard streams and one over HTTP.
func (r *real) lives(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	r.env = append(slices.Clone(r.env), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "XDG_STATE_HOME="+filepath.Join(home, ".state"), "XDG_CACHE_HOME="+filepath.Join(home, ".cache"))
	server := filepath.Join(r.npm, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	mustWrite(t, filepath.Join(home, ".claude.json"), fmt.Sprintf(`{"mcpServers": {"everything": {"command": "node", "args": [%q]}}}`, server))

	if said := r.bridge(t, "", "version"); !strings.HasPrefix(said, "codemode-bridge "+releaseVersion+" (") || !strings.Contains(said, releaseCommit) {
		t.Errorf("version says %q", said)
	}
	if said := r.bridge(t, "", "init", "--from", "claude-code", "--yes", "--pin=false"); !strings.Contains(said, "everything  node ") {
		t.Errorf("init says %q", said)
	}
	r.config = filepath.Join(home, ".config", "codemode-bridge", "config.json")
	const script = `return (await codemode.utils__base64_encode({text: "hi"})).text`
	if said := r.bridge(t, "", "eval", script); said != "aGk=\n" && said != "\"aGk=\"\n" {
		t.Errorf("eval says %q", said)
	}
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			j := r.job(t, transport)
			j.Decision = "once"
			j.Steps = []clientStep{{Op: "list"}, evalStep(script, nil), evalStep(`return await codemode.everything__echo({message: "hi"})`, nil)}
			a := r.client(t, "sdk", j)
			if len(a.Steps[0].Result.Tools) == 0 {
				t.Error("it lists no tools")
			}
			if got := a.Steps[1].value(t, "a built-in server"); got != `"aGk="` {
				t.Errorf("a built-in server says %s", got)
			}
			if got := a.Steps[2].value(t, "a server of the client's"); got != `"Echo: hi"` {
				t.Errorf("a server of the client's says %s", got)
			}
		})
	}
}

// The bill of materials is one by CycloneDX's own schema.
func TestReleaseMaterials(t *testing.T) {
	r := newReal(t)
	host, _ := hostPlatform()
	dist := filepath.Join(t.TempDir(), "dist")
	cmd := exec.Command("go", "run", "./.ci/release", "-version", releaseVersion, "-commit", releaseCommit, "-formats", "about", "-out", dist, "-platforms", host)
	cmd.Dir, cmd.Env = moduleRoot(t), append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", releaseTime))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making it: %v\n%s", err, out)
	}
	folder := filepath.Join(r.npm, "judges")
	source := mustRead(t, filepath.Join("testdata", "real", "judges", "bom.mjs"))
	mustWrite(t, filepath.Join(folder, "bom.mjs"), source)
	if said := mustDo(t, folder, "node", "bom.mjs", releaseFile(dist, ".cdx.json")); said != "valid\n" {
		t.Errorf("the schema says: %s", said)
	}
}
