package pending

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/config"
	"codemode-bridge/profiles"

	"github.com/google/go-cmp/cmp"
)

// Edits that add up: whatever is taken over first, and however the file is
// named, what is looser than what was confirmed waits for an approver.

// A text is a configuration that edits change.
type text map[string]any

// in returns the object at keys, which is made where there is none.
func (c text) in(keys ...string) map[string]any {
	at := map[string]any(c)
	for _, key := range keys {
		if at[key] == nil {
			at[key] = map[string]any{}
		}
		at = at[key].(map[string]any)
	}
	return at
}

func (c text) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // what tests write can be written
	}
	return string(b)
}

// with is the configuration after edits.
func (c text) with(edits ...turn) text {
	var next text
	if err := json.Unmarshal([]byte(c.String()), &next); err != nil {
		panic(err) // what was written can be read
	}
	for _, e := range edits {
		e(next)
	}
	return next
}

// A turn is one edit of it.
type turn func(text)

func set(value any, keys ...string) turn {
	last := len(keys) - 1
	return func(c text) { c.in(keys[:last]...)[keys[last]] = value }
}

func drop(keys ...string) turn {
	last := len(keys) - 1
	return func(c text) { delete(c.in(keys[:last]...), keys[last]) }
}

func server(more map[string]any) map[string]any {
	s := map[string]any{"url": "https://s.example/mcp", "newTools": "quarantine"}
	for key, value := range more {
		s[key] = value
	}
	return s
}

func people(names ...string) []any {
	all := []any{}
	for _, name := range names {
		name, role, _ := strings.Cut(name, ":")
		if role == "" {
			role = "approver"
		}
		all = append(all, map[string]any{"name": name, "role": role, "sha256": fmt.Sprintf("%064x", name)})
	}
	return all
}

// tokens are those of clients: pairs of a name and what the digest is made of.
func tokens(pairs ...string) []any {
	all := []any{}
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, map[string]any{"name": pairs[i], "sha256": fmt.Sprintf("%064x", pairs[i+1])})
	}
	return all
}

// confirmedText is what edits begin with.
func confirmedText() text {
	return text{
		"servers": map[string]any{
			"kept": server(map[string]any{"perSession": true, "elicitation": "deny", "tools": map[string]any{"deny": []any{"drop"}}, "auth": map[string]any{"per": "principal", "scopes": []any{"read"}}, "headers": map[string]any{"X-Key": "k"}}), "trusted": server(map[string]any{"trustAnnotations": true, "newTools": "allow"}), "time": map[string]any{"builtin": "time"},
		},
		"evaluation": map[string]any{"defaultProfile": "p", "profiles": map[string]any{
			"p":       map[string]any{"denylist": []any{"kept__drop_*"}, "asklist": []any{"kept__*"}, "default": "ask"},
			"relaxed": map[string]any{"default": "risk"}, "strict": map[string]any{"default": "deny"},
		}},
		"id": "work", "http": map[string]any{"tokens": tokens("client", "client", "other", "other"), "allowedHosts": []any{"bridge.example"}},
		"audit": map[string]any{"durability": "all", "keep": "90d"}, "metrics": map[string]any{"listen": "127.0.0.1:7422", "token": "for metrics", "tools": 5},
		"approvals": map[string]any{
			"approvers": people("ann:admin", "bob", "cyd"), "separateApprover": true, "allowedHosts": []any{"approve.example"},
			"oidc": map[string]any{"issuer": "https://login.example", "clientId": "page"},
		},
	}
}

// files are where a configuration is tried: in process, as starts and reloads.
type files struct {
	*testing.T
	folder string
}

func newFiles(t *testing.T, first text) files {
	t.Helper()
	f := files{t, t.TempDir()}
	f.write("config.json", first.String())
	return f
}

func (f files) write(name, text string) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.folder, name), []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
}

// A start is the program as somebody starts it with a name of the file.
type start struct {
	History
	name, environment string // of the file, and --env
}

