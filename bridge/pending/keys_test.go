package pending

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/sandbox/racing"

	"github.com/google/go-cmp/cmp"
)

// Every key of a configuration is either one whose edits can loosen, with an edit
// that waits in loosenings, wideLoosenings or profileLoosenings, or one whose edits never wait,
// with the reason in harmlessKeys. A key that is new is neither: then somebody
// has to say which it is, and rights.go or profiles.Looser to know it.

var (
	readsJSON = reflect.TypeFor[json.Unmarshaler]()
	readsText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// parts are what a type of a configuration consists of: the fields of an object by
// name, or the one "*" of a map or a list of objects. It has none if it is a value.
func partsOf(t reflect.Type) map[string]reflect.Type {
	if t.Kind() == reflect.Pointer {
		return partsOf(t.Elem())
	}
	if p := reflect.PointerTo(t); p.Implements(readsJSON) || p.Implements(readsText) {
		return nil
	}
	parts := map[string]reflect.Type{}
	switch t.Kind() {
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" && field.IsExported() && (name != "" || !field.Anonymous) {
				parts[name] = field.Type
			}
		}
	case reflect.Map, reflect.Slice:
		if t.Kind() == reflect.Map || partsOf(t.Elem()) != nil {
			parts["*"] = t.Elem()
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return parts
}

// keysOf are the keys of a type, as servers/*/url.
func keysOf(t reflect.Type, at string) (keys []string) {
	parts := partsOf(t)
	if parts == nil {
		return []string{at}
	}
	for name, part := range parts {
		keys = append(keys, keysOf(part, strings.TrimPrefix(at+"/"+name, "/"))...)
	}
	return keys
}

// editedKeys are the keys of a type by which two texts of it differ.
func editedKeys(t reflect.Type, at string, was, is any) (keys []string) {
	if cmp.Equal(was, is) {
		return nil
	}
	parts := partsOf(t)
	if parts == nil {
		return []string{at}
	}
	before, after := members(was), members(is)
	for name := range maps.All(merged(before, after)) {
		part, key := parts[name], name
		if one, ok := parts["*"]; ok {
			part, key = one, "*"
		}
		if part != nil {
			keys = append(keys, editedKeys(part, strings.TrimPrefix(at+"/"+key, "/"), before[name], after[name])...)
		}
	}
	return keys
}

// members are those of an object or a list; none of anything else.
func members(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case []any:
		all := map[string]any{}
		for i, one := range v {
			all[fmt.Sprint(i)] = one
		}
		return all
	}
	return nil
}

func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

// value is a text as JSON has it.
func (c text) value() any { return map[string]any(c.with()) }

func TestEveryKeyLoosensOrIsHarmless(t *testing.T) {
	whole := reflect.TypeFor[config.Config]()
	looser := map[string]bool{}
	note := func(first text, edits map[string]turn) {
		for _, edit := range edits {
			for _, key := range editedKeys(whole, "", first.value(), first.with(edit).value()) {
				looser[key] = true
			}
		}
	}
	note(confirmedText(), loosenings)
	note(wideText(), wideLoosenings)
	note(profileText(), profileLoosenings)
	keys := keysOf(whole, "")
	slices.Sort(keys)
	for _, key := range keys {
		switch why, harmless := harmlessKeys[key]; {
		case !looser[key] && !harmless:
			t.Errorf("nobody has said whether an edit of %s can loosen: it belongs into loosenings, or into harmlessKeys with a reason", key)
		case looser[key] && harmless:
			t.Errorf("an edit of %s is held, and it is called harmless: %s", key, why)
		case harmless && why == "":
			t.Errorf("there is no reason why an edit of %s is harmless", key)
		}
	}
	for key := range harmlessKeys {
		if !slices.Contains(keys, key) {
			t.Errorf("there is no key %s", key)
		}
	}
}

// dutyText is how people are asked at a risk, as strictly as it can be said.
func dutyText() map[string]any {
	return map[string]any{"timeout": "1m", "remember": false, "requireReason": true, "quorum": map[string]any{"need": 2, "of": []any{"a", "b"}, "inOrder": true}}
}

