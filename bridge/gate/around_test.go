package gate

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// What a wider yes covers is decided twice: by the product, and by a naive reader who has only read
// docs/security.md and compares the two calls argument by argument.

// A naiveTool is one of the tools of newCovers, told a second time.
type naiveTool struct {
	// files is what it does to files, as all tools that do it: "read" or "write". A "store" is its server's own.
	files string
	// run reports that it changes something elsewhere: a yes to it is for one run.
	run  bool
	args map[string]naiveRole
}

// A naiveRole says what may differ in an argument.
type naiveRole string

const (
	same    naiveRole = "nothing"
	command naiveRole = "nothing of a command"
	amount  naiveRole = "nothing of an amount"
	choice  naiveRole = "numbers"                            // numbers may differ
	item    naiveRole = "numbers of items"                   // in a place that is named beside it
	place   naiveRole = "nothing, and it is read by a shell" // names a place
	text    naiveRole = "texts"                              // which name no other host
	chosen  naiveRole = "texts that select"                  // as text, if no shell reads more in it
	any_    naiveRole = "anything"
	setting naiveRole = "anything that no shell reads more in"
	people  naiveRole = "the order of people"
	address naiveRole = "the path at a host"
	path_   naiveRole = "the path in a folder"
	guessed naiveRole = "texts that are nothing else" // of a tool that nobody knows
)

var naiveTools = map[string]naiveTool{
	"shop__comment":     {"", true, map[string]naiveRole{"owner": place, "repo": place, "issue_number": item, "body": text}},
	"shop__update":      {"", true, map[string]naiveRole{"owner": place, "repo": place, "issue_number": item, "title": text, "body": text, "state": choice, "weight": choice, "draft": choice, "assignees": people}},
	"shop__remove":      {"", true, map[string]naiveRole{"owner": place, "issue_number": place, "why": same}},
	"shop__project":     {"", true, map[string]naiveRole{"project": place, "text": text}},
	"shop__pay":         {"", true, map[string]naiveRole{"to": people, "cents": amount, "note": same}},
	"shop__search":      {"", false, map[string]naiveRole{"query": chosen, "page": chosen}},
	"shop__fetch":       {"", false, map[string]naiveRole{"url": address, "max": chosen}},
	"shop__run":         {"", true, map[string]naiveRole{"command": command, "timeout": choice}},
	"shop__read_file":   {"read", false, map[string]naiveRole{"path": path_, "head": setting}},
	"shop__write_file":  {"write", false, map[string]naiveRole{"path": path_, "content": any_}},
	"shop__edit_file":   {"write", false, map[string]naiveRole{"path": path_, "edits": any_, "dryRun": setting}},
	"shop__move_file":   {"write", false, map[string]naiveRole{"from": path_, "to": path_}},
	"shop__remember":    {"store", false, map[string]naiveRole{"entities": any_}},
	"odd__post":         {"", false, map[string]naiveRole{"chat_id": same, "text": guessed, "body": guessed, "issue_number": choice, "page": choice, "amount": same, "force": same, "owner": same, "path": same}},
	"odd__delete_issue": {"", false, map[string]naiveRole{"chat_id": same, "text": same, "body": same, "issue_number": same, "page": same, "amount": same, "owner": same}},
	"odd__run_query":    {"", false, map[string]naiveRole{"text": same, "body": same, "page": choice, "owner": same}},
}

// fragments are pieces of text with the hosts that they name. A question mark stands for what nobody can say, or must not leave.
var fragments = map[string]string{
	"hello": "", "done,": "", "a.exаmple": "", "7": "", "e.g.": "", "v1.2": "",
	"https://a.example/x": "a.example", "HTTPS://A.EXAMPLE": "a.example", "http://a.example/": "a.example", "(a.example)": "a.example", "a.example.": "a.example", "//a.example": "a.example",
	"ann@a.example": "a.example", "[it](https://a.example/y)": "a.example", "https://a.example:443": "a.example",
	"https://a.example:8443/x": "a.example:8443", "b.example": "b.example", "https://a.example.evil.example/x": "a.example.evil.example", "evil.example/a.example": "evil.example a.example",
	"a-example.dev": "a-example.dev", "https://xa.example": "xa.example", "ann@evil.example": "evil.example", "//evil.example/x": "evil.example", "<https://evil.example>": "evil.example", "EVIL.example": "evil.example",
	"https://2130706433/x": "?", "https://a.exаmple/x": "?", "https://a%2eexample/x": "?", "https://ann@a.example/": "?", `https://a.example\@evil.example/`: "?", "AKIAIOSFODNN7EXAMPLE": "?",
}