func (f files) app(name, environment string) *start {
	a := &start{name: filepath.Join(f.folder, name), environment: environment}
	a.Policy = func(file string) profiles.Options { return profiles.Options{OwnFiles: []string{file}} }
	a.Env = func(name string) (string, bool) {
		if name == "HOME" || name == "USERPROFILE" {
			return f.folder, true
		}
		return "", false
	}
	return a
}

func (a *start) load() (*config.Config, error) {
	if a.environment == "" {
		return config.Load(a.name, a.Env, a.Policy(a.name))
	}
	overlay, err := config.OverlayName(a.name, a.environment)
	if err != nil {
		return nil, err
	}
	return config.LoadOverlaid(a.name, overlay, a.Env, a.Policy(a.name))
}

// begin is what a bridge starts with, and what the file says.
func (a *start) begin() (inForce, file *config.Config, err error) {
	file, err = a.load()
	if err != nil {
		return nil, nil, err
	}
	c, err := a.Judge(file, nil)
	switch {
	case c == nil || err != nil:
		return file, file, err
	case !c.CanGoOn():
		return nil, file, errors.New(strings.Join(c.Why, "; "))
	}
	inForce, err = a.GoOn(c)
	return inForce, file, err
}

// taken starts with the file, or reloads it where running is not nil. It
// returns what is in force then, and why the file waits; empty if it does not.
func (f files) taken(a *start, running *config.Config) (*config.Config, string) {
	f.Helper()
	cfg, err := a.load()
	if err != nil {
		f.Fatal(err)
	}
	c, err := a.Judge(cfg, running)
	if err != nil {
		f.Fatal(err)
	}
	if c != nil {
		return c.Old, strings.Join(c.Why, "; ")
	}
	if _, err := a.Keep(cfg, "", "", time.Now()); err != nil {
		f.Fatal(err)
	}
	return cfg, ""
}