// looserDuties are edits of a dutyText at a place.
func looserDuties(at ...string) map[string]turn {
	in := func(keys ...string) []string { return append(slices.Clone(at), keys...) }
	return map[string]turn{
		"more time":    set("2m", in("timeout")...),
		"remembered":   set(true, in("remember")...),
		"no reason":    set(false, in("requireReason")...),
		"fewer yeses":  set(1, in("quorum", "need")...),
		"other people": set([]any{"a", "c"}, in("quorum", "of")...),
		"in any order": set(false, in("quorum", "inOrder")...),
	}
}

// ofRule is an edit of the first rule of profile p.
func ofRule(edit turn) turn { return ofOne(0, edit, "evaluation", "profiles", "p", "rules") }

// profileText is what edits of profiles begin with.
func profileText() text {
	first := confirmedText()
	risks := func() map[string]any {
		return map[string]any{"low": dutyText(), "medium": dutyText(), "high": dutyText(), "critical": dutyText()}
	}
	first.in("evaluation")["risk"] = map[string]any{"unknown": "high", "low": dutyText(), "medium": dutyText(), "high": dutyText(), "critical": dutyText()}
	p := first.in("evaluation", "profiles", "p")
	maps.Copy(p, map[string]any{
		"default": "deny", "elicitationFallback": "deny", "risk": risks(),
		"flows":  []any{map[string]any{"from": "private", "to": "external", "action": "deny", "by": "content"}},
		"limits": map[string]any{"cpu": "1s", "call": "1s", "heap": "32MB", "calls": 5, "parallel": 5, "source": "2KB", "input": "2KB", "logs": "2KB", "result": "2KB", "reply": "2KB"},
		"rules": []any{map[string]any{
			"name": "r", "tools": []any{"kept__pay"}, "when": "args.amount > 5", "action": "ask", "risk": "high", "reason": "money", "timeout": "1m", "remember": false, "requireReason": true,
			"quorum": map[string]any{"need": 2, "of": []any{"a", "b"}, "inOrder": true}, "check": []any{"args.amount < 100"}, "hidden": []any{"card"},
			"display": map[string]any{"maxString": 100, "maxArray": 10, "maxObject": 10, "maxDepth": 5},
		}, map[string]any{"tools": []any{"trusted__tell"}, "action": "ask"}},
	})
	first.in("evaluation", "profiles")["child"] = map[string]any{"extends": "p"}
	return first
}

// profileLoosenings are edits of it each of which waits.
var profileLoosenings = func() map[string]turn {
	profile := []string{"evaluation", "profiles", "p"}
	in := func(keys ...string) []string { return append(slices.Clone(profile), keys...) }
	all := map[string]turn{
		"more is allowed":            set([]any{"kept__pay"}, in("allowlist")...),
		"more is asked, not denied":  set([]any{"kept__*", "trusted__*"}, in("asklist")...),
		"who cannot be asked is let": set("allow", in("elicitationFallback")...),
		"another base":               set("relaxed", "evaluation", "profiles", "child", "extends"),
		"the unknown is low":         set("low", "evaluation", "risk", "unknown"),
		"a flow from less":           ofOne(0, set("untrusted", "from"), in("flows")...),
		"a flow to less":             ofOne(0, set("hr", "to"), in("flows")...),
		"a flow that asks":           ofOne(0, set("ask", "action"), in("flows")...),
		"only an observed flow":      ofOne(0, set(true, "observe"), in("flows")...),
		"only an observed rule":      ofRule(set(true, "observe")),
		"only an observed list":      set([]any{"denylist"}, in("observe")...),
		"another kind of flow":       ofOne(0, set("context", "by"), in("flows")...),
		"a rule for less":            ofRule(set([]any{"kept__payment"}, "tools")),
		"a rule under a condition":   ofRule(set("args.amount > 50", "when")),
		"a rule that only tells":     ofOne(1, set("notify", "action"), in("rules")...),
		"a rule of lower risk":       ofRule(set("low", "risk")),
		"a rule with more time":      ofRule(set("2m", "timeout")),
		"a rule that remembers":      ofRule(set(true, "remember")),
		"a rule that repeats":        ofRule(set(true, "repeatable")),
		"a rule without a reason":    ofRule(set(false, "requireReason")),
		"a rule with fewer yeses":    ofRule(set(1, "quorum", "need")),
		"a rule for other people":    ofRule(set([]any{"a", "c"}, "quorum", "of")),
		"a rule in any order":        ofRule(set(false, "quorum", "inOrder")),
		"a rule for what is known":   ofRule(set(true, "known")),
		"a rule without its check":   ofRule(drop("check")),
		"a rule that hides nothing":  ofRule(drop("hidden")),
	}
	for name, more := range map[string]any{"cpu": "2s", "call": "2s", "heap": "64MB", "calls": 6, "parallel": 6, "source": "3KB", "input": "3KB", "logs": "3KB", "result": "3KB", "reply": "3KB"} {
		all["a higher limit: "+name] = set(more, in("limits", name)...)
	}
	for key, words := range map[string][]any{"effects": {"spend"}, "where": {"remote"}, "net": {"chosen"}, "paths": {"/etc/*"}, "hosts": {"pay.example"}, "recipients": {"*@x.example"}, "commands": {"pay *"}} {
		all["a rule for calls of another meaning: "+key] = ofRule(set(words, key))
	}
	for _, name := range []string{"maxString", "maxArray", "maxObject", "maxDepth"} {
		all["a rule that shows more: "+name] = ofRule(set(1000, "display", name))
	}
	for _, risk := range []string{"low", "medium", "high", "critical"} {
		for name, edit := range looserDuties("evaluation", "profiles", "p", "risk", risk) {
			all[risk+" in a profile: "+name] = edit
		}
		for name, edit := range looserDuties("evaluation", "risk", risk) {
			all[risk+": "+name] = edit
		}
	}
	return all
}()

