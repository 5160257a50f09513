package workspace_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codemode-bridge/bridge/workspace"

	"github.com/google/go-cmp/cmp"
)

// tree makes a folder to play in, where its links lead; files and links are named
// relative to it, a link as "name -> target".
func tree(t *testing.T, entries ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, target, link := strings.Cut(e, " -> ")
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		switch {
		case link && strings.HasPrefix(target, "/"):
			err = os.Symlink(filepath.Join(root, target), at)
		case link:
			err = os.Symlink(target, at)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o700)
		default:
			err = os.WriteFile(at, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLocate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("paths with slashes, and links, which need a right on Windows")
	}
	root := tree(t, "ws/src/main.go", "ws/out -> /elsewhere", "ws/same -> src", "ws/up -> ../elsewhere/x", "elsewhere/x/", "ws/loop -> loop", "ws-evil/f", "ws/deep/a/b/", "ws/far -> deep/a/b")
	w, err := workspace.New([]string{root + "/ws"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		Leads  string // below root
		Inside bool
		Doubt  bool
	}
	for path, want := range map[string]answer{
		"/ws":                       {"/ws", true, false},
		"/ws/":                      {"/ws", true, false},
		"/ws/src/main.go":           {"/ws/src/main.go", true, false},
		"/ws//src/./main.go":        {"/ws/src/main.go", true, false},
		"/ws/src/../new/dir/f":      {"/ws/new/dir/f", true, false},
		"/ws/new/f":                 {"/ws/new/f", true, false},
		"/ws/same/main.go":          {"/ws/src/main.go", true, false},
		"/ws/..":                    {"", false, false},
		"/ws/../elsewhere/x":        {"/elsewhere/x", false, false},
		"/ws/src/../../elsewhere":   {"/elsewhere", false, false},
		"/ws/out/f":                 {"/elsewhere/f", false, false},
		"/ws/up/f":                  {"/elsewhere/x/f", false, false},
		"/ws-evil/f":                {"/ws-evil/f", false, false},
		"/elsewhere/x":              {"/elsewhere/x", false, false},
		"/ws/far/../f":              {"", false, true}, // deep/a/f, or f
		"/ws/out/../src":            {"", false, true},
		"/ws/new/../../elsewhere/x": {"", false, true}, // new does not exist yet
		"/ws/loop/f":                {"", false, true},
		"/ws/%2e%2e/f":              {"", false, true},
		"/ws/a%2Fb":                 {"", false, true},
		`/ws/..\f`:                  {"", false, true},
		"/ws/a\x00b":                {"", false, true},
		"/ws/a\nb":                  {"", false, true},
		`/ws/.env"`:                 {"", false, true}, // .env, once a program has taken the quote away
		"/ws/.env\u00a0":            {"", false, true},
		`/ws/it's.txt`:              {`/ws/it's.txt`, true, false},
		"/ws/100%.txt":              {"/ws/100%.txt", true, false},
		"/ws/$id.tsx":               {"/ws/$id.tsx", true, false},
	} {
		got := w.Locate(root+path, "")
		is := answer{Inside: got.Inside, Doubt: got.Doubt != ""}
		if !is.Doubt {
			is.Leads = strings.TrimPrefix(got.Path, root)
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("%q (%s):\n%s", path, got.Doubt, diff)
		}
	}
	for path, inside := range map[string]bool{"main.go": true, "../src/main.go": true, "../../ws-evil/f": false, "~/x": false, "~": false, "$HOME/x": false, "file:///etc": false, "": false} {
		if got := w.Locate(path, root+"/ws/src"); got.Inside != inside {
			t.Errorf("%q in src: %+v", path, got)
		}
	}
	if got := w.Locate("main.go", ""); got.Inside || got.Doubt == "" {
		t.Errorf("relative to nothing: %+v", got)
	}
	for _, path := range []string{"/proc/self/cwd/x", "/dev/fd/3", "/dev/../proc/1/root"} {
		if got := w.Locate(path, ""); got.Doubt == "" {
			t.Errorf("%s: no doubt", path)
		}
	}
	if got := (workspace.Workspace{}).Locate(root+"/ws/src/main.go", ""); got.Inside {
		t.Error("a workspace of nothing has something inside")
	}
}

func TestWhatIsNoWorkspace(t *testing.T) {
	root := tree(t, "home/ann/work/", "home/ann/.config/bridge/config.json", "linked -> /home/ann")
	t.Setenv("HOME", root+"/home/ann")
	t.Setenv("USERPROFILE", root+"/home/ann")
	own := []string{filepath.Join(root, "home/ann/.config/bridge/config.json")}
	for _, folder := range []string{string(filepath.Separator), root, root + "/home", root + "/home/ann", root + "/linked", root + "/home/ann/.config", "work"} {
		if _, err := workspace.New([]string{filepath.FromSlash(folder)}, own); err == nil {
			t.Errorf("%s is a workspace", folder)
		}
	}
	w, err := workspace.New([]string{filepath.Join(root, "home/ann/work")}, own)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Locate(own[0], ""); got.Inside || got.Secret == "" {
		t.Errorf("the bridge's own file: %+v", got)
	}
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	root := tree(t, "a/b/", "a/c/", "d/")
	w, err := workspace.New([]string{filepath.Join(root, "a")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	below := func(names ...string) (all []string) {
		for _, n := range names {
			all = append(all, filepath.Join(root, n))
		}
		return all
	}
	for _, row := range []struct{ to, want []string }{
		{nil, nil},
		{below("a/b"), below("a/b")},
		{below("a/b", "d"), below("a/b")},
		{below(""), below("a")},
		{below("a"), below("a")},
		{below("nowhere"), nil},
	} {
		if diff := cmp.Diff(row.want, w.Narrow(row.to).Folders()); diff != "" {
			t.Errorf("to %v:\n%s", row.to, diff)
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	w := workspace.Workspace{}
	for path, want := range map[string][2]bool{ // secret, runs later
		"/ws/.env":                        {true, false},
		"/ws/.env.production":             {true, false},
		"/ws/.env.example":                {false, false},
		"/ws/environment.md":              {false, false},
		"/ws/.ENV":                        {true, false},
		"/ws/.env. ":                      {true, false},
		"/home/ann/.ssh/known_hosts":      {true, false},
		"/home/ann/.ssh":                  {true, false},
		"/ws/keys/server.pem":             {true, false},
		"/ws/id_ed25519.pub":              {false, false},
		"/home/ann/.aws/config":           {true, false},
		"/home/ann/.docker/config.json":   {true, false},
		"/ws/config.json":                 {false, false},
		"/home/ann/.config/gcloud/x/y":    {true, true},
		"/etc/shadow":                     {true, false},
		"/ws/etc/shadow":                  {false, false},
		"/ws/.git/hooks/pre-commit":       {false, true},
		"/ws/.git/config":                 {false, true},
		"/ws/.gitignore":                  {false, false},
		"/ws/.github/workflows/ci.yml":    {false, true},
		"/ws/.github/CONTRIBUTING.md":     {false, false},
		"/ws/Jenkinsfile":                 {false, true},
		"/ws/.vscode/tasks.json":          {false, true},
		"/ws/.claude/settings.json":       {false, true},
		"/home/ann/.bashrc":               {false, true},
		"/etc/cron.d/x":                   {false, true},
		"/home/ann/.config/autostart/x":   {false, true},
		"/ws/src/systemd.go":              {false, false},
		"/ws/package.json":                {false, true},
		"/ws/web/vite.config.ts":          {false, true},
		"/ws/.eslintrc.cjs":               {false, true},
		"/ws/mkdocs.yml":                  {false, true},
		"/ws/tests/conftest.py":           {false, true},
		"/ws/crates/x/build.rs":           {false, true},
		"/ws/Makefile":                    {false, true},
		"/ws/deploy/Dockerfile.prod":      {false, true},
		"/ws/docker-compose.test.yml":     {false, true},
		"/ws/package-lock.json":           {false, false},
		"/ws/tsconfig.json":               {false, false},
		"/ws/src/config.js":               {false, false},
		"/ws/src/main.py":                 {false, false},
		"/home/ann/.zsh_history":          {true, false},
		"/home/ann/.config/git/config":    {false, true},
		"/home/ann/.local/bin/ls":         {false, true},
		"/ws/docs/HEAD":                   {false, true}, // of a bare repository
		"/ws/docs/heading.md":             {false, false},
		"/ws/node_modules/x/index.js":     {false, true},
		"/ws/node_modules/.bin/tsc":       {false, true},
		"/ws/.venv/bin/python":            {false, true},
		"/ws/.eslintrc.json":              {false, true},
		"/ws/.lintstagedrc":               {false, true},
		"/ws/compose.override.yaml":       {false, true},
		"/ws/.gitlab/ci/build.yml":        {false, true},
		"/ws/.gi\u200ct/hooks/x":          {false, true},
		"/ws/.hu\u017fky/pre-commit":      {false, true},
		"/ws/make\ufb01le":                {false, true},
		"/ws/.ENVRC":                      {true, true},
		"/ws/terraform.tfstate.backup":    {true, false},
		"/Users/ann/Library/LaunchAgents": {false, true},
	} {
		got := w.Locate(path, "")
		if is := [2]bool{got.Secret != "", got.RunsLater != ""}; is != want {
			t.Errorf("%s: secret and runs later are %v, want %v (%q, %q)", path, is, want, got.Secret, got.RunsLater)
		}
	}
}

// FuzzLocate holds what is inside to be inside by the system's own reading.
func FuzzLocate(f *testing.F) {
	for _, seed := range []string{"src/main.go", "../x", "out/../src", "same/../out/x", "./././", "up//f"} {
		f.Add(seed)
	}
	root := f.TempDir()
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		f.Fatal(err)
	}
	for _, dir := range []string{"ws/src", "elsewhere/x"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			f.Fatal(err)
		}
	}
	for name, target := range map[string]string{"ws/out": "../elsewhere", "ws/same": "src", "ws/src/up": ".."} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			f.Skip("no links here: ", err)
		}
	}
	ws := filepath.Join(root, "ws")
	w, err := workspace.New([]string{ws}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := w.Locate(path, ws)
		if !got.Inside {
			return
		}
		for _, reading := range []string{ws + "/" + path, filepath.Join(ws, path)} {
			if strings.HasPrefix(path, "/") {
				reading = path
			}
			real, err := filepath.EvalSymlinks(reading)
			if err != nil {
				continue // it does not exist
			}
			if real != ws && !strings.HasPrefix(real, ws+"/") {
				t.Errorf("%q is inside, and leads to %s", path, real)
			}
		}
	})
}

