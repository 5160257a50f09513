//go:build !race

package main_test

// The rules of the house, enforced by tests: which package may import which, what may be
// at the top of the repository, and what no file may contain. Every rule is a function
// over plain data that returns the violations that it finds. TestHouse runs them over
// this repository, TestRulesCanFail over small made-up ones that break one rule each.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "codemode-bridge"

// table lists every package with the packages of ours that it may import directly, tests
// not counted. A package that is not here fails the test, so that each new one is a
// decision, and docs/tour.md says what it is for.
var table = map[string][]string{
	"analysis":           {},
	"analysis/preview":   {"analysis"},
	"profiles":           {},
	"profiles/flow":      {},
	"profiles/known":     {},
	"profiles/templates": {},

	"sandbox":         {"analysis", "sandbox/confine", "sandbox/wire"},
	"sandbox/confine": {},
	"sandbox/intl":    {},
	"sandbox/racing":  {},
	"sandbox/realm":   {"analysis", "analysis/preview", "sandbox/source", "sandbox/values", "sandbox/web", "sandbox/wire"},
	"sandbox/source":  {"analysis", "sandbox/values"},
	"sandbox/values":  {},
	"sandbox/web":     {"sandbox/intl", "sandbox/values"},
	"sandbox/wire":    {"analysis"},
	"sandbox/worker":  {"analysis", "sandbox/confine", "sandbox/realm", "sandbox/values", "sandbox/wire"},

	"bridge":               {"analysis", "bridge/access", "bridge/approval", "bridge/canon", "bridge/catalog", "bridge/commons", "bridge/dialogs", "bridge/elicit", "bridge/entries", "bridge/forms", "bridge/gate", "bridge/handles", "bridge/ledger", "bridge/lifecycle", "bridge/principal", "bridge/replay", "bridge/rpc", "bridge/seal", "bridge/surface", "bridge/trace", "bridge/upstream", "bridge/wording", "bridge/workspace", "profiles", "sandbox"},
	"bridge/access":        {},
	"bridge/admin":         {"bridge/approval", "bridge/canon", "bridge/documents", "bridge/ledger", "bridge/login", "bridge/pins", "bridge/principal", "bridge/trace", "bridge/webguard", "bridge/wording", "profiles"},
	"bridge/alive":         {"bridge/atomicfile", "bridge/filelock"},
	"bridge/approval":      {"analysis", "bridge/canon", "profiles"},
	"bridge/approvalview":  {"bridge/approval", "bridge/canon", "bridge/ledger", "bridge/lines", "bridge/wording"},
	"bridge/atomicfile":    {},
	"bridge/audit":         {"analysis", "bridge/canon", "bridge/ledger", "profiles"},
	"bridge/bench":         {"analysis", "bridge/ledger", "bridge/pgtest", "bridge/sqlstore", "profiles", "sandbox", "sandbox/wire"},
	"bridge/backup":        {},
	"bridge/bench/asking":  {"bridge/jsonc", "profiles/known"},
	"bridge/bench/flows":   {"bridge", "bridge/catalog", "bridge/config", "bridge/gate", "bridge/ledger", "bridge/upstream", "bridge/workspace", "profiles/known", "sandbox", "sandbox/worker"},
	"bridge/builtin":       {"profiles/known"},
	"bridge/commons":       {"bridge/catalog", "profiles"},
	"bridge/canon":         {},
	"bridge/catalog":       {"bridge/atomicfile", "bridge/canon", "bridge/meant", "bridge/tsdecl", "profiles"},
	"bridge/certificate":   {"bridge/watchfile"},
	"bridge/centre":        {"bridge/atomicfile", "bridge/canon", "bridge/enrolment/wire", "bridge/ledger"},
	"bridge/clients":       {"bridge/atomicfile"},
	"bridge/config":        {"bridge/access", "bridge/canon", "bridge/meant", "bridge/policydoc", "bridge/secrets", "bridge/strict", "bridge/userfiles", "profiles", "profiles/known", "profiles/templates"},
	"bridge/confirmed":     {"bridge/atomicfile", "bridge/filelock"},
	"bridge/dialogs":       {},
	"bridge/documents":     {"bridge/atomicfile", "bridge/filelock", "bridge/watch"},
	"bridge/doctor":        {"bridge/canon", "bridge/certificate", "bridge/clients", "bridge/knownview", "bridge/lines", "bridge/login", "bridge/setup", "bridge/upstream", "profiles/known"},
	"bridge/elicit":        {"bridge/approval", "bridge/canon", "bridge/upstream"},
	"bridge/entries":       {"bridge/catalog", "bridge/handles", "bridge/replay"},
	"bridge/enrolment":     {"bridge/atomicfile", "bridge/enrolment/wire", "bridge/filelock", "bridge/ledger"},
	"bridge/evalview":      {"bridge/canon"},
	"bridge/filelock":      {},
	"bridge/footprint":     {},
	"bridge/forms":         {"bridge/approval", "bridge/canon"},
	"bridge/gate":          {"analysis", "bridge/approval", "bridge/canon", "bridge/catalog", "bridge/ledger", "bridge/misfit", "bridge/provenance", "bridge/workspace", "profiles", "profiles/known"},
	"bridge/handles":       {"bridge/canon"},
	"bridge/identity":      {"bridge/principal"},
	"bridge/instance":      {"bridge/access", "bridge/filelock", "bridge/rpc"},
	"bridge/jsonc":         {},
	"bridge/knownview":     {"bridge/canon", "profiles/known"},
	"bridge/learned":       {"bridge/relay", "sandbox/confine"},
	"bridge/ledger":        {"bridge/canon", "bridge/turns"},
	"bridge/lifecycle":     {},
	"bridge/lines":         {},
	"bridge/lockfile":      {"bridge/atomicfile"},
	"bridge/logfile":       {},
	"bridge/login":         {"bridge/atomicfile", "bridge/canon", "bridge/documents", "bridge/ledger", "bridge/secrets", "bridge/webguard"},
	"bridge/logintest":     {},
	"bridge/mcphttp":       {"bridge/access", "bridge/canon", "bridge/identity", "bridge/principal", "bridge/rpc", "bridge/webguard"},
	"bridge/mcphttptest":   {},
	"bridge/memstore":      {"bridge/ledger", "bridge/replica"},
	"bridge/metrics":       {"bridge/ledger", "bridge/webguard"},
	"bridge/meant":         {},
	"bridge/misfit":        {"bridge/canon", "bridge/meant"},
	"bridge/notify":        {},
	"bridge/observed":      {"bridge/atomicfile", "bridge/canon", "bridge/tsdecl"},
	"bridge/otlptest":      {},
	"bridge/openapi":       {"bridge/atomicfile", "bridge/canon"},
	"bridge/pending":       {"bridge/access", "bridge/approval", "bridge/canon", "bridge/config", "bridge/confirmed", "bridge/policydoc", "profiles"},
	"bridge/pgstore":       {"bridge/approval", "bridge/documents", "bridge/handles", "bridge/ledger", "bridge/replica", "bridge/stopwatch"},
	"bridge/pgtest":        {},
	"bridge/pins":          {"bridge/canon", "bridge/catalog", "bridge/documents", "bridge/ledger", "bridge/lockfile", "bridge/watch", "profiles"},
	"bridge/principal":     {},
	"bridge/profileview":   {"bridge/canon", "bridge/catalog", "bridge/gate", "bridge/workspace", "profiles"},
	"bridge/push":          {"bridge/documents", "bridge/ledger"},
	"bridge/provenance":    {"bridge/canon", "profiles", "profiles/flow"},
	"bridge/recorder":      {"bridge/canon", "bridge/ledger", "profiles"},
	"bridge/relay":         {},
	"bridge/replay":        {},
	"bridge/replica":       {"bridge/stopwatch"},
	"bridge/roots":         {"bridge/workspace"},
	"bridge/rpc":           {"bridge/canon", "bridge/principal", "bridge/trace"},
	"bridge/scripts":       {"bridge/atomicfile", "bridge/tsdecl", "bridge/watch"},
	"bridge/seal":          {},
	"bridge/secrets":       {},
	"bridge/secretstest":   {},
	"bridge/setup":         {"bridge/atomicfile", "bridge/canon", "bridge/clients", "bridge/config", "bridge/jsonc", "bridge/secrets", "bridge/workspace", "profiles", "profiles/known"},
	"bridge/sqlstore":      {"bridge/approval", "bridge/atomicfile", "bridge/filelock", "bridge/ledger", "bridge/stopwatch", "bridge/turns"},
	"bridge/sso":           {"bridge/identity"},
	"bridge/strict":        {},
	"bridge/ssotest":       {},
	"bridge/stopwatch":     {},
	"bridge/storetest":     {"analysis", "bridge/approval", "bridge/canon", "bridge/documents", "bridge/ledger", "bridge/replica", "profiles"},
	"bridge/policydoc":     {},
	"bridge/questions":     {"bridge/approval", "bridge/canon", "bridge/enrolment/wire"},
	"bridge/include":       {"bridge/atomicfile", "bridge/filelock", "bridge/policydoc"},
	"bridge/surface":       {"bridge/access", "bridge/approval", "bridge/canon", "bridge/catalog", "bridge/upstream"},
	"bridge/takeover":      {"bridge/approval", "bridge/ledger"},
	"bridge/tsdecl":        {},
	"bridge/trace":         {},
	"bridge/turns":         {},
	"bridge/upstream":      {"bridge/filelock", "bridge/relay", "bridge/stopwatch", "bridge/trace", "bridge/upstream/npm", "bridge/upstream/tap", "sandbox/confine"},
	"bridge/upstream/npm":  {},
	"bridge/upstream/tap":  {},
	"bridge/userfiles":     {},
	"bridge/view":          {"bridge/approval", "bridge/canon", "bridge/catalog", "bridge/gate", "bridge/ledger", "bridge/pins", "profiles"},
	"bridge/watch":         {},
	"bridge/watchfile":     {"bridge/watch"},
	"bridge/webguard":      {},
	"bridge/wording":       {"analysis", "bridge/approval", "bridge/canon", "profiles"},
	"bridge/workspace":     {},
	"bridge/bench/context": {"bridge/catalog"},

	"bridge/enrolment/wire": {},

	"docs/deploy":        {},
	"docs/examples/shop": {},
	"docs/reference":     {},

	"cmd/codemode-bridge": {
		"analysis",
		"bridge",
		"bridge/access",
		"bridge/admin",
		"bridge/alive",
		"bridge/approval",
		"bridge/approvalview",
		"bridge/audit",
		"bridge/builtin",
		"bridge/canon",
		"bridge/catalog",
		"bridge/certificate",
		"bridge/clients",
		"bridge/config",
		"bridge/confirmed",
		"bridge/doctor",
		"bridge/evalview",
		"bridge/footprint",
		"bridge/gate", "bridge/handles",
		"bridge/instance",
		"bridge/gate",
		"bridge/identity",
		"bridge/include", "bridge/instance",
		"bridge/jsonc",
		"bridge/knownview",
		"bridge/ledger",
		"bridge/lifecycle",
		"bridge/lines",
		"bridge/lockfile",
		"bridge/login",
		"bridge/mcphttp",
		"bridge/metrics",
		"bridge/notify",
		"bridge/observed",
		"bridge/openapi",
		"bridge/pending",
		"bridge/pins",
		"bridge/profileview",
		"bridge/recorder", "bridge/replay", "bridge/replica",
		"bridge/roots",
		"bridge/rpc",
		"bridge/scripts",
		"bridge/secrets",
		"bridge/setup",
		"bridge/sqlstore",
		"bridge/sso",
		"bridge/trace",
		"bridge/turns",
		"bridge/takeover",
		"bridge/upstream",
		"bridge/view",
		"bridge/watchfile",
		"bridge/webguard",
		"bridge/wording",
		"bridge/workspace",
		"cmd/codemode-bridge/accesscmd",
		"cmd/codemode-bridge/approverscmd", "cmd/codemode-bridge/auditcmd",
		"cmd/codemode-bridge/boxcmd",
		"cmd/codemode-bridge/explaincmd",
		"cmd/codemode-bridge/checkcmd",
		"cmd/codemode-bridge/cautions",
		"cmd/codemode-bridge/cli",
		"cmd/codemode-bridge/enrollcmd",
		"cmd/codemode-bridge/evalcmd",
		"cmd/codemode-bridge/logging",
		"cmd/codemode-bridge/logincmd",
		"cmd/codemode-bridge/laptopscmd",
		"cmd/codemode-bridge/pagecmd",
		"cmd/codemode-bridge/running",
		"cmd/codemode-bridge/secretscmd",
		"cmd/codemode-bridge/servecmd", "cmd/codemode-bridge/setupcmd",
		"cmd/codemode-bridge/policycmd",
		"cmd/codemode-bridge/running",
		"cmd/codemode-bridge/policycmd", "cmd/codemode-bridge/pushcmd", "cmd/codemode-bridge/secretscmd",
		"cmd/codemode-bridge/setupcmd",
		"cmd/codemode-bridge/statuscmd", "cmd/codemode-bridge/storecmd",
		"cmd/codemode-bridge/telemetry",
		"cmd/codemode-bridge/toolscmd",
		"cmd/codemode-bridge/upstreams",
		"cmd/codemode-bridge/versioncmd",
		"profiles",
		"profiles/flow",
		"profiles/known",
		"profiles/templates",
		"sandbox",
	},
	"cmd/codemode-bridge/approverscmd": {"bridge/approval", "bridge/audit", "bridge/canon", "bridge/config", "bridge/jsonc", "bridge/pending", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/accesscmd":    {"bridge/access", "bridge/canon", "bridge/config", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/auditcmd":     {"bridge/audit", "bridge/canon", "bridge/config", "bridge/jsonc", "bridge/ledger", "bridge/lifecycle", "bridge/memstore", "bridge/recorder", "bridge/setup", "bridge/sqlstore", "cmd/codemode-bridge/cli", "profiles"},
	"cmd/codemode-bridge/checkcmd":     {"bridge/canon", "bridge/config", "bridge/scripts", "cmd/codemode-bridge/cli", "cmd/codemode-bridge/explaincmd"},
	"cmd/codemode-bridge/explaincmd":   {"bridge/config", "bridge/lines", "bridge/meant", "cmd/codemode-bridge/cli", "docs/reference"},
	"cmd/codemode-bridge/boxcmd":       {"bridge/config", "bridge/jsonc", "bridge/learned", "bridge/setup", "bridge/upstream", "bridge/workspace", "cmd/codemode-bridge/cli", "sandbox/confine"},
	"cmd/codemode-bridge/cautions":     {"bridge/canon", "bridge/config", "bridge/jsonc"},
	"cmd/codemode-bridge/cli":          {"bridge/canon", "bridge/lines"},
	"cmd/codemode-bridge/evalcmd":      {"bridge/approval", "bridge/canon", "bridge/evalview", "bridge/scripts", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/logging":      {"bridge/config", "bridge/logfile", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/versioncmd":   {"bridge/instance", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/logincmd":     {"bridge/approval", "bridge/atomicfile", "bridge/canon", "bridge/config", "bridge/documents", "bridge/filelock", "bridge/ledger", "bridge/login", "bridge/pins", "bridge/secrets", "bridge/upstream", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/policycmd":    {"bridge/atomicfile", "bridge/canon", "bridge/config", "bridge/confirmed", "bridge/include", "bridge/pending", "bridge/policydoc", "bridge/secrets", "bridge/watchfile", "cmd/codemode-bridge/cli", "profiles"},
	"cmd/codemode-bridge/enrollcmd":    {"bridge/approval", "bridge/audit", "bridge/config", "bridge/enrolment", "bridge/enrolment/wire", "bridge/filelock", "bridge/jsonc", "bridge/ledger", "bridge/questions", "bridge/setup", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/laptopscmd":   {"bridge/approval", "bridge/audit", "bridge/centre", "bridge/config", "bridge/enrolment", "bridge/enrolment/wire", "bridge/ledger", "bridge/questions", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/pushcmd":      {"bridge/config", "bridge/documents", "bridge/ledger", "bridge/push", "cmd/codemode-bridge/telemetry"},
	"cmd/codemode-bridge/pagecmd":      {"bridge/canon", "bridge/config", "bridge/login", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/running":      {"bridge/canon", "bridge/config", "bridge/instance", "bridge/upstream", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/servecmd":     {"bridge/certificate", "bridge/config", "bridge/identity", "bridge/mcphttp", "bridge/webguard", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/setupcmd":     {"bridge/approval", "bridge/canon", "bridge/clients", "bridge/config", "bridge/jsonc", "bridge/secrets", "bridge/setup", "cmd/codemode-bridge/cli", "profiles/templates"},
	"cmd/codemode-bridge/storecmd":     {"bridge/alive", "bridge/approval", "bridge/backup", "bridge/config", "bridge/confirmed", "bridge/documents", "bridge/ledger", "bridge/pgstore", "bridge/pins", "bridge/replica", "bridge/sqlstore", "bridge/upstream/tap", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/statuscmd":    {"bridge/alive", "bridge/canon", "bridge/instance", "bridge/replica", "bridge/upstream", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/telemetry":    {"bridge/builtin", "bridge/config", "bridge/ledger", "bridge/trace", "profiles/known"},
	"cmd/codemode-bridge/toolscmd":     {"bridge/atomicfile", "bridge/canon", "bridge/catalog", "bridge/config", "bridge/ledger", "bridge/lines", "bridge/lockfile", "bridge/pins", "bridge/recorder", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/secretscmd":   {"bridge/config", "bridge/secrets", "cmd/codemode-bridge/cli"},
	"cmd/codemode-bridge/upstreams":    {"analysis", "bridge/builtin", "bridge/config", "bridge/recorder", "bridge/upstream", "sandbox/confine"},
	"cmd/codemode-worker":              {"sandbox/confine", "sandbox/worker"},
}

// stdOnly are the packages that import only the standard library and what table grants
// them.
var stdOnly = []string{"analysis", "bridge/canon", "bridge/provenance", "bridge/tsdecl", "profiles/flow", "sandbox/wire"}

// pure is what profiles never imports: a decision has no I/O, network or
// randomness of its own. (net/url and net/netip only read text.)
var pure = []string{
	"os", "os/...", "io/ioutil", "syscall", "net", "net/http", "net/http/...", "net/rpc", "net/rpc/...", "net/smtp",
	"math/rand", "math/rand/...", "crypto/rand",
}

// engines parse or run scripts. Only engineUsers may import them, and no chain of imports
// leads from the bridge's own binary to one.
var (
	engines     = []string{"github.com/dop251/...", "github.com/evanw/esbuild/..."}
	engineUsers = []string{"analysis/preview", "sandbox/realm", "sandbox/source", "sandbox/values", "sandbox/web"}
)

// workerNever is what none of our packages below the worker's binary may import.
// (esbuild links net/http for a server that the worker never starts, so the rule covers
// only our own imports; TestRealWorkerIsQuiet traces what a worker really does.)
var workerNever = []string{"net", "net/...", "os/exec", "plugin"}

// workerMay are the exceptions: the launcher of a box and the bridge's half, which starts
// it, are one package. Addresses are only text there.
var workerMay = map[string][]string{"sandbox/confine": {"net/netip", "os/exec"}}

// cmdOnly may be imported only by programs, with two exceptions for bridge/config:
// bridge/pending compares every key of two configurations, and with types of its own for
// all of them a new key would be forgotten; bridge/setup writes the text of one.
var (
	cmdOnly       = []string{"bridge/config", "bridge/pgstore", "bridge/sqlstore"}
	configReaders = []string{"bridge/pending", "bridge/setup"}
)

// topLevel lists what may be at the top of the repository besides dotfiles.
var topLevel = []string{
	"CHANGELOG.md", "LICENSE", "Makefile", "README.md", "analysis", "bridge", "cmd", "config.example.json", "docs",
	"go.mod", "go.sum", "profiles", "sandbox",
}

// built and cached things, which git ignores and the rules do not look into.
var ignored = []string{".git", ".cache", "bin", "dist", "node_modules"}

// maxLines bounds a Go file that is not a test. longFiles lists those that may be longer,
// with the reason.
const maxLines = 700

var longFiles = map[string]string{}

// A pkg is one package as go list describes it; the paths of our own packages are
// relative to the module.
type pkg struct {
	Path    string
	Imports []string
}

// A file is one text file of the repository.
type file struct {
	Path string // relative, with slashes
	Text string
}

// matches reports whether an import path is one of patterns, in which "x/..."
// covers everything below x.
func matches(patterns []string, imported string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, ok := strings.CutSuffix(p, "...")
		return ok && strings.HasPrefix(imported, below) || p == imported
	})
}

// local returns the module-relative form of a package of ours.
func local(imported string) (string, bool) {
	return strings.CutPrefix(imported, module+"/")
}

// standard reports whether an import path is of the standard library, whose
// first element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") && first != module
}

func importsWithinTable(pkgs []pkg, table map[string][]string) (bad []string) {
	for _, p := range pkgs {
		may, known := table[p.Path]
		if !known {
			bad = append(bad, p.Path+" is not in the table of packages")
			continue
		}
		for _, imported := range p.Imports {
			if of, ours := local(imported); ours && !slices.Contains(may, of) {
				bad = append(bad, fmt.Sprintf("%s imports %s", p.Path, of))
			}
		}
	}
	return bad
}

func standardLibraryOnly(pkgs []pkg, only []string) (bad []string) {
	for _, p := range pkgs {
		for _, imported := range p.Imports {
			if _, ours := local(imported); slices.Contains(only, p.Path) && !ours && !standard(imported) {
				bad = append(bad, fmt.Sprintf("%s imports %s", p.Path, imported))
			}
		}
	}
	return bad
}

// neverImports finds imports of forbidden packages by packages that who selects.
func neverImports(pkgs []pkg, who func(path string) bool, forbidden []string) (bad []string) {
	for _, p := range pkgs {
		for _, imported := range p.Imports {
			if who(p.Path) && matches(forbidden, imported) {
				bad = append(bad, fmt.Sprintf("%s imports %s", p.Path, imported))
			}
		}
	}
	return bad
}

// below returns our packages that root imports, directly or not, and root itself.
func below(pkgs []pkg, root string) []pkg {
	byPath := make(map[string]pkg)
	for _, p := range pkgs {
		byPath[p.Path] = p
	}
	var found []pkg
	seen := make(map[string]bool)
	var visit func(path string)
	visit = func(path string) {
		p, ok := byPath[path]
		if !ok || seen[path] {
			return
		}
		seen[path] = true
		found = append(found, p)
		for _, imported := range p.Imports {
			if of, ours := local(imported); ours {
				visit(of)
			}
		}
	}
	visit(root)
	return found
}

// workerStaysSmall finds imports of what the worker's code must not reach: the network,
// other processes, and the bridge.
func workerStaysSmall(pkgs []pkg) (bad []string) {
	for _, p := range below(pkgs, "cmd/codemode-worker") {
		if p.Path == "bridge" || strings.HasPrefix(p.Path, "bridge/") {
			bad = append(bad, "cmd/codemode-worker reaches "+p.Path)
		}
		p.Imports = slices.DeleteFunc(slices.Clone(p.Imports), func(path string) bool { return slices.Contains(workerMay[p.Path], path) })
		bad = append(bad, neverImports([]pkg{p}, func(string) bool { return true }, workerNever)...)
	}
	return bad
}

// noEngineBelow finds script engines among all packages that a binary links.
func noEngineBelow(binary string, deps []string) (bad []string) {
	for _, dep := range deps {
		if matches(engines, dep) {
			bad = append(bad, fmt.Sprintf("%s links %s", binary, dep))
		}
	}
	return bad
}

func topLevelOnly(entries, allowed []string) (bad []string) {
	for _, name := range entries {
		if !strings.HasPrefix(name, ".") && !slices.Contains(allowed, name) && !slices.Contains(ignored, name) {
			bad = append(bad, name+" stands at the top of the repository")
		}
	}
	return bad
}

// unfinished matches the marks of unfinished work, which are written in pieces so that
// this file does not match.
var unfinished = regexp.MustCompile(`\b(` + "TO" + "DO|FIX" + "ME|XX" + "X" + `)\b`)

// conflict begins or ends what a merge left to be decided.
var conflict = regexp.MustCompile(`^(<{7}|>{7}) \S`)

func nothingUnfinished(files []file) (bad []string) {
	for _, f := range files {
		if path.Base(f.Path) == "package-lock.json" || path.Base(f.Path) == "go.sum" {
			continue // hashes may spell anything
		}
		if strings.HasPrefix(f.Path, "profiles/known/testdata/lists/") {
			continue // what servers say of themselves: one explains itself by searching for such marks
		}
		for i, line := range strings.Split(f.Text, "\n") {
			if mark := unfinished.FindString(line); mark != "" {
				bad = append(bad, fmt.Sprintf("%s:%d says %s", f.Path, i+1, mark))
			}
			if conflict.MatchString(line) {
				bad = append(bad, fmt.Sprintf("%s:%d has a conflict that nobody resolved", f.Path, i+1))
			}
		}
	}
	return bad
}

func noBuildMachinePaths(files []file, machine []string) (bad []string) {
	for _, f := range files {
		for i, line := range strings.Split(f.Text, "\n") {
			for _, dir := range machine {
				if strings.Contains(line, dir) {
					bad = append(bad, fmt.Sprintf("%s:%d mentions %s", f.Path, i+1, dir))
				}
			}
		}
	}
	return bad
}

// noDownloadHosts finds lock files that name the host that a package came from: they must
// work with whatever registry npm is configured for.
func noDownloadHosts(files []file) (bad []string) {
	for _, f := range files {
		if path.Base(f.Path) == "package-lock.json" && strings.Contains(f.Text, `"resolved": "http`) {
			bad = append(bad, f.Path+" names download hosts; is .npmrc beside it?")
		}
	}
	return bad
}

func noLongFiles(files []file, reviewed map[string]string) (bad []string) {
	for _, f := range files {
		lines := strings.Count(f.Text, "\n")
		test := strings.HasSuffix(f.Path, "_test.go")
		if strings.HasSuffix(f.Path, ".go") && !test && lines > maxLines && reviewed[f.Path] == "" {
			bad = append(bad, fmt.Sprintf("%s has %d lines, at most %d", f.Path, lines, maxLines))
		}
	}
	return bad
}

// skipsSayWhy finds skipped tests without a reason: SkipNow, and Skip and
// Skipf without words.
func skipsSayWhy(files []file) (bad []string) {
	for _, f := range files {
		if !strings.HasSuffix(f.Path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, f.Path, f.Text, 0)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			bare := method.Sel.Name == "SkipNow" && len(call.Args) == 0
			if name := method.Sel.Name; name == "Skip" || name == "Skipf" {
				if recv, ok := method.X.(*ast.Ident); ok && slices.Contains([]string{"t", "b", "f", "tb", "rt"}, recv.Name) {
					bare = len(call.Args) == 0
					if len(call.Args) > 0 {
						lit, ok := call.Args[0].(*ast.BasicLit)
						bare = ok && len(strings.TrimSpace(strings.Trim(lit.Value, "`\""))) < 5
					}
				}
			}
			if bare {
				bad = append(bad, fmt.Sprintf("%s skips without a reason", set.Position(call.Pos())))
			}
			return true
		})
	}
	return bad
}

func TestHouse(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	files := readFiles(t, root)
	pkgs := listPackages(t, root)
	if len(files) == 0 || len(pkgs) == 0 {
		t.Fatalf("read %d files and %d packages of %s", len(files), len(pkgs), root)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	is := func(paths ...string) func(string) bool {
		return func(p string) bool { return slices.Contains(paths, p) }
	}
	not := func(f func(string) bool) func(string) bool {
		return func(p string) bool { return !f(p) }
	}
	isProgram := func(p string) bool {
		return strings.HasPrefix(p, "cmd/") || p == "bridge/bench" || p == "bridge/bench/flows"
	}
	ours := func(paths []string) (full []string) {
		for _, p := range paths {
			full = append(full, module+"/"+p)
		}
		return full
	}

	for rule, bad := range map[string][]string{
		"packages import what the table allows":       importsWithinTable(pkgs, table),
		"the floor is the standard library":           standardLibraryOnly(pkgs, stdOnly),
		"profiles is pure":                            neverImports(pkgs, is("profiles"), pure),
		"only the worker's side imports an engine":    neverImports(pkgs, not(is(engineUsers...)), engines),
		"only programs import config and stores":      append(neverImports(pkgs, func(p string) bool { return !isProgram(p) && !slices.Contains(configReaders, p) }, ours(cmdOnly)), neverImports(pkgs, is(configReaders...), ours([]string{"bridge/pgstore", "bridge/sqlstore"}))...),
		"the worker reaches no network and no bridge": workerStaysSmall(pkgs),
		"the bridge's binary links no engine":         noEngineBelow("cmd/codemode-bridge", listDeps(t, root, "./cmd/codemode-bridge")),
		"the top of the repository stays small":       topLevelOnly(names, topLevel),
		"nothing is marked as unfinished":             nothingUnfinished(files),
		"no file mentions a folder of this machine":   noBuildMachinePaths(files, machinePaths(t, root)),
		"no source file is too long":                  noLongFiles(files, longFiles),
		"lock files name no download hosts":           noDownloadHosts(files),
		"a skipped test says why":                     skipsSayWhy(files),
	} {
		for _, violation := range bad {
			t.Errorf("%s: %s", rule, violation)
		}
	}
}

func TestRulesCanFail(t *testing.T) {
	all := func(string) bool { return true }
	one := func(path string, imports ...string) []pkg { return []pkg{{Path: path, Imports: imports}} }
	text := func(path, text string) []file { return []file{{Path: path, Text: text}} }
	long := strings.Repeat("\n", maxLines+1)
	mark := "TO" + "DO"

	rows := []struct {
		rule      string
		good, bad []string
	}{
		{"table, import",
			importsWithinTable(one("bridge/catalog", "fmt", module+"/profiles"), table),
			importsWithinTable(one("bridge/catalog", module+"/bridge/upstream"), table)},
		{"table, new package",
			importsWithinTable(one("profiles"), table),
			importsWithinTable(one("bridge/extras"), table)},
		{"standard library only",
			standardLibraryOnly(one("bridge/canon", "encoding/json"), stdOnly),
			standardLibraryOnly(one("bridge/canon", "github.com/google/uuid"), stdOnly)},
		{"standard library only, elsewhere free",
			standardLibraryOnly(one("bridge/gate", "github.com/google/uuid"), stdOnly),
			standardLibraryOnly(one("sandbox/wire", "golang.org/x/sys/unix"), stdOnly)},
		{"pure, os",
			neverImports(one("profiles", "strings", "netip"), all, pure),
			neverImports(one("profiles", "os"), all, pure)},
		{"pure, below net",
			neverImports(one("profiles", "net/url"), all, pure),
			neverImports(one("profiles", "net/http/httputil"), all, pure)},
		{"engine, goja",
			neverImports(one("sandbox", "io"), all, engines),
			neverImports(one("sandbox", "github.com/dop251/goja/parser"), all, engines)},
		{"engine, esbuild",
			neverImports(one("bridge", "github.com/evanw/other"), all, engines),
			neverImports(one("bridge", "github.com/evanw/esbuild/pkg/api"), all, engines)},
		{"worker, network two levels down",
			workerStaysSmall(append(one("cmd/codemode-worker", module+"/sandbox/worker"), one("bridge", "net")...)),
			workerStaysSmall(append(one("cmd/codemode-worker", module+"/sandbox/worker"), one("sandbox/worker", "net/http")...))},
		{"worker, the bridge",
			workerStaysSmall(one("cmd/codemode-worker", "os")),
			workerStaysSmall(append(one("cmd/codemode-worker", module+"/bridge/canon"), one("bridge/canon")...))},
		{"worker, processes",
			workerStaysSmall(one("cmd/codemode-worker", "os")),
			workerStaysSmall(one("cmd/codemode-worker", "os/exec"))},
		{"worker, the network by its launcher",
			workerStaysSmall(append(one("cmd/codemode-worker", module+"/sandbox/confine"), one("sandbox/confine", "os/exec", "net/netip")...)),
			workerStaysSmall(append(one("cmd/codemode-worker", module+"/sandbox/confine"), one("sandbox/confine", "net")...))},
		{"linked engine",
			noEngineBelow("x", []string{"github.com/spf13/cobra"}),
			noEngineBelow("x", []string{"github.com/spf13/cobra", "github.com/dop251/goja"})},
		{"top level",
			topLevelOnly([]string{"README.md", ".ci", "bin"}, topLevel),
			topLevelOnly([]string{"README.md", "pkg"}, topLevel)},
		{"unfinished",
			nothingUnfinished(append(text("a.go", "// the "+mark+"s of a list\n"), append(text("x/package-lock.json", mark), text("profiles/known/testdata/lists/a.json", mark)...)...)),
			nothingUnfinished(text("docs/a.md", "fine\n"+mark+": the rest"))},
		{"unresolved conflict",
			nothingUnfinished(text("docs/a.md", "fine\n"+strings.Repeat("=", 7)+"\n> quoted\n")),
			nothingUnfinished(text("docs/a.md", "fine\n"+strings.Repeat("<", 7)+" HEAD\n"))},
		{"machine paths",
			noBuildMachinePaths(text("a.go", "/somewhere/else"), []string{"/build/here"}),
			noBuildMachinePaths(text("a.txtar", "cd /build/here/sub"), []string{"/build/here"})},
		{"download host",
			noDownloadHosts(text("x/package-lock.json", `{"integrity": "sha512-abc"}`)),
			noDownloadHosts(text("x/package-lock.json", `{"resolved": "https://example.com/a.tgz"}`))},
		{"long file",
			noLongFiles(append(text("a_test.go", long), text("b.md", long)...), nil),
			noLongFiles(text("a.go", long), nil)},
		{"long file, reviewed",
			noLongFiles(text("a.go", long), map[string]string{"a.go": "one table"}),
			noLongFiles(text("b.go", long), map[string]string{"a.go": "one table"})},
		{"skip with words",
			skipsSayWhy(text("a_test.go", "package a\nfunc TestA(t *testing.T) { t.Skip(\"needs a terminal\"); d.Skip() }")),
			skipsSayWhy(text("a_test.go", "package a\nfunc TestA(t *testing.T) { t.Skip() }"))},
		{"skip with empty words",
			skipsSayWhy(text("a_test.go", "package a\nfunc TestA(t *testing.T) { t.Skip(reason) }")),
			skipsSayWhy(text("a_test.go", "package a\nfunc TestA(t *testing.T) { t.Skip(\"\") }"))},
		{"skip now",
			skipsSayWhy(text("a.go", "not even Go")),
			skipsSayWhy(text("a_test.go", "package a\nfunc TestA(t *testing.T) { t.SkipNow() }"))},
	}
	for _, row := range rows {
		if len(row.good) != 0 {
			t.Errorf("%s: refuses what is right: %q", row.rule, row.good)
		}
		if len(row.bad) != 1 {
			t.Errorf("%s: found %d violations where there is one: %q", row.rule, len(row.bad), row.bad)
		}
	}
}

// moduleRoot returns the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	return filepath.Dir(strings.TrimSpace(goOutput(t, ".", nil, "env", "GOMOD")))
}

// machinePaths returns folders of the machine that runs this test, which nothing in the
// repository may name.
func machinePaths(t *testing.T, root string) []string {
	t.Helper()
	paths := []string{root, strings.TrimSpace(goOutput(t, root, nil, "env", "GOMODCACHE"))}
	// A short home like /root may occur in tests and documents.
	if home, err := os.UserHomeDir(); err == nil && strings.Count(filepath.ToSlash(home), "/") > 1 {
		paths = append(paths, home)
	}
	return paths
}

// listPackages returns our packages with their direct imports on every
// platform we build for, tests not counted.
func listPackages(t *testing.T, root string) []pkg {
	t.Helper()
	all := make(map[string][]string)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		env := []string{"GOOS=" + goos, "GOARCH=amd64", "CGO_ENABLED=0"}
		out := goOutput(t, root, env, "list", "-json=ImportPath,Imports", "./...")
		for dec := json.NewDecoder(strings.NewReader(out)); ; {
			var listed struct {
				ImportPath string
				Imports    []string
			}
			if err := dec.Decode(&listed); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("reading what go list says: %v", err)
			}
			name, ok := local(listed.ImportPath)
			if !ok {
				t.Fatalf("package %s is outside module %s", listed.ImportPath, module)
			}
			all[name] = append(all[name], listed.Imports...)
		}
	}
	var pkgs []pkg
	for name, imports := range all {
		slices.Sort(imports)
		pkgs = append(pkgs, pkg{Path: name, Imports: slices.Compact(imports)})
	}
	slices.SortFunc(pkgs, func(a, b pkg) int { return strings.Compare(a.Path, b.Path) })
	return pkgs
}

// listDeps returns every package that a binary links, on any platform.
func listDeps(t *testing.T, root, binary string) []string {
	t.Helper()
	var deps []string
	for _, goos := range []string{"linux", "darwin", "windows"} {
		env := []string{"GOOS=" + goos, "GOARCH=amd64", "CGO_ENABLED=0"}
		deps = append(deps, strings.Fields(goOutput(t, root, env, "list", "-deps", binary))...)
	}
	slices.Sort(deps)
	return slices.Compact(deps)
}

// readFiles reads every text file below root that git does not ignore.
func readFiles(t *testing.T, root string) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(ignored, entry.Name()) {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() || entry.Name() == ".git" { // in a work tree .git is a file
			return nil
		}
		content, err := os.ReadFile(full)
		if err != nil || bytes.IndexByte(content, 0) >= 0 {
			return err
		}
		rel, err := filepath.Rel(root, full)
		files = append(files, file{Path: filepath.ToSlash(rel), Text: string(content)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// goOutput runs the go command and returns its standard output.
func goOutput(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