// loosenings are edits each of which waits.
var loosenings = map[string]turn{
	"nothing is denied":         drop("evaluation", "profiles", "p", "denylist"),
	"another default profile":   set("relaxed", "evaluation", "defaultProfile"),
	"nobody is asked":           set(false, "evaluation", "enabled"),
	"a looser profile":          set("allow", "evaluation", "profiles", "strict", "default"),
	"the only admin is gone":    set(people("bob", "cyd"), "approvals", "approvers"),
	"nobody is left":            drop("approvals", "approvers"),
	"somebody is new":           set(people("ann:admin", "bob", "cyd", "eve"), "approvals", "approvers"),
	"somebody may more":         set(people("ann:admin", "bob:admin", "cyd"), "approvals", "approvers"),
	"who asks may allow":        drop("approvals", "separateApprover"),
	"another provider":          set("https://mallory.example", "approvals", "oidc", "issuer"),
	"another claim":             set("name", "approvals", "oidc", "claim"),
	"no provider":               drop("approvals", "oidc"),
	"another page":              set("127.0.0.1:9", "approvals", "listen"),
	"no page":                   set("off", "approvals", "listen"),
	"another host":              set([]any{"approve.example", "mallory.example"}, "approvals", "allowedHosts"),
	"a host less":               drop("approvals", "allowedHosts"),
	"a server is trusted":       set(true, "servers", "kept", "trustAnnotations"),
	"a server's new tools":      set("allow", "servers", "kept", "newTools"),
	"a server's changed tools":  set("allow", "servers", "kept", "changedTools"),
	"a server is another":       set("https://mallory.example/mcp", "servers", "kept", "url"),
	"a server as somebody else": set(map[string]any{"X-Key": "another"}, "servers", "kept", "headers"),
	"a server may use models":   set("ask", "servers", "kept", "sampling"),
	"a server may ask":          drop("servers", "kept", "elicitation"),
	"a server is shared":        drop("servers", "kept", "perSession"),
	"a login is shared":         drop("servers", "kept", "auth", "per"),
	"a server shows more":       drop("servers", "kept", "tools"),
	"a new server":              set(map[string]any{"url": "https://new.example/mcp"}, "servers", "new"),
	"a new server is known":     set(map[string]any{"url": "https://new.example/mcp", "newTools": "quarantine", "known": "time"}, "servers", "new"),
	"a new server is trusted":   set(server(map[string]any{"trustAnnotations": true}), "servers", "new"),
	"a new server may change":   set(server(map[string]any{"changedTools": "allow"}), "servers", "new"),
	"no records":                set(false, "audit", "enabled"),
	"records elsewhere":         set("elsewhere.db", "audit", "path"),
	"no tokens":                 drop("http", "tokens"),
	"a token for somebody else": set(tokens("bob", "client", "other", "other"), "http", "tokens"),
	"two who change places":     set(tokens("client", "other", "other", "client"), "http", "tokens"),
	"another token":             set(tokens("client", "another", "other", "other"), "http", "tokens"),
	"a token more":              set(tokens("client", "client", "other", "other", "new", "new"), "http", "tokens"),
	"another endpoint":          set("127.0.0.1:9", "http", "listen"),
	"an endpoint of more hosts": set([]any{"bridge.example", "mallory.example"}, "http", "allowedHosts"),
	"an endpoint of more pages": set([]any{"https://mallory.example"}, "http", "allowedOrigins"),
	"metrics elsewhere":         set("127.0.0.1:9", "metrics", "listen"),
	"metrics for all":           drop("metrics", "token"),
	"metrics for another":       set("for mallory", "metrics", "token"),
	"metrics at more hosts":     set([]any{"mallory.example"}, "metrics", "allowedHosts"),
	"metrics of more tools":     set(6, "metrics", "tools"),
	"another id":                set("play", "id"),
	"no id":                     drop("id"),
	"records for less long":     set("30d", "audit", "keep"),
	"fewer records":             set(100, "audit", "keepRows"),
	"records that may be lost":  drop("audit", "durability"),
	"a server's key rotates":    set([]any{"X-Key"}, "servers", "kept", "rotating"),
	"a server's meaning":        set("filesystem", "servers", "kept", "known"),
	"a server's roots":          set([]any{"file:///home"}, "servers", "kept", "roots"),
	"a login for more":          set([]any{"read", "write"}, "servers", "kept", "auth", "scopes"),
	"a login for whatever":      drop("servers", "kept", "auth", "scopes"),
	"a webhook":                 set([]any{map[string]any{"url": "https://mallory.example", "secret": "long enough to sign with"}}, "approvals", "webhooks"),
	"summaries":                 set(true, "approvals", "summaries"),
	"more questions":            set(21, "approvals", "budget"),
	"more questions at a time":  set("1m", "approvals", "budgetTime"),
	"more refused questions":    set(51, "approvals", "flood"),
}

// harmless are edits that are taken over at once.
var harmless = map[string]turn{
	"nothing":                    func(text) {},
	"more is denied":             set([]any{"trusted__*"}, "evaluation", "profiles", "relaxed", "denylist"),
	"a new server in quarantine": set(server(nil), "servers", "another"),
	"a built-in server":          set(map[string]any{"builtin": "utils"}, "servers", "utils"),
	"a server is gone":           drop("servers", "trusted"),
	"a server is off":            set(true, "servers", "trusted", "disabled"),
	"a server is in quarantine":  set(map[string]any{"url": "https://s.example/mcp", "quarantine": true}, "servers", "trusted"),
	"a profile is gone":          drop("evaluation", "profiles", "strict"),
	"a client is gone":           set(tokens("client", "client"), "http", "tokens"),
	"a host is gone":             drop("http", "allowedHosts"),
	"metrics of fewer tools":     set(4, "metrics", "tools"),
	"records for longer":         drop("audit", "keep"),
	"fewer questions":            set(5, "approvals", "budget"),
}

