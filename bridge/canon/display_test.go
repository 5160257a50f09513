package canon_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"codemode-bridge/bridge/canon"
)

var update = flag.Bool("update", false, "rewrite the .want parts of testdata/*.txtar")

// TestGolden reads testdata/*.txtar: NAME.json holds arguments, NAME.options,
// if there is one before it, the fields of DisplayOptions, and NAME.want one
// line for each member that is shown and one with the counts. NAME.text holds
// a free text, and its NAME.want what Redact makes of it.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, f := range archive.Files {
			if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
				want[name] = string(f.Data)
			}
		}
		var options canon.DisplayOptions
		var rewritten []txtar.File
		for _, f := range archive.Files {
			name, kind, _ := strings.Cut(f.Name, ".")
			var got string
			switch kind {
			case "options":
				if err := json.Unmarshal(f.Data, &options); err != nil {
					t.Fatalf("%s: %s: %v", path, f.Name, err)
				}
			case "json":
				shown := canon.Display(mustParse(t, string(f.Data)), options)
				inert(t, shown)
				options = canon.DisplayOptions{}
				got = lines(t, shown)
			case "text":
				got = canon.Redact(string(f.Data))
			default:
				continue
			}
			rewritten = append(rewritten, f)
			if kind == "options" {
				continue
			}
			rewritten = append(rewritten, txtar.File{Name: name + ".want", Data: []byte(got)})
			if !*update && got != want[name] {
				t.Errorf("%s: %s\ngot:\n%s\nwant:\n%s", path, name, got, want[name])
			}
		}
		if *update {
			archive.Files = rewritten
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func lines(t *testing.T, shown canon.Shown) string {
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(shown.JSON))
	dec.Token()
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	fmt.Fprintf(&b, "hidden %d, cut %d\n", shown.Hidden, shown.Cut)
	return b.String()
}

// inert checks what holds of everything shown: it is valid JSON without names
// that occur twice, and every character of it, also after decoding, is one
// that a person can see.
func inert(t interface{ Fatalf(string, ...any) }, shown canon.Shown) {
	for _, r := range string(shown.JSON) {
		if !seen(r) {
			t.Fatalf("%U is shown in %s", r, shown.JSON)
		}
	}
	a, err := canon.Parse(shown.JSON)
	if err != nil {
		t.Fatalf("what is shown is no good JSON: %v\n%s", err, shown.JSON)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, v := range v {
				for _, r := range name {
					if !seen(r) {
						t.Fatalf("%U in a name of %s", r, shown.JSON)
					}
				}
				walk(v)
			}
		case []any:
			for _, v := range v {
				walk(v)
			}
		case string:
			for _, r := range v {
				if !seen(r) && r != '\n' && r != '\t' {
					t.Fatalf("%U in a string of %s", r, shown.JSON)
				}
			}
		}
	}
	walk(a.Value())
}

// seen is the allow-list, written apart from the one in the package: what
// Unicode calls graphic and is not default-ignorable, and of spaces only the
// common one.
func seen(r rune) bool {
	switch {
	case r == ' ' || '!' <= r && r <= '~':
		return true
	case r < 0xA1:
		return false
	case r == 0x00AD, r == 0x034F, r == 0x061C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x2800, r == 0x3164, r == 0xFEFF, r == 0xFFA0, r == 0xFFFC:
		return false
	case 0x180B <= r && r <= 0x180F, 0x2000 <= r && r <= 0x200F, 0x2028 <= r && r <= 0x202F, 0x205F <= r && r <= 0x206F, 0xE000 <= r && r <= 0xF8FF, 0xFE00 <= r && r <= 0xFE0F, 0xFFF0 <= r && r <= 0xFFFB:
		return false
	case 0x1D173 <= r && r <= 0x1D17A, 0xE0000 <= r:
		return false
	}
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Zs, r)
}

// nasty generates text with everything that is not to be shown as it is.
func nasty() *rapid.Generator[string] {
	r := rapid.OneOf(
		rapid.Rune(),
		rapid.SampledFrom([]rune("ab \n\r\t\x00\x1b\x7f\u0085\u00a0\u00ad\u200b\u200d\u200e\u202e\u2066\u2069\u2028\ufeff\u3164\u115f\u2800\ufe0f\U000e0041\U000e0101\u0301\u0308\u20dd\ue000\uffff\\{}u[]…\"'<>&")),
	)
	return rapid.Map(rapid.SliceOfN(r, 0, 40), func(rs []rune) string { return string(rs) })
}