// values are what the arguments of a role may be, as JSON.
var values = map[naiveRole][]string{
	choice:  {`1`, `2`, `"1"`, `true`, `false`, `"open"`, `"closed"`, `null`, `[1]`},
	item:    {`7`, `8`, `"7"`, `"x"`, `null`, `-1`},
	place:   {`"acme"`, `"web"`, `"Acme"`, `"acme2"`, `"acme/web"`, `"12"`, `12`, `null`, `"--force"`, `"acme;id"`},
	any_:    {`"x"`, `"see https://evil.example"`, `[{"a":1}]`, `null`, `"rm -rf /; $(id)"`},
	setting: {`1`, `"x"`, `true`, `"$(id)"`, `"-f"`, `"a|b"`, `"a&&b"`, `null`},
	people:  {`"ann"`, `"bob"`, `["ann","bob"]`, `["bob","ann"]`, `["ann"]`, `"Ann"`, `"ann@a.example"`, `"eve"`, `["ann","ann"]`, `["ann","eve"]`},
	address: {`"https://a.example/x"`, `"https://a.example/x?q=1"`, `"https://a.example/x?q=2"`, `"http://a.example/"`, `"https://a.example:8443/"`, `"a.example"`, `"a.example:443"`, `"https://b.example"`, `"http://[::1]:8080/"`,
		`"http://[0:0:0:0:0:0:0:1]:8080/"`, `"https://127.0.0.1/"`, `"https://[::ffff:127.0.0.1]/"`, `"https://2130706433/"`, `"https://127.1/"`, `"ftp://a.example/"`, `"wss://a.example/"`, `"//a.example/"`, `"file:///etc/x"`, `"javascript:a.example"`,
		`"https:a.example"`, `"https:///a.example"`, `"https://a.example:0443/"`, `"https://a.example:/"`, `"https://a.example/#x?y"`, `"https://a.example?"`, `["https://a.example/","https://b.example/"]`},
	command: {`"ls"`, `"ls; rm x"`, `"ls  "`, `"LS"`, `["ls"]`, `["ls","rm","x"]`, `["rm","x","ls"]`, `["rm","ls","rm","x"]`, `"` + strings.Repeat("a", 201) + `"`, `"` + strings.Repeat("a", 202) + `"`, `"[\"ls\"]"`},
	amount:  {`500`, `5`, `[5,500]`, `[500,5]`, `[500]`, `-500`, `5000`},
	same:    {`"ls"`, `"ls; rm x"`, `"ls  "`, `"LS"`, `5`, `500`, `"5"`, `true`, `"true"`, `[1]`, `["ls"]`, `"acme"`, `"` + strings.Repeat("a", 201) + `"`, `"` + strings.Repeat("a", 202) + `"`, `""`, `" "`, `{}`},
	guessed: {`"hello all"`, `"other words"`, `"/etc/passwd"`, `"ann@b.example"`, `"DROP TABLE users"`, `"drop table users"`, `5`, `"~/x y"`, `"#general"`, `["a"]`, `"C:\\x"`},
}

