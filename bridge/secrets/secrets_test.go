package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/secrets"
)

// TestMain makes this program the command that the tests run: what it does stands in its
// first argument.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "do-") {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "do-print":
		fmt.Print(strings.Join(os.Args[2:], "|"))
	case "do-fail":
		fmt.Print("canary-printed")
		fmt.Fprintln(os.Stderr, "cannot\x1b[31m sign in with canary-printed\nsecond line "+strings.Repeat("x", 2000))
		os.Exit(3)
	case "do-bytes":
		fmt.Print("canary\xff")
	case "do-much":
		fmt.Print(strings.Repeat("y", 70<<10))
	case "do-count":
		f, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		fmt.Fprintln(f, "ran")
		fmt.Println(os.Getenv("SECRETS_TEST"))
	case "do-hang":
		fmt.Print("canary-half")
		time.Sleep(time.Hour)
	case "do-where":
		here, err := os.Getwd()
		if err != nil {
			panic(err)
		}
		fmt.Println(here)
	}
	os.Exit(0)
}

func command(t *testing.T, words ...string) secrets.Reference {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return secrets.Reference{Kind: secrets.Exec, Name: "'" + self + "' " + strings.Join(words, " ")}
}

func one(t *testing.T, r secrets.Resolver, ref secrets.Reference) (string, *secrets.Error) {
	t.Helper()
	found := r.Resolve(t.Context(), []secrets.Reference{ref})[ref]
	return found.Reveal(), found.Err
}