// wideText is what edits of keys begin with that confirmedText does not have.
func wideText() text {
	return confirmedText().with(
		set("quarantine", "newTools"), set("ask", "changedTools"), set([]any{"/work", "/notes"}, "evaluation", "workspace"),
		set(map[string]any{"command": "npx", "args": []any{"-y", "@modelcontextprotocol/server-memory"}, "newTools": "quarantine", "known": "memory"}, "servers", "met"),
		set(map[string]any{"url": "https://plain.example/mcp"}, "servers", "plain"),
		set(map[string]any{"url": "https://labelled.example/mcp", "newTools": "quarantine", "labels": []any{"private"}, "tools": map[string]any{"labels": map[string]any{"send_*": []any{"external"}}}}, "servers", "labelled"),
		set(map[string]any{"url": "https://off.example/mcp", "newTools": "allow", "disabled": true}, "servers", "off"),
		set(map[string]any{"url": "https://q.example/mcp", "quarantine": true}, "servers", "q"),
		set(map[string]any{"command": "/bin/tool", "args": []any{"-a"}, "env": map[string]any{"MODE": "safe"}, "passEnv": []any{"LANG"}, "cwd": "/"}, "servers", "program"),
		set(map[string]any{"command": "/bin/boxed", "confine": map[string]any{
			"write": []any{"/srv/a", "workspace"}, "read": []any{"/srv/b", "/srv/a/fixed"}, "net": []any{"*.x.example"}, "run": []any{"git"}, "require": true,
		}}, "servers", "boxed"),
		set(map[string]any{"openapi": "https://api.example/openapi.json", "url": "https://api.example", "credentials": map[string]any{"key": "${A_SECRET}"}}, "servers", "api"),
		set(map[string]any{"url": "https://login.example/mcp", "auth": map[string]any{"type": "clientCredentials", "clientId": "us", "clientSecret": "${A_SECRET}", "issuer": "https://issuer.example"}}, "servers", "login"),
		set([]any{"read"}, "servers", "kept", "tools", "allow"),
		set(append(people("ann:admin", "bob", "cyd"), map[string]any{"name": "dan", "role": "approver", "risk": "medium", "groups": []any{"a"}, "login": "dan@x.example", "principal": "https://login.example#dan"},
			map[string]any{"name": "eve", "role": "approver", "token": "${A_TOKEN_OF_EVE}"}), "approvals", "approvers"),
		set([]any{map[string]any{"from": "ann", "to": "bob", "until": "2999-12-31"}}, "approvals", "delegations"),
		set("${A_SECRET}", "approvals", "oidc", "clientSecret"), set("https://page.example/login/done", "approvals", "oidc", "redirectURL"),
		set(append(tokens("client", "client"), map[string]any{"name": "clear", "token": "${A_TOKEN_OF_A_CLIENT}"}), "http", "tokens"),
		set(map[string]any{"issuer": "https://login.example", "resource": "https://bridge.example/mcp", "audiences": []any{"api://a"}, "scopes": []any{"mcp", "more"}, "groups": "groups",
			"introspection": map[string]any{"url": "https://login.example/ask", "clientId": "us", "clientSecret": "${A_SECRET}"}}, "http", "auth"),
		set("heads.txt", "audit", "checkpoint"),
		set(map[string]any{"cert": "/etc/tls.crt", "key": "/etc/tls.key"}, "http", "tls"), set(map[string]any{"cert": "/etc/page.crt", "key": "/etc/page.key"}, "approvals", "tls"),
		set(map[string]any{"otlp": map[string]any{"url": "https://logs.example", "headers": map[string]any{"Authorization": "${A_SECRET}"}}, "webhook": map[string]any{"url": "https://hooks.example/audit", "secret": "${A_SECRET}"}}, "audit", "push"),
		set(false, "servers", "plain", "trace"),
		set("postgres://bridge:${A_SECRET}@db.example/bridge", "store"), set("${A_SECRET}", "storeKey"), set("${A_CENTRE_KEY}", "centre", "signingKey"), set("laptops.json", "centre", "policy"),
		set([]any{
			map[string]any{"principals": []any{"ann"}, "groups": []any{"admins"}, "tokens": []any{"ci-*"}, "local": true, "profiles": []any{"*"}},
			map[string]any{"principals": []any{"bob"}, "groups": []any{"staff"}, "tokens": []any{"clear"}, "profiles": []any{"p", "strict"}, "defaultProfile": "strict", "servers": []any{"kept"},
				"asked": "approvers", "limits": map[string]any{"sessions": 2, "runs": 2, "workers": 2, "questions": 2}},
		}, "access"),
	)
}