// twists change a text into another one that somebody could take for it.
var twists = []func(string) string{
	strings.ToUpper, strings.ToLower, func(s string) string { return s + " " }, func(s string) string { return " " + s }, func(s string) string { return s + "." },
	func(s string) string { return s + "/.." }, func(s string) string { return s + "/../x" }, func(s string) string { return s + "/../../x" }, func(s string) string { return "../" + s },
	func(s string) string { return strings.Replace(s, "/", "%2f", 1) }, func(s string) string { return strings.ReplaceAll(s, "/", "%2F") }, func(s string) string { return strings.ReplaceAll(s, "/", `\`) },
	func(s string) string { return strings.Replace(s, ".", "%2e", 1) }, func(s string) string { return strings.Replace(s, "/", "//", 1) }, func(s string) string { return strings.Replace(s, "/", "/./", 1) },
	func(s string) string { return s + "%00" }, func(s string) string { return s + "\x00" }, func(s string) string { return s + "\n" }, func(s string) string { return s + "\u200b" }, func(s string) string { return s + "$(id)" }, func(s string) string { return s + "`id`" },
	func(s string) string { return strings.Replace(s, "a", "а", 1) }, func(s string) string { return strings.Replace(s, "e", "ｅ", 1) }, func(s string) string { return strings.Replace(s, ".", "。", 1) },
	func(s string) string { return strings.Replace(s, ".example", ".example.evil.example", 1) }, func(s string) string { return strings.Replace(s, "a.example", "xa.example", 1) }, func(s string) string { return strings.Replace(s, "a.example", "x.a.example", 1) },
	func(s string) string { return strings.Replace(s, "a.example", "a.example@evil.example", 1) }, func(s string) string { return strings.Replace(s, "a.example", "evil.example#a.example", 1) },
	func(s string) string { return strings.Replace(s, "a.example", `evil.example\a.example`, 1) }, func(s string) string { return strings.Replace(s, "a.example", "evil.example/a.example", 1) }, func(s string) string { return strings.Replace(s, "a.example", "ann:b@a.example", 1) },
	func(s string) string { return strings.Replace(s, ".example", ".example:8443", 1) }, func(s string) string { return strings.Replace(s, ".example", ".example:443", 1) }, func(s string) string { return strings.Replace(s, ".example", ".example.", 1) },
	func(s string) string { return strings.Replace(s, ".example", ".example..", 1) }, func(s string) string { return strings.Replace(s, "https", "http", 1) }, func(s string) string { return strings.Replace(s, "https", "HTTPS", 1) },
	func(s string) string { return s + "?to=evil" }, func(s string) string { return s + "#?to=evil" }, func(s string) string { return s + "/more/of/it" }, func(s string) string { return "-" + s }, func(s string) string { return "~" + s }, func(s string) string { return "~/" + s },
	func(s string) string { return s + "2" }, func(s string) string { return s[:len(s)/2] }, func(s string) string { return "file:" + s }, func(s string) string { return `"` + s + `"` },
	func(s string) string { return strings.Replace(s, "q=1", "q=1&to=evil", 1) }, func(s string) string { return exact(s) }, func(s string) string { return exact(s) }, // what stands for a long one
}

// A dealer deals calls, and calls around them.
type dealer struct {
	*rand.Rand
	s                  covers
	dir, ws, elsewhere string
}

func newDealer(t *testing.T, random *rand.Rand) *dealer {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &dealer{Rand: random, dir: dir, ws: filepath.Join(dir, "ws"), elsewhere: filepath.Join(dir, "other")}
	for _, folder := range []string{"ws/src/deep", "ws/.git/hooks", "ws2", "WS", "other/sub", "other2"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"ws/out": d.elsewhere, "ws/in": "src", "other/back": d.ws, "ws/src/up": "..", "ws/loop": "loop", "ws/file.txt": filepath.Join(d.elsewhere, "a.txt")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no links here:", err)
		}
	}
	d.s = newCovers(t, d.ws)
	return d
}

func pick[T any](d *dealer, all []T) T { return all[d.IntN(len(all))] }

// value deals an argument.
func (d *dealer) value(role naiveRole) any {
	var v any
	switch role {
	case text, chosen:
		words := make([]string, 1+d.IntN(3))
		for i := range words {
			words[i] = pick(d, slices.Sorted(maps.Keys(fragments)))
		}
		if d.IntN(20) == 0 {
			words = append(words, pick(d, []string{"`id`", "$(id)", "a;b", "a&&b", "$5"}))
		}
		return strings.Join(words, " ")
	case path_: // of any of the folders
		file := pick(d, []string{"a.ts", "src/a.ts", "src/deep/b.ts", "in/a.ts", "out/a.txt", "out/sub/b.txt", "src/../a.ts", "src/../../other/a.txt", "in/../a.ts", "out/../x", "file.txt", "loop/x", "src/up/a.ts", "none/../a.ts", "none/a.ts",
			".env", ".ENV", "src/.env", ".git/hooks/pre-commit", ".GIT/Hooks/pre-push", "src", ".", "./src/a.ts", "a;b", "a&b/c", "../ws2/a.ts", "../WS/a.ts", "../ws/a.ts"})
		switch d.IntN(4) {
		case 0:
			return d.ws + "/" + file
		case 1:
			return d.elsewhere + pick(d, []string{"/a.txt", "/sub/b.txt", "", "/sub", "/sub/../a.txt", "/back/a.ts", "/../other2/a.txt", "/../other/a.txt", "2/a.txt", "/none/a.txt", "/.ssh/id_rsa"})
		}
		return file
	}
	read := json.NewDecoder(strings.NewReader(pick(d, values[role])))
	read.UseNumber()
	if err := read.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

// A dealt is a call.
type dealt struct {
	tool string
	args map[string]any
}

func (c dealt) String() string {
	var b bytes.Buffer
	write := json.NewEncoder(&b)
	write.SetEscapeHTML(false)
	if err := write.Encode(c.args); err != nil {
		panic(err)
	}
	return c.tool + "(" + strings.TrimSpace(b.String()) + ")"
}

// call deals one call, of which somebody would say that it is an ordinary one.
func (d *dealer) call() dealt {
	c := dealt{pick(d, slices.Sorted(maps.Keys(naiveTools))), map[string]any{}}
	roles := naiveTools[c.tool].args
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		if roles[name] == path_ || d.IntN(4) > 0 {
			c.args[name] = d.value(roles[name])
		}
	}
	return c
}

// around deals a call like another one.
func (d *dealer) around(c dealt) dealt {
	c.args = maps.Clone(c.args)
	for range pick(d, []int{0, 1, 1, 1, 1, 2}) {
		switch names := slices.Sorted(maps.Keys(naiveTools[c.tool].args)); d.IntN(20) {
		case 0:
			c.args[pick(d, []string{"more", "extra", "Body", "body ", "path.x"})] = "x"
		case 1:
			c.tool = pick(d, slices.Sorted(maps.Keys(naiveTools)))
		case 2:
			delete(c.args, pick(d, names))
		default:
			name := pick(d, names)
			role := naiveTools[c.tool].args[name]
			if was, ok := c.args[name].(string); ok && role != text && role != chosen && d.IntN(2) == 0 {
				c.args[name] = pick(d, twists)(was)
			} else {
				c.args[name] = d.value(role)
			}
		}
	}
	return c
}

// A naiveReader knows where the folders are.
type naiveReader struct{ ws string }

// yes reports whether a wider yes to a call is offered, and sure what of it is bound.
func (n naiveReader) offers(c dealt) bool {
	tool := naiveTools[c.tool]
	for name, v := range c.args {
		role, known := tool.args[name]
		if !known {
			return false
		}
		for _, s := range textsOf(v) {
			if strings.Contains(s, "AKIAIOSFODNN7EXAMPLE") || hasUser(s) {
				return false
			}
			switch role {
			case place:
				if strings.HasPrefix(s, "-") || strings.ContainsAny(s, "$`;|&<>\n\r\\\"'(){}*?!\x00") {
					return false
				}
			case setting, chosen:
				if strings.HasPrefix(s, "-") || strings.ContainsAny(s, "`;|\n\r") || strings.Contains(s, "$(") || strings.Contains(s, "&&") {
					return false
				}
			case address:
				if _, ok := origin(s); !ok {
					return false
				}
			}
			if role == text || role == chosen {
				if _, ok := hostsIn(s); !ok {
					return false
				}
			}
			if role == path_ {
				if spot := n.find(s); !spot.sure || spot.secret || spot.later && tool.files == "write" {
					return false
				}
			}
		}
	}
	return true
}