func TestVisible(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"plain text, {braces} [brackets] \\ and \\u0041", "plain text, {braces} [brackets] \\ and \\u0041"},
		{"Zürich, 東京, Việt Nam, हिन्दी, שלום, 😀", "Zürich, 東京, Việt Nam, हिन्दी, שלום, 😀"},
		{"a\nb\r\tc\x00", `a\u{A}b\u{D}\u{9}c\u{0}`},
		{"\x1b[31mred\x1b[0m\x9b1m", `\u{1B}[31mred\u{1B}[0m\x{9B}1m`},
		{"\u009b1m\u0085", `\u{9B}1m\u{85}`},
		{"user\u202egnp.exe", `user\u{202E}gnp.exe`},
		{"\u2066a\u2069\u200e\u061c", `\u{2066}a\u{2069}\u{200E}\u{61C}`},
		{"pass\u200bword\u200d\ufeff\u00ad", `pass\u{200B}word\u{200D}\u{FEFF}\u{AD}`},
		{"a\u00a0b\u3000c\u2003", `a\u{A0}b\u{3000}c\u{2003}`},
		{"x\U000e0068\U000e0069\U000e007f", `x\u{E0068}\u{E0069}\u{E007F}`},
		{"a\ufe0fb\U000e0101", `a\u{FE0F}b\u{E0101}`},
		{"\u3164\u115f\uffa0\u2800\u17b5\u034f", `\u{3164}\u{115F}\u{FFA0}\u{2800}\u{17B5}\u{34F}`},
		{"\u2028\u2029", `\u{2028}\u{2029}`},
		{"\ue000\U0010ffff\ufdd0\u0378", `\u{E000}\u{10FFFF}\u{FDD0}\u{378}`},
		{"e\u0301", "e\u0301"},
		{"\u0301x /\u0301 \u0301", `\u{301}x /\u{301} \u{301}`},
		{"z" + strings.Repeat("\u0335", 6), "z" + strings.Repeat("\u0335", 4) + `\u{335}\u{335}`},
		{`\u{41} \x{41} \\u{41} \U{41}`, `\u{5C}u{41} \u{5C}x{41} \\u{5C}u{41} \U{41}`},
		{"\xff\xc3(", `\x{FF}\x{C3}(`},
		{"\ufffd", "\ufffd"},
		{"<b>&amp;</b> **x** [x](y)", "<b>&amp;</b> **x** [x](y)"},
	} {
		if got := canon.Escape(test.in); got != test.want {
			t.Errorf("Escape(%q)\n got %s\nwant %s", test.in, got, test.want)
		}
	}
	if got, want := canon.EscapeLines("a\r\n\tb\x1b\rc"), "a\n\tb\\u{1B}\\u{D}c"; got != want {
		t.Errorf("EscapeLines: got %q, want %q", got, want)
	}
}

var writtenOut = regexp.MustCompile(`\\([ux])\{([0-9A-F]+)\}`)

// original undoes Escape, as its documentation says that one can.
func original(shown string) string {
	return writtenOut.ReplaceAllStringFunc(shown, func(s string) string {
		m := writtenOut.FindStringSubmatch(s)
		n, _ := strconv.ParseUint(m[2], 16, 32)
		if m[1] == "x" {
			return string([]byte{byte(n)})
		}
		return string(rune(n))
	})
}

func TestVisibleCanBeUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(nasty(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		visible(t, s)
	})
}

func visible(t interface{ Fatalf(string, ...any) }, s string) {
	shown := canon.Escape(s)
	for _, r := range shown {
		if !seen(r) {
			t.Fatalf("Escape(%q) shows %U", s, r)
		}
	}
	if got := original(shown); got != s {
		t.Fatalf("Escape(%q) is %q, which stands for %q", s, shown, got)
	}
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"plain", "\\u{41}", "\x1b[0m", "\u202e", "a\u0301\u0301", "\xff", "\\\\x{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) { visible(t, s) })
}