// ofOne is an edit of one element of the list at keys.
func ofOne(n int, edit turn, keys ...string) turn {
	last := len(keys) - 1
	return func(c text) { edit(text(c.in(keys[:last]...)[keys[last]].([]any)[n].(map[string]any))) }
}

// wideLoosenings are edits of it each of which waits.
var wideLoosenings = map[string]turn{
	"every server's new tools":      set("allow", "newTools"),
	"every server's changed tools":  set("allow", "changedTools"),
	"a label less":                  set([]any{"hr"}, "servers", "labelled", "labels"),
	"a tool's label less":           set([]any{"hr"}, "servers", "labelled", "tools", "labels", "send_*"),
	"a server has no label now":     set([]any{}, "servers", "plain", "labels"),
	"a server that is known":        set("filesystem", "servers", "program", "known"),
	"a server is not known":         drop("servers", "met", "known"), // a rule that denies what is known does not match any more
	"a server is another known":     set("filesystem", "servers", "met", "known"),
	"another workspace":             set([]any{"/work", "/notes", "/home/me"}, "evaluation", "workspace"),
	"less of a workspace":           set([]any{"/work"}, "evaluation", "workspace"), // a rule may deny what is in it
	"the client's workspace":        drop("evaluation", "workspace"),
	"a server is on":                drop("servers", "off", "disabled"),
	"a server out of quarantine":    drop("servers", "q", "quarantine"),
	"more tools are seen":           set([]any{"read", "write"}, "servers", "kept", "tools", "allow"),
	"another program":               set("/bin/other", "servers", "program", "command"),
	"other arguments":               set([]any{"-b"}, "servers", "program", "args"),
	"another variable":              set("mad", "servers", "program", "env", "MODE"),
	"a variable of ours":            set([]any{"LANG", "TOKEN"}, "servers", "program", "passEnv"),
	"another folder":                set("/tmp", "servers", "program", "cwd"),
	"a box is gone":                 drop("servers", "boxed", "confine"),
	"a box that writes more":        set([]any{"/srv/a", "workspace", "/srv/c"}, "servers", "boxed", "confine", "write"),
	"a box that reads more":         set([]any{"/srv/b", "/srv/a/fixed", "/srv/c"}, "servers", "boxed", "confine", "read"),
	"a box that fixes less":         set([]any{"/srv/b"}, "servers", "boxed", "confine", "read"),
	"a box that reaches more":       set([]any{"*.x.example", "y.example"}, "servers", "boxed", "confine", "net"),
	"a box that starts more":        drop("servers", "boxed", "confine", "run"),
	"a box that may leak":           drop("servers", "boxed", "confine", "require"),
	"another built-in server":       set("utils", "servers", "time", "builtin"),
	"another way to speak":          set("sse", "servers", "plain", "type"),
	"another document":              set("https://mallory.example/openapi.json", "servers", "api", "openapi"),
	"another credential":            set("${ANOTHER_SECRET}", "servers", "api", "credentials", "key"),
	"another kind of login":         set("person", "servers", "login", "auth", "type"),
	"another client":                set("them", "servers", "login", "auth", "clientId"),
	"another secret":                set("${ANOTHER_SECRET}", "servers", "login", "auth", "clientSecret"),
	"another issuer":                set("https://mallory.example", "servers", "login", "auth", "issuer"),
	"a higher risk":                 ofOne(3, set("critical", "risk"), "approvals", "approvers"),
	"a group more":                  ofOne(3, set([]any{"a", "b"}, "groups"), "approvals", "approvers"),
	"another login":                 ofOne(3, set("mallory@x.example", "login"), "approvals", "approvers"),
	"an approver's token":           ofOne(4, set("${A_TOKEN_OF_MALLORY}", "token"), "approvals", "approvers"),
	"lent by another":               ofOne(0, set("cyd", "from"), "approvals", "delegations"),
	"lent to another":               ofOne(0, set("cyd", "to"), "approvals", "delegations"),
	"lent for longer":               ofOne(0, set("3999-12-31", "until"), "approvals", "delegations"),
	"the page's secret":             set("${ANOTHER_SECRET}", "approvals", "oidc", "clientSecret"),
	"another way back":              set("https://mallory.example/login/done", "approvals", "oidc", "redirectURL"),
	"a client's token":              ofOne(1, set("${A_TOKEN_OF_MALLORY}", "token"), "http", "tokens"),
	"somebody else as a client":     ofOne(3, set("https://login.example#mallory", "principal"), "approvals", "approvers"),
	"nobody as a client":            ofOne(3, drop("principal"), "approvals", "approvers"),
	"another issuer of tokens":      set("https://mallory.example", "http", "auth", "issuer"),
	"tokens for something else":     set("https://mallory.example/mcp", "http", "auth", "resource"),
	"tokens for more":               set([]any{"api://a", "api://b"}, "http", "auth", "audiences"),
	"tokens with fewer scopes":      set([]any{"mcp"}, "http", "auth", "scopes"),
	"groups from elsewhere":         set("nickname", "http", "auth", "groups"),
	"opaque tokens asked elsewhere": set("https://mallory.example/ask", "http", "auth", "introspection", "url"),
	"asked as another client":       set("them", "http", "auth", "introspection", "clientId"),
	"asked with another secret":     set("${ANOTHER_SECRET}", "http", "auth", "introspection", "clientSecret"),
	"another certificate":           set("/tmp/tls.crt", "http", "tls", "cert"),
	"another key":                   set("/tmp/tls.key", "http", "tls", "key"),
	"no certificate":                drop("http", "tls"),
	"the page's certificate":        set("/tmp/page.crt", "approvals", "tls", "cert"),
	"the page's key":                set("/tmp/page.key", "approvals", "tls", "key"),
	"a page without TLS":            drop("approvals", "tls"),
	"records to another collector":  set("https://mallory.example", "audit", "push", "otlp", "url"),
	"other headers":                 set("${ANOTHER_SECRET}", "audit", "push", "otlp", "headers", "Authorization"),
	"records to another webhook":    set("https://mallory.example", "audit", "push", "webhook", "url"),
	"another secret of the webhook": set("${ANOTHER_SECRET}", "audit", "push", "webhook", "secret"),
	"records to nobody":             drop("audit", "push"),
	"a server learns traces":        drop("servers", "plain", "trace"),
	"checkpoints elsewhere":         set("elsewhere.txt", "audit", "checkpoint"),
	"more time to answer":           set("1h", "evaluation", "timeout"),
	"more time in a profile":        set("1h", "evaluation", "profiles", "p", "timeout"),
	"more time for paused runs":     set("999h", "evaluation", "pausedFor"),
	"everybody may everything":      drop("access"),
	"an entry more": func(c text) {
		c["access"] = append(c["access"].([]any), map[string]any{"principals": []any{"eve"}, "profiles": []any{"strict"}})
	},
	"the first entry is gone":      func(c text) { c["access"] = c["access"].([]any)[1:] }, // the second may hold for ann, too
	"entries change places":        func(c text) { a := c["access"].([]any); c["access"] = []any{a[1], a[0]} },
	"an entry for others":          ofOne(1, set([]any{"bob", "eve"}, "principals"), "access"),
	"an entry for fewer":           ofOne(0, set([]any{"eve"}, "principals"), "access"), // the next one may hold for ann
	"an entry for more groups":     ofOne(1, set([]any{"staff", "guests"}, "groups"), "access"),
	"an entry for more tokens":     ofOne(1, set([]any{"*"}, "tokens"), "access"),
	"an entry for whoever":         ofOne(1, set(true, "local"), "access"),
	"an entry with more profiles":  ofOne(1, set([]any{"p", "strict", "relaxed"}, "profiles"), "access"),
	"another eval in an entry":     ofOne(1, set("p", "defaultProfile"), "access"),
	"an entry with more servers":   ofOne(1, set([]any{"kept", "trusted"}, "servers"), "access"),
	"an entry with all servers":    ofOne(1, drop("servers"), "access"),
	"asked at the client":          ofOne(1, drop("asked"), "access"),
	"more sessions of a principal": ofOne(1, set(3, "limits", "sessions"), "access"),
	"more runs of a principal":     ofOne(1, set(3, "limits", "runs"), "access"),
	"more workers of a principal":  ofOne(1, set(3, "limits", "workers"), "access"),
	"any questions of a principal": ofOne(1, drop("limits", "questions"), "access"),
	"a token in another group":     ofOne(0, set([]any{"admins"}, "groups"), "http", "tokens"),
	"another database":             set("postgres://bridge:${A_SECRET}@mallory.example/bridge", "store"),
	"another key of the store":     set("${ANOTHER_SECRET}", "storeKey"),
	"another key of the centre":    set("${ANOTHER_CENTRE_KEY}", "centre", "signingKey"),
	"another policy of laptops":    set("other.json", "centre", "policy"),
	"no policy of laptops":         drop("centre", "policy"),
	"no centre any more":           drop("centre"),
}