func TestParse(t *testing.T) {
	t.Parallel()
	for inner, want := range map[string]string{ // the message; empty: it is good
		"keyring:GITHUB_TOKEN": "", "keyring:a.b-c": "", "file:~/x": "", "file:C:\\x": "", `exec:op read "op://a b/c"`: "", "exec:x 'a|b'": "",
		"keyring:": "does not name a secret", "keyring:a b": "does not name a secret", "keyring:-x": "does not name a secret", "keyring:A:-b": "does not name a secret",
		"file:": "names no file", "file: ": "names no file", "file:///etc/x": "takes a path",
		"exec:": "names no program", "exec:''": "names no program", "exec:a | b": "no shell runs", "exec:a $X": "no shell runs", "exec:a > b": "no shell runs",
		"exec:a 'b": "without its end", `exec:a "b`: "without its end",
		"TOKEN": "not ours", "env:TOKEN": "not ours", "input:x": "not ours", "keyring": "not ours", "TOKEN:-keyring:x": "not ours",
	} {
		r, ours, err := secrets.Parse(inner)
		got := ""
		var wrong *secrets.Error
		switch {
		case !ours:
			got = "not ours"
		case errors.As(err, &wrong):
			got = wrong.Message
		case r.String() != "${"+inner+"}":
			t.Errorf("%q is written %s", inner, r)
		}
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q, want %q", inner, got, want)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	a, b := secrets.Reference{Kind: secrets.Keyring, Name: "A"}, secrets.Reference{Kind: secrets.File, Name: "b"}
	env := func(name string) (string, bool) { return "value", name == "V" }
	const text = "$$x ${V} ${keyring:A}/${file:b}${keyring:A}"
	for name, row := range map[string]struct {
		found map[secrets.Reference]secrets.Secret
		text  string
		slips int
	}{
		"nobody asked": {nil, "", 0},
		"one is there": {map[secrets.Reference]secrets.Secret{a: secrets.Found("1")}, "", 0},
		"both":         {map[secrets.Reference]secrets.Secret{a: secrets.Found("${V}"), b: secrets.Found("$$")}, "$x value ${V}/$$${V}", 0}, // filled in once
		"one is wrong": {map[secrets.Reference]secrets.Secret{a: secrets.Found("1"), b: {Err: &secrets.Error{Message: "no"}}}, "", 1},
	} {
		x, slips := secrets.Expand(text, env, row.found)
		if x.Text != row.text || len(slips) != row.slips || x.Missing != (row.text == "") || x.Origin != "$x value ${keyring:A}/${file:b}${keyring:A}" || len(x.Named) != 3 {
			t.Errorf("%s: %+v, %v", name, x, slips)
		}
	}
}

// A command is started without a shell, in the configuration's folder, with the bridge's
// environment, and once.
func TestCommands(t *testing.T) {
	t.Parallel()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := secrets.Resolver{Folder: folder, Environ: append(os.Environ(), "SECRETS_TEST=from the environment")}
	for words, want := range map[string]string{
		`do-print a  'b c' "d 'e' \"f\"" g"h"i '' \n`: `a|b c|d 'e' "f"|ghi||\n`,
		`do-print '$HOME' "a|b;c" ~ *`:                `$HOME|a|b;c|~|*`,
		`do-where`:                                    folder,
	} {
		if got, err := one(t, r, command(t, words)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", words, got, err, want)
		}
	}
	counted := filepath.Join(folder, "counted")
	ref := command(t, "do-count", "'"+counted+"'")
	found := r.Resolve(t.Context(), []secrets.Reference{ref, ref, ref})
	text, err := os.ReadFile(counted)
	if err != nil || string(text) != "ran\n" || found[ref].Reveal() != "from the environment" {
		t.Errorf("it ran %q and gave %q, %v, %v", text, found[ref].Reveal(), found[ref].Err, err)
	}
}

// A resolver with a memory asks for nothing twice, be it found or not; another folder is
// another place.
func TestMemory(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	counted := filepath.Join(folder, "counted")
	runs, fails, file := command(t, "do-count", "'"+counted+"'"), command(t, "do-fail"), secrets.Reference{Kind: secrets.File, Name: "token"}
	put := func(in, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(in, "token"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(folder, "one")
	var memory secrets.Memory
	r := secrets.Resolver{Folder: folder, Environ: append(os.Environ(), "SECRETS_TEST=x"), Memory: &memory}
	first := r.Resolve(t.Context(), []secrets.Reference{runs, fails})
	again := r.Resolve(t.Context(), []secrets.Reference{runs, file, fails, runs})
	put(folder, "two")
	third := r.Resolve(t.Context(), []secrets.Reference{file})
	if text, err := os.ReadFile(counted); err != nil || string(text) != "ran\n" {
		t.Errorf("it ran %q, %v", text, err)
	}
	if again[runs].Reveal() != "x" || again[fails].Err == nil || again[fails].Err != first[fails].Err || again[file].Reveal() != "one" || third[file].Reveal() != "one" {
		t.Errorf("it remembers %v, then %v", again, third)
	}
	elsewhere := t.TempDir()
	put(elsewhere, "three")
	other := secrets.Resolver{Folder: elsewhere, Memory: &memory}
	if got, err := one(t, other, file); got != "three" {
		t.Errorf("in another folder: %q, %v", got, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	var fresh secrets.Memory
	r.Memory = &fresh
	r.Resolve(ended, []secrets.Reference{file})
	if got, err := one(t, r, file); got != "two" {
		t.Errorf("what was interrupted is remembered: %q, %v", got, err)
	}
}

func TestCommandsThatFail(t *testing.T) {
	t.Parallel()
	r := secrets.Resolver{Folder: t.TempDir(), Timeout: time.Minute}
	for words, want := range map[string]string{
		"do-fail":  "gave no secret: exit status 3: cannot[31m sign in with [hidden] second line xxx",
		"do-much":  "printed more than 64 KB",
		"do-print": "is empty",
		"do-bytes": "is not a text",
	} {
		_, err := one(t, r, command(t, words))
		if err == nil || !strings.Contains(err.Message, want) || strings.Contains(err.Message+err.Hint, "canary") || len(err.Message) > 1000 {
			t.Errorf("%s: %+v", words, err)
		}
	}
	if _, err := one(t, r, secrets.Reference{Kind: secrets.Exec, Name: "no-such-program-7f3a x"}); err == nil || err.Message != "the command no-such-program-7f3a is not in PATH" {
		t.Errorf("%+v", err)
	}
	if _, err := one(t, r, secrets.Reference{Kind: secrets.Exec, Name: "./no-such-program x"}); err == nil || !strings.Contains(err.Message, "gave no secret: no such file") && runtime.GOOS != "windows" {
		t.Errorf("%+v", err)
	}
	r.Timeout = 50 * time.Millisecond
	if _, err := one(t, r, command(t, "do-hang")); err == nil || !strings.Contains(err.Message, "it did not end within 50ms") || strings.Contains(err.Message, "canary") {
		t.Errorf("%+v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the bridge ends"))
	r.Timeout = time.Minute
	hangs := command(t, "do-hang")
	if err := r.Resolve(ctx, []secrets.Reference{hangs})[hangs].Err; err == nil || !strings.Contains(err.Message, "the bridge ends") {
		t.Errorf("%+v", err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	folder, home := t.TempDir(), t.TempDir()
	write := func(path, text string, mode os.FileMode) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(filepath.Join(folder, "a"), "alpha\n", 0o600)
	write(filepath.Join(home, "b"), "beta\r\n", 0o400)
	write(filepath.Join(folder, "two"), "line\n\n", 0o600)
	write(filepath.Join(folder, "empty"), "\n", 0o600)
	write(filepath.Join(folder, "long"), strings.Repeat("x", 64<<10+1), 0o600)
	write(filepath.Join(folder, "most"), strings.Repeat("x", 64<<10)+"\n", 0o600)
	write(filepath.Join(folder, "nul"), "canary\x00", 0o600)
	write(filepath.Join(folder, "open"), "canary", 0o640)
	r := secrets.Resolver{Folder: folder, Home: home}
	for path, want := range map[string]string{
		"a": "alpha", "./a": "alpha", filepath.Join(folder, "a"): "alpha", "~/b": "beta", "two": "line\n", "most": strings.Repeat("x", 64<<10),
	} {
		if got, err := one(t, r, secrets.Reference{Kind: secrets.File, Name: path}); err != nil || got != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	wrong := map[string]string{"gone": "there is no file " + filepath.Join(folder, "gone"), ".": "is not a file", "empty": "is empty", "long": "longer than 64 KB", "nul": "not a text"}
	if runtime.GOOS != "windows" {
		wrong["open"] = "others may use the file " + filepath.Join(folder, "open") + ": its mode is 0640"
	}
	for path, want := range wrong {
		_, err := one(t, r, secrets.Reference{Kind: secrets.File, Name: path})
		if err == nil || !strings.Contains(err.Message, want) || strings.Contains(err.Message+err.Hint, "canary") {
			t.Errorf("%s: %+v, want %q", path, err, want)
		}
	}
	if runtime.GOOS != "windows" {
		if _, err := one(t, r, secrets.Reference{Kind: secrets.File, Name: "open"}); err.Hint != "chmod 600 "+filepath.Join(folder, "open") {
			t.Errorf("%+v", err)
		}
	}
	if _, err := one(t, secrets.Resolver{Folder: folder}, secrets.Reference{Kind: secrets.File, Name: "~/b"}); err == nil || !strings.Contains(err.Message, "home folder is not known") {
		t.Errorf("%+v", err)
	}
}

// keys is a keyring in memory. If stuck, it never answers.
type keys struct {
	mu    sync.Mutex
	names []string
	stuck chan struct{}
}

func (k *keys) Get(name string) (string, error) {
	if k.stuck != nil {
		<-k.stuck
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names = append(k.names, name)
	return "secret of " + name, nil
}
func (*keys) Set(string, string) error { return nil }
func (*keys) Delete(string) error      { return secrets.ErrNoKey }

func TestKeyringThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		refs := []secrets.Reference{{Kind: secrets.Keyring, Name: "A"}, {Kind: secrets.Keyring, Name: "B"}}
		began := time.Now()
		found := (&secrets.Resolver{Keyring: &keys{stuck: stuck}}).Resolve(t.Context(), refs)
		for _, ref := range refs {
			if err := found[ref].Err; err == nil || !strings.Contains(err.Message, "it did not answer within 10s") {
				t.Errorf("%s: %+v", ref, err)
			}
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v: a keyring that does not answer is asked once", took)
		}
		close(stuck)
	})
	ref := secrets.Reference{Kind: secrets.Keyring, Name: "A"}
	if err := (&secrets.Resolver{}).Resolve(t.Context(), []secrets.Reference{ref})[ref].Err; err == nil || !strings.Contains(err.Hint, "${file:PATH}") {
		t.Errorf("without a keyring: %+v", err)
	}
}

// Whatever prints what was found shows no secret.
func TestNothingPrintsSecrets(t *testing.T) {
	t.Parallel()
	ref := secrets.Reference{Kind: secrets.Keyring, Name: "A"}
	found := (&secrets.Resolver{Keyring: &keys{}}).Resolve(t.Context(), []secrets.Reference{ref})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, found); strings.Contains(text, "secret of") {
			t.Errorf("%s shows %s", verb, text)
		}
	}
	if found[ref].Reveal() != "secret of A" {
		t.Errorf("%q", found[ref].Reveal())
	}
}