func TestDisplayIsInert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := map[string]any{}
		for i, name := range rapid.SliceOfN(nasty(), 0, 8).Draw(t, "names") {
			if name != "__proto__" {
				v[name] = []any{nasty().Draw(t, "value"), map[string]any{name: i}}
			}
		}
		o := canon.DisplayOptions{
			Hidden:    map[string]string{"a": nasty().Draw(t, "replacement")},
			MaxString: rapid.IntRange(0, 30).Draw(t, "MaxString"),
			MaxArray:  rapid.IntRange(0, 3).Draw(t, "MaxArray"),
			MaxObject: rapid.IntRange(0, 5).Draw(t, "MaxObject"),
			MaxDepth:  rapid.IntRange(0, 4).Draw(t, "MaxDepth"),
			MaxBytes:  rapid.IntRange(0, 3000).Draw(t, "MaxBytes"),
		}
		if rapid.Bool().Draw(t, "fingerprints") {
			o.FingerprintKey = []byte("key")
		}
		inert(t, canon.Display(parseValue(t, v), o))
	})
}

func parseValue(t interface{ Fatalf(string, ...any) }, v any) canon.Args {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	a, err := canon.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	return a
}

func TestDisplayIsBounded(t *testing.T) {
	long := strings.Repeat("\u202e", 3000)
	wide, list := map[string]any{}, []any{}
	for i := range 200 {
		wide[fmt.Sprintf("%s%d", long[:300], i)] = long
		list = append(list, long)
	}
	deep := any(wide)
	for i := range 100 {
		deep = []any{deep, map[string]any{long[:300]: i}}
	}
	for _, v := range []any{wide, map[string]any{"l": list}, map[string]any{"d": deep, "w": wide}} {
		for _, size := range []int{1 << 10, 5 << 10, 32 << 10} {
			for _, depth := range []int{1, 8, 100} {
				o := canon.DisplayOptions{MaxBytes: size, MaxDepth: depth, MaxArray: 1000, MaxObject: 1000, MaxString: 10_000}
				shown := canon.Display(parseValue(t, v), o)
				inert(t, shown)
				if limit := max(size, 1<<10+100*depth); len(shown.JSON) > limit {
					t.Errorf("%d bytes are shown, the limit is %d", len(shown.JSON), limit)
				}
				if shown.Cut == 0 {
					t.Errorf("nothing is said to be cut: %.300s", shown.JSON)
				}
			}
		}
	}
}

// secretNames in many spellings, each of which hides its value.
var secretNames = []string{
	"token", "Token", "TOKEN", "accessToken", "access_token", "ACCESS-TOKEN", "refresh.token", "x-auth-token", "tokens", "token2", "tokenValue",
	"apiKey", "api_key", "API_KEY", "X-Api-Key", "api key", "apikey", "APIKEY", "openaiApiKey", "api_keys",
	"password", "Password", "passwd", "pwd", "pw", "pass", "db_password", "userPassword", "PGPASSWORD", "passphrase", "password_hash", "pass\u200bword",
	"secret", "clientSecret", "client_secret", "clientsecret", "AWS_SECRET_ACCESS_KEY", "secretKey", "secret_id", "secrets", "webhookSecret",
	"authorization", "Authorization", "Proxy-Authorization", "auth", "cookie", "Set-Cookie", "cookies", "sessionCookie", "sessionId", "PHPSESSID",
	"credential", "credentials", "userCreds", "privateKey", "private_key", "PRIVATE KEY", "sshKey", "signing-key", "encryptionKey", "AccountKey",
	"jwt", "bearer", "otp", "recovery_codes", "mnemonic", "x-csrf-token", "idToken",
}

// openNames look like them and hide nothing.
var openNames = []string{
	"tokenCount", "token_count", "maxTokens", "max_tokens", "max_output_tokens", "promptTokens", "total_tokens", "nextPageToken", "pageToken", "continuation_token",
	"keyboard", "key", "keys", "keyword", "primaryKey", "publicKey", "public_key", "monkey", "tokenizer", "tokenType", "token_type", "tokenUrl", "token_endpoint",
	"secretary", "secretName", "passwordPolicy", "password_length", "passwordFile", "cookiePolicy", "cookieName", "author", "authority", "authorId", "passenger",
	"passport", "compass", "bypass", "session", "signature", "code", "name", "title", "tokenId", "tokenExpiresAt", "secretsEnabled", "passwordField",
}