// covered reports whether a wider yes to a call covers another one.
func (n naiveReader) covered(had, is dealt) bool {
	one, other := naiveTools[had.tool], naiveTools[is.tool]
	switch {
	case !n.offers(had) || !n.offers(is):
		return false
	case one.files != "":
		return one.files == other.files && n.sameFolders(had, is)
	case had.tool != is.tool:
		return false
	}
	for name, role := range one.args {
		a, set := had.args[name]
		b, sets := is.args[name]
		if role == place || role == item { // a place that is null is none
			set, sets = a != nil, b != nil
		}
		if !mayDiffer(role, a, b, set, sets, had.names() && is.names()) && (set != sets || canonical(a) != canonical(b)) {
			return false
		}
	}
	return true
}

// names reports whether a call names an owner or a repository.
func (c dealt) names() bool { return c.args["owner"] != nil || c.args["repo"] != nil }

// mayDiffer reports whether an argument may become what it is in the second call, besides staying as it is.
func mayDiffer(role naiveRole, a, b any, set, sets, inPlace bool) bool {
	switch role {
	case item:
		return inPlace && isNumber(a) && (isNumber(b) || !sets)
	case choice:
		return isNumber(a) && (isNumber(b) || !sets)
	case guessed:
		return set && isPlain(a) && (isPlain(b) || !sets)
	case text, chosen:
		names, _ := hostsIn(strings.Join(textsOf(a), " "))
		further, _ := hostsIn(strings.Join(textsOf(b), " "))
		return (set || !sets) && within(further, names)
	case people:
		return set == sets && within(textsOf(a), textsOf(b)) && within(textsOf(b), textsOf(a))
	case address:
		var had, has []string
		for _, s := range textsOf(a) {
			at, _ := origin(s)
			had = append(had, at)
		}
		for _, s := range textsOf(b) {
			at, _ := origin(s)
			has = append(has, at)
		}
		return set == sets && within(has, had) // one of several hosts
	}
	return false
}