func TestEditsThatAddUpAreHeld(t *testing.T) {
	first := confirmedText()
	for other, change := range harmless {
		t.Run(other, func(t *testing.T) {
			t.Parallel()
			f := newFiles(t, first)
			a := f.app("config.json", "")
			running, why := f.taken(a, nil)
			if why != "" {
				t.Fatalf("the first start waits: %s", why)
			}
			held := func(when string) {
				t.Helper()
				for loosening, loosen := range loosenings {
					both := first.with(loosen).with(change)
					if both.String() == first.with(change).String() {
						continue // the one undoes the other
					}
					f.write("config.json", both.String())
					if _, why := f.taken(a, running); why == "" {
						t.Errorf("%s, %s: taken over", loosening, when)
					}
				}
			}
			held("at once, or one after the other")
			f.write("config.json", first.with(change).String())
			if _, why = f.taken(a, running); why != "" {
				t.Errorf("alone it waits: %s", why)
			}
			running = nil // what is not in memory is on disk
			held("the harmless one first")
		})
	}
}

// Each of them waits by itself, too, so that it makes no way for another.
func TestLooseningsAreHeld(t *testing.T) {
	f := newFiles(t, confirmedText())
	a := f.app("config.json", "")
	f.taken(a, nil)
	for name, loosen := range loosenings {
		f.write("config.json", confirmedText().with(loosen).String())
		if _, why := f.taken(a, nil); why == "" {
			t.Errorf("%s: taken over", name)
		}
	}
}

// Edits that only take away are taken over, and do not make way for others
// that give it back in another form.
func TestTakenAwayAndGivenBack(t *testing.T) {
	for name, order := range map[string][]turn{
		"no approvers, then no denials":           {drop("approvals", "approvers"), drop("evaluation", "profiles", "p", "denylist")},
		"no server, then a trusted one":           {drop("servers", "kept"), set(server(map[string]any{"trustAnnotations": true}), "servers", "kept")},
		"no server, then one out of quarantine":   {drop("servers", "kept"), set(map[string]any{"url": "https://s.example/mcp"}, "servers", "kept")},
		"no server, then another of its name":     {drop("servers", "kept"), set(server(map[string]any{"url": "https://mallory.example/mcp", "perSession": true, "elicitation": "deny"}), "servers", "kept")},
		"a server off, then on and trusted":       {set(true, "servers", "kept", "disabled"), set(server(map[string]any{"trustAnnotations": true}), "servers", "kept")},
		"no trust, then the trust that there was": {set(false, "servers", "trusted", "trustAnnotations"), set(true, "servers", "trusted", "trustAnnotations")},
		"no profile, then a loose one":            {drop("evaluation", "profiles", "strict"), set("risk", "evaluation", "profiles", "strict", "default")},
		"without somebody, then with them":        {set(people("ann:admin", "cyd"), "approvals", "approvers"), set(people("ann:admin", "bob", "cyd"), "approvals", "approvers")},
		"one after the other":                     {set(people("ann:admin", "cyd"), "approvals", "approvers"), set(people("ann:admin"), "approvals", "approvers"), drop("approvals", "approvers")},
		"less denied of more":                     {set([]any{"kept__drop_*", "kept__write"}, "evaluation", "profiles", "p", "denylist"), set([]any{"kept__write"}, "evaluation", "profiles", "p", "denylist")},
	} {
		for _, cold := range []bool{false, true} {
			f := newFiles(t, confirmedText())
			a := f.app("config.json", "")
			running, why := f.taken(a, nil)
			now := confirmedText()
			for _, e := range order {
				now = now.with(e)
				f.write("config.json", now.String())
				if cold {
					running = nil
				}
				running, why = f.taken(a, running)
			}
			if why == "" {
				t.Errorf("%s (cold %t): taken over", name, cold)
			}
		}
	}
}