func TestNames(t *testing.T) {
	shownAs := func(name string) string {
		a := parseValue(t, map[string]any{name: "hunter2 it is"})
		var m map[string]string
		if err := json.Unmarshal(canon.Display(a, canon.DisplayOptions{}).JSON, &m); err != nil {
			t.Fatal(err)
		}
		for _, v := range m {
			return v
		}
		return ""
	}
	for _, name := range secretNames {
		if got := shownAs(name); got != "[hidden]" {
			t.Errorf("the value of %q is shown as %q", name, got)
		}
	}
	for _, name := range openNames {
		if got := shownAs(name); got != "hunter2 it is" {
			t.Errorf("the value of %q is shown as %q", name, got)
		}
	}
}

// places are the ways in which a secret with a name can stand in arguments;
// each is given name and secret.
var places = map[string]func(name, secret string) any{
	"member":  func(n, s string) any { return map[string]any{n: s} },
	"list":    func(n, s string) any { return map[string]any{n: []any{1, s}} },
	"object":  func(n, s string) any { return map[string]any{n: map[string]any{"value": s, "x": []any{s}}} },
	"pair":    func(n, s string) any { return map[string]any{"name": n, "value": s} },
	"tuple":   func(n, s string) any { return []any{n, s} },
	"flag":    func(n, s string) any { return []any{"run", "--" + n, s, "x"} },
	"header":  func(n, s string) any { return n + ": " + s },
	"env":     func(n, s string) any { return "A=1\n" + n + "=" + s + "\nB=2" },
	"yaml":    func(n, s string) any { return "a: 1\n  " + n + ": " + s + "\n" },
	"quoted":  func(n, s string) any { return `x = {"` + n + `" : "` + s + `", 'y': 1` },
	"single":  func(n, s string) any { return "{'" + n + "': '" + s + "'}" },
	"program": func(n, s string) any { return "const c = connect({" + n + ": `" + s + "`});" },
	"query":   func(n, s string) any { return "see https://example.com/x?a=1&" + n + "=" + s + "&b=2 there" },
	"xml":     func(n, s string) any { return "<a><" + n + ">" + s + "</" + n + "></a>" },
	"pair in a text": func(n, s string) any {
		return "call({ list: [{ 'name': `" + n + "`,\n  value : \"" + s + "\" }] })"
	},
	"shell": func(n, s string) any { return "deploy --" + n + " " + s + " --force" },
	"list in a text": func(n, s string) any {
		return `{"` + n + `": ["` + s + `", {"x": "}` + s + `"}], "y": "z"}`
	},
}

var oneWord = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// beside are the places where the name stands in a value of its own: they are
// known in the arguments themselves, not in JSON inside a string.
var beside = map[string]bool{"tuple": true, "flag": true}

// TestCanary plants a secret in every place, under a random hidden name,
// wrapped in objects, lists and JSON inside strings, and looks for it in what
// is shown.
func TestCanary(t *testing.T) {
	for place, plant := range places {
		t.Run(place, func(t *testing.T) {
			wraps := []string{"object", "list", "string", "text"}
			if beside[place] {
				wraps = wraps[:2]
			}
			rapid.Check(t, func(t *rapid.T) {
				canary := rapid.StringMatching(`[a-z][A-Za-z0-9]{11,30}`).Draw(t, "canary")
				name := rapid.SampledFrom(secretNames).Draw(t, "name")
				switch place {
				case "member", "object", "list":
				default: // in a text a name is a word
					if !oneWord.MatchString(name) {
						name = "password"
					}
				}
				v := plant(name, canary)
				for range rapid.IntRange(0, 4).Draw(t, "levels") {
					switch rapid.SampledFrom(wraps).Draw(t, "wrap") {
					case "object":
						v = map[string]any{"a": 1, "inner": v}
					case "list":
						v = []any{"x", v, nil}
					case "string":
						v = marshal(t, v)
					case "text":
						v = "before " + marshal(t, v) + " after"
					}
				}
				a := parseValue(t, map[string]any{"v": v})
				key := rapid.SampledFrom([][]byte{nil, []byte("key")}).Draw(t, "fingerprint key")
				shown := canon.Display(a, canon.DisplayOptions{FingerprintKey: key, MaxDepth: 20})
				inert(t, shown)
				if bytes.Contains(shown.JSON, []byte(canary)) || shown.Hidden == 0 {
					t.Fatalf("%s\nis shown as\n%s", a.Bytes(), shown.JSON)
				}
			})
		})
	}
}