// Each of them waits.
func TestLooseningsOfEveryKeyAreHeld(t *testing.T) {
	racing.Alone(t)
	t.Parallel()
	for _, row := range []struct {
		first text
		edits map[string]turn
	}{{wideText(), wideLoosenings}, {profileText(), profileLoosenings}} {
		f := newFiles(t, row.first)
		a := f.app("config.json", "")
		home := a.Env
		a.Env = func(name string) (string, bool) { // a variable with a secret holds its own name
			if strings.HasSuffix(name, "_CENTRE_KEY") {
				return fmt.Sprintf("%064x", len(name)), true
			}
			if strings.HasPrefix(name, "A_") || strings.HasPrefix(name, "ANOTHER_") {
				return "its value is " + strings.ToLower(name), true
			}
			return home(name)
		}
		running, why := f.taken(a, nil)
		if why != "" {
			t.Fatalf("the first start waits: %s", why)
		}
		for name, loosen := range row.edits {
			f.write("config.json", row.first.with(loosen).String())
			if _, why := f.taken(a, running); why == "" {
				t.Errorf("%s: taken over", name)
			}
		}
	}
}

// harmlessKeys are the keys whose edits never wait, and why.
var harmlessKeys = map[string]string{
	"$schema":          "it is for editors",
	"closed":           "whoever could add a server after its edit has that judged by itself",
	"include":          "whether one of its entries loosens is tested in TestIncludesThatLoosen",
	"surface":          "it says how tools are offered to a client, not what a call may do",
	"access/*/surface": "it says how tools are offered to a client, not what a call may do",

	"evaluation/clientPatience":                             "it says when a client is answered, and a question is open as before",
	"evaluation/profiles/*/rules/*/name":                    "it is for people",
	"evaluation/profiles/*/flows/*/reason":                  "it is for people",
	"evaluation/profiles/*/rules/*/reason":                  "it is for people",
	"evaluation/profiles/*/rules/*/examples/match/*/tool":   "examples are tried when the file is read, and decide nothing",
	"evaluation/profiles/*/rules/*/examples/match/*/args":   "examples are tried when the file is read, and decide nothing",
	"evaluation/profiles/*/rules/*/examples/noMatch/*/tool": "examples are tried when the file is read, and decide nothing",
	"evaluation/profiles/*/rules/*/examples/noMatch/*/args": "examples are tried when the file is read, and decide nothing",

	"servers/*/timeout":           "it bounds how long a call takes, not which calls there are",
	"servers/*/connectTimeout":    "it bounds how long a start takes",
	"servers/*/concurrency":       "it spares the server",
	"servers/*/rate":              "it spares the server",
	"servers/*/idleStop":          "a server that is stopped starts again at the next call",
	"servers/*/maxReply":          "it spares the bridge's memory",
	"audit/push/otlp/protocol":    "the same collector gets the same, in another way",
	"servers/*/protocol":          "the same server is asked the same, in another version",
	"servers/*/auth/env":          "tokens are kept for the variable: another one gets nobody's",
	"servers/*/auth/redirectPort": "only a person's browser comes back to it, with a state that it was given",

	"approvals/desktop":    "a note at this machine has no arguments, and answers nothing",
	"approvals/overflow":   "what becomes of questions beyond the bounds is never a yes",
	"approvals/perRun":     "it says how many questions are open at a time; how many there are is for budget and flood",
	"approvals/perSession": "it says how many questions are open at a time; how many there are is for budget and flood",
	"approvals/perBridge":  "it says how many questions are open at a time; how many there are is for budget and flood",

	"http/idleTimeout": "a session that is over gives nobody a right, nor does one that lasts",
	"http/maxSessions": "it spares the bridge",
	"http/maxBody":     "it spares the bridge",

	"runs/journal": "it bounds what is kept of a run, in files for their owner alone",
	"runs/keep":    "journals are files for their owner alone, and a run that has ended does not go on",
	"scripts/dir":  "a saved script runs under the profile of whoever runs it, as any script does",

	"windows/share":   "a window is a session with rights of its own, shared process or not",
	"secrets/timeout": "it says how long a secret is waited for, not which",

	"windows/linger": "it says how long a process without windows stays",

	"log/level":  "the log is no record: what was decided and done is in the audit log",
	"log/format": "the log is no record: what was decided and done is in the audit log",

	"sandbox/cpu":         "it spares this machine; what a profile limits is held",
	"sandbox/heap":        "it spares this machine; what a profile limits is held",
	"sandbox/memory":      "it spares this machine",
	"sandbox/calls":       "every call is judged, however many; what a profile limits is held",
	"sandbox/parallel":    "every call is judged, however many; what a profile limits is held",
	"sandbox/source":      "it spares this machine; what a profile limits is held",
	"sandbox/logs":        "it spares this machine; what a profile limits is held",
	"sandbox/result":      "it spares the model; what a profile limits is held",
	"sandbox/reply":       "it spares this machine; what a profile limits is held",
	"sandbox/callTimeout": "it bounds how long a call takes; what a profile limits is held",
	"sandbox/workers":     "it spares this machine",
	"sandbox/warm":        "it says how many workers wait for work",
	"sandbox/fresh":       "a worker serves one session at a time, fresh or not",
}