// A workspace that is found later is found once, by whatever needs it first, and is the
// same from then on, also in JSON.
func TestLater(t *testing.T) {
	t.Parallel()
	root := tree(t, "ws/", "own")
	for name, use := range map[string]func(workspace.Workspace){
		"folders": func(w workspace.Workspace) { w.Folders() },
		"locate":  func(w workspace.Workspace) { w.Locate(filepath.Join(root, "ws", "f"), "") },
		"zero":    func(w workspace.Workspace) { w.IsZero() },
		"json":    func(w workspace.Workspace) { json.Marshal(w) },
		"narrow":  func(w workspace.Workspace) { w.Narrow(nil) },
	} {
		found := 0
		w := workspace.Later(func() workspace.Workspace {
			found++
			now, err := workspace.New([]string{filepath.Join(root, "ws")}, []string{filepath.Join(root, "own")})
			if err != nil {
				t.Error(err)
			}
			return now
		})
		if found != 0 {
			t.Errorf("%s: found before it is needed", name)
		}
		use(w)
		if found != 1 {
			t.Errorf("%s: found %d times", name, found)
		}
		text, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		var again workspace.Workspace
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		for _, w := range []workspace.Workspace{w, again} {
			if diff := cmp.Diff([]string{filepath.Join(root, "ws")}, w.Folders()); diff != "" || w.IsZero() {
				t.Errorf("%s: (-want +got)\n%s", name, diff)
			}
			if !w.Locate(filepath.Join(root, "ws", "f"), "").Inside || w.Locate(filepath.Join(root, "own"), "").Secret == "" ||
				!w.Narrow([]string{filepath.Join(root, "ws")}).Locate(filepath.Join(root, "ws", "f"), "").Inside {
				t.Errorf("%s: what is inside is not, or what is ours", name)
			}
		}
		if found != 1 {
			t.Errorf("%s: found %d times in all", name, found)
		}
	}
}