// within reports whether all of the first are among the second.
func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// sameFolders reports whether the paths of a call lead to where a yes to another one is valid.
func (n naiveReader) sameFolders(had, is dealt) bool {
	if naiveTools[had.tool].files == "store" {
		return true
	}
	folders := func(c dealt) (by map[string]string, inside bool) {
		by, inside = map[string]string{}, true
		for name, role := range naiveTools[c.tool].args {
			if role == path_ && c.args[name] != nil {
				spot := n.find(c.args[name].(string))
				by[name], inside = spot.folder, inside && spot.inside
			}
		}
		if all := slices.Compact(slices.Sorted(maps.Values(by))); len(all) == 1 {
			by = map[string]string{"folder": all[0]}
		}
		return by, inside
	}
	allowed, inside := folders(had)
	asked, stays := folders(is)
	if inside != stays && naiveTools[had.tool].files == "write" || len(allowed) != len(asked) {
		return false
	}
	for name, folder := range asked {
		top, ok := allowed[name]
		if !ok || folder != top && !strings.HasPrefix(folder, top+"/") {
			return false
		}
	}
	return true
}

// stays reports whether a call's paths are in the workspace.
func (n naiveReader) stays(c dealt) bool {
	for name, role := range naiveTools[c.tool].args {
		if role == path_ && !n.find(c.args[name].(string)).inside {
			return false
		}
	}
	return true
}

// A spot is where a path leads.
type spot struct {
	folder                      string
	inside, secret, later, sure bool
}

var encodedSign = regexp.MustCompile("%[0-9a-fA-F][0-9a-fA-F]")