func marshal(t interface{ Fatalf(string, ...any) }, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(text)
}

// fake puts together a made-up secret, so that no scanner takes this file for
// a leak.
func fake(parts ...string) string { return strings.Join(parts, "") }

var shapes = map[string]string{
	"JWT":             fake("eyJ", "hbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0In0.", "c2lnbmF0dXJlLWhlcmU"),
	"unsigned JWT":    fake("eyJ", "hbGciOiJub25lIn0.", "eyJzdWIiOiIxMjM0In0."),
	"PEM":             fake("-----BEGIN ", "RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabcd\n-----END RSA PRIVATE KEY-----"),
	"PEM in one line": fake("-----BEGIN ", "OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXk\\n-----END OPENSSH PRIVATE KEY-----"),
	"PEM cut off":     fake("-----BEGIN ", "EC PRIVATE KEY-----\nMHcCAQEEIIvh"),
	"PGP message":     fake("-----BEGIN ", "PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----"),
	"AWS":             fake("AKIA", "IOSFODNN7EXAMPLE"),
	"AWS session":     fake("ASIA", "IOSFODNN7EXAMPLE"),
	"Google":          fake("AIza", "SyD-1234567890abcdefghijklmnopqrstu"),
	"Google OAuth":    fake("ya29", ".a0AfH6SMBx-abcdefghij"),
	"GitHub":          fake("ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"),
	"GitHub fine":     fake("github_pat_", "11ABCDEFG0abcdefghijkl_abcdefghijklmnop"),
	"GitLab":          fake("glpat", "-abcdefghij1234567890"),
	"Slack":           fake("xoxb", "-123456789012-abcdefghijkl"),
	"OpenAI":          fake("sk-", "proj-abcdefghijklmnopqrstuvwxyz"),
	"Anthropic":       fake("sk-ant-", "api03-abcdefghijklmnopqrstuv"),
	"Stripe":          fake("sk_live", "_abcdefghijklmnop"),
	"npm":             fake("npm_", "abcdefghijklmnopqrstuvwxyz0123456789"),
	"SendGrid":        fake("SG.", "abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz"),
	"Hugging Face":    fake("hf_", "abcdefghijklmnopqrstuvwxyz"),
	"Telegram":        fake("123456789:", "AAabcdefghijklmnopqrstuvwxyz123456789"),
	"age":             fake("AGE-SECRET-KEY-", "1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ"),
}

func TestShapes(t *testing.T) {
	for kind, secret := range shapes {
		for _, text := range []string{"", "see ", "{\"x\": \"", "('", "a=", "url/", "\n"} {
			a := parseValue(t, map[string]any{"text": text + secret + "\" more", "l": []any{map[string]any{secret: 1}}})
			shown := canon.Display(a, canon.DisplayOptions{})
			inert(t, shown)
			if body := strings.TrimPrefix(secret, "-----BEGIN "); strings.Contains(decoded(t, shown), body) {
				t.Errorf("%s after %q is shown: %s", kind, text, shown.JSON)
			}
			if shown.Hidden < 2 { // the name, the text, and what has a name like AGE-SECRET-KEY
				t.Errorf("%s after %q: hidden %d times, want 2 or more: %s", kind, text, shown.Hidden, shown.JSON)
			}
			if got := canon.Redact(text + secret); strings.Contains(got, secret) {
				t.Errorf("Redact shows %s: %s", kind, got)
			}
		}
	}
}

// decoded returns all strings and names in shown, one to a line.
func decoded(t *testing.T, shown canon.Shown) string {
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(shown.JSON))
	for {
		token, err := dec.Token()
		if err != nil {
			return b.String()
		}
		fmt.Fprintln(&b, token)
	}
}