// What waits under one name of the file waits under every other, and what an
// overlay hides of an edit is seen where there is none.
func TestHeldUnderEveryName(t *testing.T) {
	loosen := drop("evaluation", "profiles", "p", "denylist")
	overlay := `{"evaluation": {"profiles": {"p": {"denylist": ["*__*"]}}}}` // no edit of p's denials shows under it
	for _, row := range []struct {
		name          string
		first, second [2]string // the name of the file, and the environment
		edited        string    // the file that is edited
		text          string
		waits         bool
	}{
		{"as it was", [2]string{"config.json"}, [2]string{"config.json"}, "config.json", "", true},
		{"by a link", [2]string{"config.json"}, [2]string{"soft.json"}, "config.json", "", true},
		{"first by a link", [2]string{"soft.json"}, [2]string{"config.json"}, "config.json", "", true},
		{"by a linked folder", [2]string{"config.json"}, [2]string{"around/config.json"}, "config.json", "", true},
		{"by a hard link", [2]string{"config.json"}, [2]string{"hard.json"}, "config.json", "", true},
		{"under an overlay that hides it", [2]string{"config.json", "prod"}, [2]string{"config.json", "prod"}, "config.json", "", true},
		{"without the overlay", [2]string{"config.json", "prod"}, [2]string{"config.json"}, "config.json", "", true},
		{"under another overlay", [2]string{"config.json", "prod"}, [2]string{"config.json", "test"}, "config.json", "", true},
		{"under an overlay for the first time", [2]string{"config.json"}, [2]string{"config.json", "prod"}, "config.json", "", true},
		{"by a link, under its overlay", [2]string{"config.json"}, [2]string{"soft.json", "prod"}, "config.json", "", true},
		{"a looser overlay", [2]string{"config.json", "prod"}, [2]string{"config.json", "prod"}, "config.prod.json", `{"evaluation": {"profiles": {"p": {"denylist": []}}}}`, true},
		{"an overlay that is new and looser", [2]string{"config.json"}, [2]string{"config.json", "new"}, "config.new.json", `{"evaluation": {"profiles": {"p": {"denylist": []}}}}`, true},
		{"the file alone, of which an overlay is edited", [2]string{"config.json", "prod"}, [2]string{"config.json"}, "config.prod.json", `{"evaluation": {"profiles": {"p": {"denylist": []}}}}`, false},
		{"an overlay that is new and stricter", [2]string{"config.json"}, [2]string{"config.json", "new"}, "config.new.json", `{"evaluation": {"profiles": {"p": {"denylist": ["kept__drop_*", "kept__write"]}}}}`, false},
		{"no edit, by a link", [2]string{"config.json"}, [2]string{"soft.json"}, "config.json", confirmedText().String(), false},
	} {
		f := newFiles(t, confirmedText())
		for _, environment := range []string{"config.prod.json", "config.test.json", "soft.prod.json"} {
			f.write(environment, overlay)
		}
		for _, err := range []error{os.Symlink("config.json", filepath.Join(f.folder, "soft.json")), os.Symlink(".", filepath.Join(f.folder, "around"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, why := f.taken(f.app(row.first[0], row.first[1]), nil); why != "" {
			t.Fatalf("%s: the first start waits: %s", row.name, why)
		}
		if row.text == "" {
			row.text = confirmedText().with(loosen).String()
		}
		f.write(row.edited, row.text)
		if err := os.Link(filepath.Join(f.folder, "config.json"), filepath.Join(f.folder, "hard.json")); err != nil {
			t.Fatal(err)
		}
		if _, why := f.taken(f.app(row.second[0], row.second[1]), nil); (why != "") != row.waits {
			t.Errorf("%s: waits because of %q", row.name, why)
		}
		if inForce, file, err := f.app(row.second[0], row.second[1]).begin(); row.waits && err == nil && inForce == file {
			t.Errorf("%s: started with", row.name)
		}
	}
}

// A name is held to what it led to, wherever it leads now.
func TestHeldWhereverTheNameLeads(t *testing.T) {
	loosen, tighten := drop("evaluation", "profiles", "p", "denylist"), set([]any{"kept__drop_*", "kept__write"}, "evaluation", "profiles", "p", "denylist")
	loose, tight := confirmedText().with(loosen).String(), confirmedText().with(tighten).String()
	overlay := func(denied string) string {
		return `{"evaluation": {"profiles": {"p": {"denylist": [` + denied + `]}}}}`
	}
	link := func(f files, to, name string) {
		f.Helper()
		name = filepath.Join(f.folder, name)
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			f.Fatal(err)
		}
		if err := os.Symlink(to, name); err != nil {
			f.Fatal(err)
		}
	}
	for _, row := range []struct {
		name          string
		before, after func(files) // the first start is between them
		start         [2]string   // the name of the file, and the environment
		waits         bool
	}{
		{"a link to a looser file",
			func(f files) { link(f, "config.json", "current.json") },
			func(f files) { f.write("v2.json", loose); link(f, "v2.json", "current.json") }, [2]string{"current.json"}, true},
		{"a link to a file that loosens nothing",
			func(f files) { link(f, "config.json", "current.json") },
			func(f files) { f.write("v2.json", tight); link(f, "v2.json", "current.json") }, [2]string{"current.json"}, false},
		{"a file that becomes a link", func(files) {},
			func(f files) { f.write("v2.json", loose); link(f, "v2.json", "config.json") }, [2]string{"config.json"}, true},
		{"a link that becomes a file",
			func(f files) { link(f, "config.json", "current.json") },
			func(f files) { os.Remove(filepath.Join(f.folder, "current.json")); f.write("current.json", loose) }, [2]string{"current.json"}, true},
		{"a link in the middle",
			func(f files) { link(f, "config.json", "middle.json"); link(f, "middle.json", "current.json") },
			func(f files) { f.write("v2.json", loose); link(f, "v2.json", "middle.json") }, [2]string{"current.json"}, true},
		{"another folder",
			func(f files) { link(f, ".", "releases") },
			func(f files) {
				if err := os.Mkdir(filepath.Join(f.folder, "2"), 0o700); err != nil {
					f.Fatal(err)
				}
				f.write("2/config.json", loose)
				link(f, "2", "releases")
			}, [2]string{"releases/config.json"}, true},
		{"a file that was started by itself",
			func(f files) {
				f.write("v2.json", loose)
				f.taken(f.app("v2.json", ""), nil)
				link(f, "config.json", "current.json")
			},
			func(f files) { link(f, "v2.json", "current.json") }, [2]string{"current.json"}, true},
		{"twice, the second time looser",
			func(f files) { link(f, "config.json", "current.json") },
			func(f files) {
				f.write("v2.json", tight)
				link(f, "v2.json", "current.json")
				if _, why := f.taken(f.app("current.json", ""), nil); why != "" {
					f.Errorf("what loosens nothing waits: %s", why)
				}
				link(f, "config.json", "current.json")
			}, [2]string{"current.json"}, true},
		{"a looser edit of where it leads now",
			func(f files) { link(f, "config.json", "current.json") },
			func(f files) {
				f.write("v2.json", tight)
				link(f, "v2.json", "current.json")
				f.taken(f.app("current.json", ""), nil)
				f.write("v2.json", loose)
			}, [2]string{"current.json"}, true},
		{"an overlay that leads to a looser one",
			func(f files) {
				f.write("o1.json", overlay(`"*__*"`))
				link(f, "o1.json", "config.prod.json")
			},
			func(f files) {
				f.write("o2.json", overlay(`"kept__drop_*"`))
				link(f, "o2.json", "config.prod.json")
			}, [2]string{"config.json", "prod"}, true},
	} {
		f := newFiles(t, confirmedText())
		row.before(f)
		a := f.app(row.start[0], row.start[1])
		running, why := f.taken(a, nil)
		if why != "" {
			t.Fatalf("%s: the first start waits: %s", row.name, why)
		}
		row.after(f)
		if _, why := f.taken(a, running); (why != "") != row.waits {
			t.Errorf("%s: in a bridge that runs it waits because of %q", row.name, why)
		}
		if _, why := f.taken(a, nil); (why != "") != row.waits {
			t.Errorf("%s: at a start it waits because of %q", row.name, why)
		}
		inForce, file, err := a.begin()
		if err != nil || (inForce != file) != row.waits {
			t.Errorf("%s: started with %+v, %v", row.name, inForce, err)
		}
		if _, err := a.Keep(file, "ann", "page", time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, why := f.taken(a, nil); why != "" {
			t.Errorf("%s: confirmed, it waits because of %q", row.name, why)
		}
	}
}

// What goes on of several environments is what was confirmed last, and it is
// also what the edit is shown against.
func TestWhatGoesOnOfSeveralEnvironments(t *testing.T) {
	f := newFiles(t, confirmedText())
	at := time.Now()
	for hour, environment := range []string{"c", "a", "d", "b"} {
		f.write("config."+environment+".json", `{"evaluation": {"profiles": {}}}`)
		f.write("config.json", confirmedText().with(set([]any{"kept__drop_*", environment}, "evaluation", "profiles", "p", "denylist")).String())
		a := f.app("config.json", environment)
		cfg, err := a.load()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Keep(cfg, "ann", "page", at.Add(time.Duration(hour)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	newest := confirmedText().with(set([]any{"kept__drop_*", "b"}, "evaluation", "profiles", "p", "denylist")).String()
	f.write("config.json", confirmedText().with(drop("evaluation", "profiles", "p", "denylist")).String())
	a := f.app("config.json", "")
	cfg, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // in no order of a map
		c, err := a.Judge(cfg, nil)
		if err != nil || c == nil || c.texts == nil {
			t.Fatalf("what goes on is %+v, %v", c, err)
		}
		if diff := cmp.Diff(newest, c.texts.File); diff != "" {
			t.Fatalf("what goes on (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(*c.texts, c.Old.Texts()); diff != "" {
			t.Fatalf("the edit is shown against another text (-want +got):\n%s", diff)
		}
	}
}

// A variable that is not set any more, and a text that this version cannot
// read, are no way past what was confirmed.
func TestConfirmedTextsThatCannotBeReadAgain(t *testing.T) {
	first := confirmedText().with(set("https://${HOST}/mcp", "servers", "kept", "url"))
	f := newFiles(t, first)
	a := f.app("config.json", "")
	env := a.Env
	a.Env = func(name string) (string, bool) {
		if name == "HOST" {
			return "s.example", true
		}
		return env(name)
	}
	if _, why := f.taken(a, nil); why != "" {
		t.Fatal(why)
	}
	a.Env = env
	f.write("config.json", first.with(drop("servers", "kept")).String())
	if _, why := f.taken(a, nil); why != "" {
		t.Errorf("a server is gone with its variable, and that waits: %s", why)
	}
	f.write("config.json", first.with(drop("servers", "kept"), drop("approvals", "oidc")).String())
	if _, why := f.taken(a, nil); !strings.Contains(why, "single sign-on is changed") {
		t.Errorf("it waits because of %q", why)
	}

	store, err := a.store()
	if err != nil {
		t.Fatal(err)
	}
	record, err := store.Read(a.name)
	if err != nil {
		t.Fatal(err)
	}
	its := record.Environments[""]
	its.Taken, its.Confirmed.File = nil, `{"of another version": true}`
	record.Environments[""] = its
	body, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(f.folder, "*", "*", "*", "confirmed", "*.json"))
	if err != nil || len(all) != 1 {
		t.Fatalf("the records are %q, %v", all, err)
	}
	if err := os.WriteFile(all[0], body, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, why := f.taken(a, nil); !strings.Contains(why, "cannot be read any more") {
		t.Errorf("it waits because of %q", why)
	}
	if err := os.WriteFile(all[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := a.Judge(cfg, nil); err == nil || c != nil {
		t.Errorf("a record that is damaged is taken for none: %+v", c)
	}
}

// Without approvers nothing waits, and the first ones guard what there is then.
func TestNothingWaitsWithoutApprovers(t *testing.T) {
	alone := confirmedText().with(drop("approvals"))
	f := newFiles(t, alone)
	a := f.app("config.json", "")
	for _, next := range []text{alone, alone.with(set(false, "evaluation", "enabled")), confirmedText().with(set(false, "evaluation", "enabled")), confirmedText()} {
		f.write("config.json", next.String())
		if _, why := f.taken(a, nil); why != "" {
			t.Errorf("it waits: %s", why)
		}
	}
	f.write("config.json", alone.String())
	if _, why := f.taken(a, nil); why == "" {
		t.Error("the approvers are taken out")
	}
}