// find asks the system where a path leads.
func (n naiveReader) find(path string) spot {
	if path == "" || strings.ContainsAny(path, "\\\x00\n") || encodedSign.MatchString(path) || strings.HasPrefix(path, "~") || strings.HasPrefix(path, "$") || strings.HasPrefix(path, "file:") || strings.Trim(path, " \u200b\"`") != path && !strings.HasSuffix(path, "\u200b") {
		return spot{}
	}
	if !filepath.IsAbs(path) {
		path = n.ws + "/" + path
	}
	real, ok := resolve(path)
	if cleaned, also := resolve(filepath.Clean(path)); !ok || !also || cleaned != real {
		return spot{} // it depends on who reads it
	}
	s := spot{folder: filepath.Dir(real), sure: true}
	if is, err := os.Stat(real); err == nil && is.IsDir() {
		s.folder = real
	}
	for _, p := range []string{path, real} {
		p = strings.ReplaceAll(strings.ToLower(filepath.Clean(p)), "\u200b", "") // as some systems compare names
		s.secret = s.secret || strings.HasSuffix(p, "/.env") || strings.Contains(p, "/.ssh/")
		s.later = s.later || strings.Contains(p, "/.git/")
	}
	if s.inside = real == n.ws || strings.HasPrefix(real, n.ws+"/"); s.inside {
		s.folder = n.ws
	}
	if strings.ContainsAny(filepath.Base(real), "$`;|&<>") {
		s.sure = false
	}
	return s
}

// resolve follows the links of what exists, and takes the rest as it is written.
func resolve(path string) (string, bool) {
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return strings.TrimSuffix(real+"/"+rest, "/"), !strings.Contains("/"+rest+"/", "/../")
		} else if !os.IsNotExist(err) {
			return "", false
		}
		if to, err := os.Readlink(path); err == nil { // a link to what does not exist yet
			path = to
			continue
		}
		cut := strings.LastIndexByte(path, '/')
		if name := path[cut+1:]; name != "." && name != "" {
			rest = strings.TrimSuffix(name+"/"+rest, "/")
		}
		path = path[:cut]
	}
}

// origin reads the address of a host: what a yes to it binds.
func origin(s string) (string, bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		if scheme, rest = "https", s; strings.ContainsAny(s, "/?#@") {
			return "", false
		}
	}
	scheme = strings.ToLower(scheme)
	if !slices.Contains([]string{"http", "https", "ws", "wss"}, scheme) || strings.ContainsAny(s, "\\ \t\r\n") {
		return "", false
	}
	if rest, _, _ = strings.Cut(rest, "#"); strings.Contains(rest, "\x00") {
		return "", false
	}
	rest, query, asks := strings.Cut(rest, "?")
	authority, _, _ := strings.Cut(rest, "/")
	host, port := authority, ""
	if at := strings.LastIndexByte(authority, ':'); at >= 0 && at > strings.LastIndexByte(authority, ']') {
		host, port = authority[:at], authority[at+1:]
	}
	if _, err := strconv.Atoi(port); port != "" && err != nil {
		return "", false
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	switch ip := net.ParseIP(strings.Trim(host, "[]")); {
	case ip != nil:
		host = ip.String()
	case host == "", strings.HasSuffix(host, "."), strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_") != "":
		return "", false
	case strings.Trim(host[strings.LastIndexByte(host, '.')+1:], "0123456789") == "":
		return "", false // a number: to some readers another address
	}
	if scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		port = ""
	}
	if asks {
		query = "?" + query
	}
	return scheme + " " + host + " " + port + query, true
}

// hasUser reports whether an address names somebody before its host.
func hasUser(s string) bool {
	_, rest, ok := strings.Cut(s, "://")
	if cut := strings.IndexAny(rest, "/?# "); cut >= 0 {
		rest = rest[:cut]
	}
	return ok && strings.Contains(rest, "@")
}