func TestRedactText(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("user:hunter2"))
	for _, test := range []struct{ in, want string }{
		{"nothing here: all is = well", "nothing here: all is = well"},
		{"Authorization: Bearer abc.def", "Authorization: [hidden: looks like a secret]"},
		{"-H 'Authorization: Basic " + basic + "' -v", "-H 'Authorization: [hidden: looks like a secret]' -v"},
		{"uses Basic " + basic + " here", "uses Basic [hidden: looks like a password] here"},
		{"basic authentication with a bearer of news", "basic authentication with a bearer of news"},
		{"send bearer abcdefghijkl now", "send bearer [hidden: looks like a bearer token] now"},
		{"Cookie: a=b; c=d\nAccept: x", "Cookie: [hidden: looks like a secret]\nAccept: x"},
		{"https://user:pa:ss@w@example.com/x@y", "https://[hidden: looks like a password]@example.com/x@y"},
		{"https://example.com/@user/x", "https://example.com/@user/x"},
		{"postgres://u:p/w#d@db.example/x?sslmode=off", "postgres://[hidden: looks like a password]@db.example/x?sslmode=off"},
		{"https://h/?key=abcdef&q=1&sig=zzzzzz", "https://h/?key=[hidden: looks like a secret]&q=1&sig=[hidden: looks like a secret]"},
		{"https://h/p?code=abc#access_token=xyzw", "https://h/p?code=[hidden: looks like a secret]#access_token=[hidden: looks like a secret]"},
		{"the key: value, code = 12345, sig=abcd", "the key: value, code = 12345, sig=abcd"},
		{"max tokens = 1000, tokenCount: 500", "max tokens = 1000, tokenCount: 500"},
		{"api key: abcd, access key = efgh", "api key: [hidden: looks like a secret], access key = [hidden: looks like a secret]"},
		{"const token: string = \"abc\";", "const token: string = \"[hidden: looks like a secret]\";"},
		{"function f(token: string, password?: string)", "function f(token: string, password?: string)"},
		{"env[\"API_TOKEN\"] = 'abc'", "env[\"API_TOKEN\"] = '[hidden: looks like a secret]'"},
		{":token => \"abc\", 'password' => 'def'", ":token => \"[hidden: looks like a secret]\", 'password' => '[hidden: looks like a secret]'"},
		{"if (password == x || token != y) {}", "if (password == x || token != y) {}"},
		{"curl -u admin:hunter2 https://h", "curl -u [hidden: looks like a password] https://h"},
		{`{\"token\":\"a\\\"b\",\"x\":1}`, `{\"token\":\"[hidden: looks like a secret]\",\"x\":1}`},
		{`{"to\u006ben":"abc"}`, `{"to\u006ben":"[hidden: looks like a secret]"}`},
		{`{"password":""}`, `{"password":""}`},
		{"x=1\nexport DB_PASSWORD=a,b;c(d)&e f\ny=2", "x=1\nexport DB_PASSWORD=[hidden: looks like a secret] f\ny=2"},
		{"mnemonic: one two three\nnext: x", "mnemonic: [hidden: looks like a secret]\nnext: x"},
		{"a:\n  password: |-\n    one\n\n    two\nb: 1", "a:\n  password: |-\n[hidden: looks like a secret, 16 characters in 3 lines]\nb: 1"},
		{"secret: |\n  x", "secret: |\n[hidden: looks like a secret]"},
		{"secret: >", "secret: >"},
		{"**Password:** hunter2, **Token**: abcd", "**Password:** [hidden: looks like a secret], **Token**: [hidden: looks like a secret]"},
		{`{"token":"never closed`, `{"token":"[hidden: looks like a secret]`},
		{`"secrets": {"a": [1, "}"]}, "b": 2`, `"secrets": [hidden: looks like a secret], "b": 2`},
		{"<password>x y</password><password></password>", "<password>[hidden: looks like a secret]</password><password></password>"},
	} {
		if got := canon.Redact(test.in); got != test.want {
			t.Errorf("Redact(%q)\n got %q\nwant %q", test.in, got, test.want)
		}
	}
}

// TestExtraNames: names of the configuration are added to the built-in ones.
func TestExtraNames(t *testing.T) {
	a := parseValue(t, map[string]any{
		"internal-id": 7, "Internal Id": true, "tokenCount": "x", "password": "p", "note": "see internal_id=abc, password=defg", "empty": "",
	})
	o := canon.DisplayOptions{Hidden: map[string]string{"internalId": "***", "token_count": "", "empty": "gone\n\u202e", "": "no name"}}
	want := `{"Internal Id":"***","empty":"gone\\u{A}\\u{202E}","internal-id":"***","note":"see internal_id=***, password=[hidden: looks like a secret]","password":"[hidden]","tokenCount":"[hidden]"}`
	shown := canon.Display(a, o)
	inert(t, shown)
	if string(shown.JSON) != want || shown.Hidden != 7 {
		t.Errorf("hidden %d\n got %s\nwant %s", shown.Hidden, shown.JSON, want)
	}
	if got, n := o.Redact("internal_id: abcd"); got != "internal_id: ***" || n != 1 {
		t.Errorf("Redact: %q, %d", got, n)
	}
}