// hostsIn returns the hosts that a text of fragments names, and whether they are known.
func hostsIn(s string) (hosts []string, ok bool) {
	for _, word := range strings.Fields(s) {
		if fragments[word] == "?" {
			return nil, false
		}
		hosts = append(hosts, strings.Fields(fragments[word])...)
	}
	return hosts, true
}

func textsOf(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			all = append(all, textsOf(one)...)
		}
	}
	return all
}

func isNumber(v any) bool { _, is := v.(json.Number); return is }

// isPlain reports whether a text is no place, address or statement: of several words, by its first sign.
func isPlain(v any) bool {
	s, is := v.(string)
	s = strings.TrimSpace(s)
	signs := strings.ContainsAny(s, "/\\@:~.") || strings.HasPrefix(s, "#")
	if strings.Contains(s, " ") || strings.Contains(s, "\n") {
		signs = s != strings.TrimLeft(s, "/~.")
	}
	return is && !signs && !strings.HasPrefix(strings.ToLower(s), "drop table")
}

func canonical(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// request is the question about a call.
func (d *dealer) request(t *testing.T, c dealt) approval.Request {
	t.Helper()
	tool, ok := d.s.view.Catalog.Lookup(c.tool)
	if !ok {
		t.Fatalf("there is no tool %s", c.tool)
	}
	args, err := canon.Parse([]byte(canonical(c.args)))
	if err != nil {
		t.Fatal(err)
	}
	is := &call{tool: tool, args: args}
	is.meaning = d.s.run.meaning(d.s.view, is)
	policy := profiles.Decision{Disposition: profiles.Ask, Risk: profiles.Medium, Timeout: time.Hour, Remember: true, Revision: "rev1"}
	return approval.Request{Run: "r1", Server: tool.Server, Tool: tool.Name, Script: tool.Script, Decision: policy, Items: []approval.Item{{
		Call: 1, Server: tool.Server, Tool: tool.Name, Script: tool.Script, Decision: policy, Shown: canon.Display(args, canon.DisplayOptions{}), Cover: coverOf(d.s.run, d.s.view, is),
		Key: approval.Key{Configuration: "conf", Identity: "what it is", Session: "s1", Profile: "coding", Server: tool.Server, Tool: tool.Name, Definition: tool.Digest, Revision: "rev1", Args: args.Digest()},
	}}}
}

// others are what else may be different about a further call, and whether a yes that is for a run, or for a session, covers it then.
var others = []struct {
	make         func(*approval.Request)
	run, session bool
}{
	{func(r *approval.Request) { r.Run = "r2" }, false, true},
	{func(r *approval.Request) { r.Items[0].Key.Session = "s2" }, true, false}, // which has taken the run up
	{func(r *approval.Request) { r.Items[0].Key.Revision = "rev2" }, false, false},
	{func(r *approval.Request) { r.Items[0].Key.Profile = "research" }, false, false},
	{func(r *approval.Request) { r.Items[0].Key.Configuration = "other" }, false, false},
	{func(r *approval.Request) { r.Items[0].Key.Server, r.Items[0].Server, r.Server = "sh0p", "sh0p", "sh0p" }, true, true}, // see below
	{func(r *approval.Request) { decided(r, func(d *profiles.Decision) { d.Risk = profiles.Critical }) }, false, false},
	{func(r *approval.Request) { decided(r, func(d *profiles.Decision) { d.Manual = true }) }, false, false},
	{func(r *approval.Request) { decided(r, func(d *profiles.Decision) { d.RequireReason = true }) }, false, false},
	{func(r *approval.Request) { decided(r, func(d *profiles.Decision) { d.Remember = false }) }, false, false},
	{func(r *approval.Request) {
		decided(r, func(d *profiles.Decision) { d.Quorums = []profiles.Quorum{{Need: 2}} })
	}, false, false},
}

func decided(r *approval.Request, change func(*profiles.Decision)) {
	change(&r.Decision)
	change(&r.Items[0].Decision)
}

// Make soak has this play a million calls.
func TestGrantsAgainstTheNaiveReader(t *testing.T) {
	most := 8_000
	if testing.Short() {
		most = 800
	}
	dealAround(t, rand.New(rand.NewPCG(16, 2)), most)
}

// dealAround has calls approved for as much as is offered, and so many made around them.
func dealAround(t *testing.T, random *rand.Rand, most int) {
	d := newDealer(t, random)
	n := naiveReader{d.ws}
	yes, all, offered := 0, 0, 0
	for all < most {
		had := d.call()
		for range 20 {
			if n.offers(had) {
				break
			}
			had = d.call()
		}
		synctest.Test(t, func(t *testing.T) {
			question := d.request(t, had)
			if got := question.Items[0].Cover.Offered(); got != n.offers(had) {
				t.Fatalf("%s: offered a wider yes: %t (%+v); the naive reader says otherwise", had, got, question.Items[0].Cover)
			} else if !got {
				return
			}
			offered++
			once := naiveTools[had.tool].run
			var scopes []approval.Scope
			for _, c := range question.Choices(true) {
				if c.Scope == approval.RunScope || c.Scope == approval.SessionScope {
					scopes = append(scopes, c.Scope)
				}
			}
			if slices.Contains(scopes, approval.SessionScope) == once {
				t.Fatalf("%s: offered are %v", had, scopes)
			}
			scope := pick(d, scopes)
			b := approval.New(approval.Options{Configuration: "conf"})
			defer b.EndSession("s1")
			defer b.EndRun("r1")
			left, until := 100, time.Now().Add(time.Hour)
			say := approval.Verdict{Approve: true, Scope: scope, By: "ann", Channel: "page"}
			if scope == approval.RunScope {
				say.Count = 2 + d.IntN(5)
				left, until = say.Count-1, time.Now().Add(24*time.Hour)
			}
			answer := make(chan approval.Verdict, 1)
			go func() {
				v, err := b.Ask(t.Context(), question)
				if err != nil {
					t.Error(err)
				}
				answer <- v
			}()
			synctest.Wait()
			open := b.Take("r1")
			if len(open) != 1 {
				t.Fatalf("%d questions are open", len(open))
			}
			if _, err := b.Settle(t.Context(), open[0].ID, open[0].Digest(), say); err != nil {
				t.Fatal(err)
			}
			if v := <-answer; !v.Approve {
				t.Fatalf("answered with %+v", v)
			}
			for range 10 {
				switch d.IntN(20) {
				case 0:
					time.Sleep(time.Duration(d.Int64N(max(int64(time.Until(until)/2), 1))))
				case 1:
					time.Sleep(time.Until(until) - time.Duration(d.IntN(3)-1)*time.Second) // a second before, in time, or a second later
				}
				is := d.around(had)
				further := d.request(t, is)
				want := n.covered(had, is) && left > 0 && time.Now().Before(until)
				if d.IntN(8) == 0 {
					c := pick(d, others)
					c.make(&further)
					if further.Server == "sh0p" { // writing in the workspace is approved for all servers
						want = want && naiveTools[had.tool].files == "write" && n.stays(had)
					}
					want = want && (scope == approval.RunScope && c.run || scope == approval.SessionScope && c.session)
				}
				all++
				v, ok, err := b.Precheck(t.Context(), further)
				if err != nil || ok && (!v.Approve || v.Channel != "grant") {
					t.Fatalf("answered with %+v, %v", v, err)
				}
				if ok != want {
					t.Fatalf("%s\nwas approved for the %s (%+v), %d left\n%s\nis covered: %t (%+v); the naive reader says otherwise", had, scope, question.Items[0].Cover, left, is, ok, further.Items[0].Cover)
				}
				if !ok {
					continue
				}
				yes++
				if d.IntN(3) == 0 || scope == approval.SessionScope {
					b.Uses().Counts(v.Use)
					left--
				} else {
					b.Uses().GiveBack(v.Use)
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of %d calls are covered; %d were approved", yes, all, offered)
	if yes*20 < all || yes*2 > all {
		t.Errorf("the dealer is lame: %d of %d calls are covered", yes, all)
	}
}