func TestFingerprints(t *testing.T) {
	key := []byte("the key of one store")
	fp := canon.Fingerprint(key, `the "token"`)
	if !regexp.MustCompile(`^fp:[0-9a-f]{16}$`).MatchString(fp) {
		t.Fatalf("fingerprint %q", fp)
	}
	if fp == canon.Fingerprint([]byte("another key"), `the "token"`) || fp == canon.Fingerprint(key, "the token") {
		t.Error("fingerprints do not depend on key and value")
	}
	// The same secret has the same fingerprint wherever it stands.
	inner := marshal(t, map[string]any{"password": `the "token"`})
	a := parseValue(t, map[string]any{"token": `the "token"`, "text": inner, "deeper": marshal(t, map[string]any{"x": inner})})
	shown := canon.Display(a, canon.DisplayOptions{FingerprintKey: key, Hidden: map[string]string{"other": "***"}})
	if n := strings.Count(string(shown.JSON), fp); n != 3 {
		t.Errorf("the fingerprint is shown %d times, want 3: %s", n, shown.JSON)
	}
	shown = canon.Display(parseValue(t, map[string]any{"other": 5}), canon.DisplayOptions{FingerprintKey: key, Hidden: map[string]string{"other": "***"}})
	if want := `{"other":"*** [` + canon.Fingerprint(key, "5") + `]"}`; string(shown.JSON) != want {
		t.Errorf("got %s, want %s", shown.JSON, want)
	}
}

// TestMarksCannotBeForged: arguments that hold our own marks are shown so that
// they cannot be taken for them.
func TestMarksCannotBeForged(t *testing.T) {
	a := parseValue(t, map[string]any{"a": "… 1,482 characters in all", "b": "[hidden: looks like a secret]", "…": "… 5 members in all", "c": `\u{202E}`})
	want := `{"a":"\\u{2026} 1,482 characters in all","b":"\\u{5B}hidden: looks like a secret]","c":"\\u{5C}u{202E}","\\u{2026}":"\\u{2026} 5 members in all"}`
	shown := canon.Display(a, canon.DisplayOptions{})
	if string(shown.JSON) != want || shown.Cut != 0 || shown.Hidden != 0 {
		t.Errorf("cut %d, hidden %d\n got %s\nwant %s", shown.Cut, shown.Hidden, shown.JSON, want)
	}
}

// TestSecretAcrossTheCut: a secret is known by its whole, also when only its
// beginning would be shown.
func TestSecretAcrossTheCut(t *testing.T) {
	secret := shapes["GitHub"]
	for n := range len(secret) + 10 {
		text := strings.Repeat("x ", 20) + secret + " and more"
		shown := canon.Display(parseValue(t, map[string]any{"a": text}), canon.DisplayOptions{MaxString: 30 + n})
		if strings.Contains(string(shown.JSON), secret[:5]) {
			t.Errorf("%d characters: %s", 30+n, shown.JSON)
		}
	}
}

func FuzzDisplay(f *testing.F) {
	f.Add("text", "name", 10)
	f.Add(`{\"token\":\"x`, "password", 2000)
	f.Add("https://u:p@h/?token=x&", "a\u202e", 1)
	f.Add("-----BEGIN PRIVATE KEY-----", "[hidden", 5)
	f.Add("Authorization: Basic \"'`\\\\\"", "…", 100)
	f.Fuzz(func(t *testing.T, text, name string, max int) {
		if !utf8.ValidString(text) || !utf8.ValidString(name) || name == "__proto__" {
			return
		}
		a := parseValue(t, map[string]any{name: []any{text, map[string]any{name: text}, name}, "x": text})
		inert(t, canon.Display(a, canon.DisplayOptions{MaxString: max, FingerprintKey: []byte("k")}))
		if shown, n := (canon.DisplayOptions{}).Redact(text); n == 0 && shown != text {
			t.Fatalf("Redact changes %q to %q and says it hides nothing", text, shown)
		}
	})
}
