package canon

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Redact returns text with what looks like a secret replaced by a mark such
// as [hidden: looks like a JWT]. Secrets are known
//
//   - by their shape: JWTs, PEM blocks, keys of the large clouds and services,
//     bearer and basic credentials, user information in URLs;
//   - by the name before them: token=..., "password": "...", Cookie: ...,
//     --api-key ..., <secret>...</secret>, ?access_token=..., with the names
//     that Display hides, also inside JSON that is quoted in a string, at any
//     level of quoting.
//
// It hides rather too much than too little, and cannot hide a secret that has
// neither shape nor name.
func Redact(text string) string {
	shown, _ := DisplayOptions{}.Redact(text)
	return shown
}

// Redact is the function Redact with the hidden names and the fingerprints of
// o. It also returns how many parts were hidden.
func (o DisplayOptions) Redact(text string) (shown string, hidden int) {
	h := newHider(o)
	spans := h.spans(text)
	if len(spans) == 0 {
		return text, 0
	}
	var b strings.Builder
	pos := 0
	for _, s := range spans {
		b.WriteString(text[pos:s.start])
		b.WriteString(h.mark(s.mark, s.secret(text)))
		pos = s.end
	}
	b.WriteString(text[pos:])
	return b.String(), len(spans)
}

// Fingerprint returns "fp:" and 16 hexadecimal digits that tell equal hidden
// values from different ones. Without the key nothing can be learnt from it,
// not even by trying likely values.
func Fingerprint(key []byte, value string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("codemode-bridge hidden value\x00"))
	h.Write([]byte(value))
	return "fp:" + hex.EncodeToString(h.Sum(nil)[:8])
}

// hiddenMark is how the text in place of a hidden value begins. Display
// writes the bracket out where the arguments themselves hold this text.
const hiddenMark = "[hidden"

// Marks of a hidden value: by its name, and inside a string by its name.
const (
	markValue  = "[hidden]"
	markSecret = "[hidden: looks like a secret]"
)

// A hider finds what has to be hidden. It is made for one display.
type hider struct {
	extra map[string]string // plainName -> text
	key   []byte
}

func newHider(o DisplayOptions) *hider {
	h := &hider{key: o.FingerprintKey}
	if len(o.Hidden) > 0 {
		h.extra = make(map[string]string, len(o.Hidden))
		for name, text := range o.Hidden {
			if text == "" {
				text = markValue
			}
			h.extra[plainName(name)] = text
		}
	}
	return h
}

// hides reports whether the value of name is hidden, and what replaces it: an
// empty mark if the built-in rules hide it.
func (h *hider) hides(name string) (mark string, ok bool) {
	name = telling(name)
	if len(h.extra) > 0 {
		if text, ok := h.extra[plainName(name)]; ok {
			return text, true
		}
	}
	return "", secretName(name)
}

// mark completes the text that replaces secret. Of one that is long or has
// several lines it says so: more than a secret may stand there.
func (h *hider) mark(mark, secret string) string {
	if lines := strings.Count(secret, "\n") + 1; lines > 1 || len(secret) > longSecret {
		if head, ok := strings.CutSuffix(mark, "]"); ok && strings.HasPrefix(mark, hiddenMark) {
			mark = fmt.Sprintf("%s, %d characters in %d lines]", head, utf8.RuneCountInString(secret), lines)
		}
	}
	if len(h.key) == 0 {
		return mark
	}
	fp := Fingerprint(h.key, secret)
	if head, ok := strings.CutSuffix(mark, "]"); ok && strings.HasPrefix(mark, hiddenMark) {
		return head + ", " + fp + "]"
	}
	return mark + " [" + fp + "]"
}

// longSecret is more than most secrets have, in bytes.
const longSecret = 200

// A span is a part of a text that is hidden.
type span struct {
	start, end int
	mark       string
	level      int // how often the text is quoted as a JSON string
}

// secret returns the hidden text, unquoted, so that a token has the same
// fingerprint wherever it stands.
func (s span) secret(text string) string {
	secret := text[s.start:s.end]
	for range s.level {
		p := parser{in: []byte(`"` + secret + `"`), valid: true}
		plain, err := p.string()
		if err != nil || p.pos != len(p.in) {
			break
		}
		secret = string(plain)
	}
	return secret
}

// spans returns the parts of text to hide, in order and apart.
//
// JSON is often quoted in a string, and that again in a string. So the text is
// searched as it is, and then once more for each level of quoting, with the
// escapes of that level taken away.
func (h *hider) spans(text string) []span {
	spans := h.search(text, nil)
	v := view{text: text}
	for level := 1; level <= maxQuoting && strings.Contains(v.text, `\`); level++ {
		v = v.unquoted()
		for _, s := range h.search(v.text, nil) {
			s.start, s.end, s.level = v.at[s.start], v.at[s.end], s.level+level
			spans = append(spans, s)
		}
	}
	if len(spans) < 2 {
		return spans
	}
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	apart := spans[:1]
	for _, s := range spans[1:] {
		last := &apart[len(apart)-1]
		if s.start < last.end {
			if s.end > last.end {
				last.end, last.level = s.end, 0
			}
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

// search appends what is to be hidden in text, without regard to quoting.
func (h *hider) search(text string, spans []span) []span {
	spans = h.named(text, spans)
	spans = shaped(text, spans)
	return userinfo(text, spans)
}

// maxQuoting is how many levels of quoting are looked through. Each doubles
// the backslashes of the one below.
const maxQuoting = 8

// A view is a text with levels of quoting taken away.
type view struct {
	text string
	at   []int // of each byte of text, and of its end, in the original; nil for the original itself
}

// unquoted takes one level of JSON escapes away. What is no escape stays.
func (v view) unquoted() view {
	text := make([]byte, 0, len(v.text))
	at := make([]int, 0, len(v.text)+1)
	origin := func(i int) int {
		if v.at == nil {
			return i
		}
		return v.at[i]
	}
	p := parser{in: []byte(v.text), valid: true}
	for p.pos < len(p.in) {
		start := p.pos
		if p.in[start] == '\\' {
			if plain, err := p.escape(text); err == nil {
				for range len(plain) - len(text) {
					at = append(at, origin(start))
				}
				text = plain
				continue
			}
			p.pos = start
		}
		text = append(text, p.in[start])
		at = append(at, origin(start))
		p.pos++
	}
	return view{text: string(text), at: append(at, origin(len(v.text)))}
}

// A shape is a kind of secret that is known by its look. The expression is
// tried only on texts that hold one of its hints; its first group, if it has
// one, is the secret.
type shape struct {
	mark  string
	hints []string
	re    *regexp.Regexp
}

func newShape(what, hints, re string) shape {
	return shape{mark: hiddenMark + ": looks like " + what + "]", hints: strings.Split(hints, "|"), re: regexp.MustCompile(re)}
}

var shapes = []shape{
	newShape("a private key", "PRIVATE KEY", `(?s)-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-{4,5}.*?(?:-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-{4,5}|\z)`),
	newShape("a PEM block", "-----BEGIN ", `(?s)-----BEGIN [A-Z0-9 ]{1,60}-----.*?(?:-----END [A-Z0-9 ]{1,60}-----|\z)`),
	newShape("a private key", "PuTTY-User-Key-File-", `(?s)PuTTY-User-Key-File-\d.*`),
	newShape("an age key", "AGE-SECRET-KEY-", `AGE-SECRET-KEY-1[0-9A-Z]{20,}`),
	newShape("a JWT", "eyJ", `eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){1,3}`),
	newShape("an AWS key", "AKIA|ASIA|ABIA|ACCA", `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`),
	newShape("a Google key", "AIza|ya29.|GOCSPX-", `\b(?:AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_.-]{10,}|GOCSPX-[0-9A-Za-z_-]{20,})`),
	newShape("a GitHub token", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_", `(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`),
	newShape("a GitLab token", "gl", `\bgl(?:pat|ptt|dt|rt|soat|cbt|ft|imt|agent|oas)-[A-Za-z0-9_.-]{20,}`),
	newShape("a Slack token", "xox|xapp-|hooks.slack.com", `(?:xox[abdeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9_/-]{10,}))`),
	newShape("a webhook secret", "/api/webhooks/|whsec_", `(?:discord(?:app)?\.com/api/webhooks/([0-9]+/[A-Za-z0-9_-]{10,})|whsec_[A-Za-z0-9+/=_-]{16,})`),
	newShape("an API key", "sk-|sk_|rk_|pk_live|gsk_|xai-|hf_|r8_", `\b(?:sk-[A-Za-z0-9_-]{20,}|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,})`),
	newShape("a registry token", "npm_|pypi-|dckr_pat_|rubygems_", `(?:\bnpm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,}|dckr_pat_[A-Za-z0-9_-]{20,}|rubygems_[0-9a-f]{40,})`),
	newShape("an API key", "ntn_", `\bntn_[A-Za-z0-9]{20,}`),
	newShape("an API key", "SG.|SK|key-|lin_|dop_v1_|doo_v1_|dapi|hvs.|hvb.|shp|NRAK-|ATATT|AccountKey=", `(?:\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|\bSK[0-9a-f]{32}\b|\bkey-[0-9a-f]{32}\b|\blin_(?:api|oauth)_[A-Za-z0-9]{20,}|\bdo[op]_v1_[0-9a-f]{32,}|\bdapi[0-9a-f]{32}|\bhv[sb]\.[A-Za-z0-9_-]{20,}|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|\bNRAK-[A-Z0-9]{20,}|\bATATT[A-Za-z0-9_=-]{20,}|AccountKey=([A-Za-z0-9+/=]{20,}))`),
	newShape("a bot token", ":AA", `\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}`),
	newShape("a bearer token", "earer |EARER |earer%20", `(?i)\bbearer(?: +|%20)([A-Za-z0-9._~+/=-]{8,})`),
	newShape("a password", "-u|--user", `(?:^|\s)(?:-u|--user)[ =]?["']?([^\s"':]+:[^\s"']+)`),
}

// basic is apart: that "Basic" is no common word shows only in what follows,
// which must be base64 of user:password.
var basic = regexp.MustCompile(`(?i)\bbasic +([A-Za-z0-9+/_-]{8,}={0,2})`)

func shaped(text string, spans []span) []span {
	for _, s := range shapes {
		if !slices.ContainsFunc(s.hints, func(hint string) bool { return strings.Contains(text, hint) }) {
			continue
		}
		for _, at := range s.re.FindAllStringSubmatchIndex(text, -1) {
			start, end := at[0], at[1]
			if len(at) > 2 && at[2] >= 0 {
				start, end = at[2], at[3]
			}
			spans = append(spans, span{start: start, end: end, mark: s.mark})
		}
	}
	if strings.Contains(text, "asic ") || strings.Contains(text, "ASIC ") {
		for _, at := range basic.FindAllStringSubmatchIndex(text, -1) {
			credentials := strings.TrimRight(text[at[2]:at[3]], "=")
			if plain, err := base64.RawStdEncoding.DecodeString(credentials); err == nil && strings.Contains(string(plain), ":") {
				spans = append(spans, span{start: at[2], end: at[3], mark: hiddenMark + ": looks like a password]"})
			}
		}
	}
	return spans
}

// userinfo hides what stands before the @ of a URL.
func userinfo(text string, spans []span) []span {
	const maxAuthority = 1 << 10
	for pos, end := 0, 0; ; {
		i := strings.Index(text[pos:], "://")
		if i < 0 {
			return spans
		}
		start := pos + i + len("://")
		pos = start
		scheme := wordBefore(text, start-len("://"), "+.-")
		if scheme == "" {
			continue
		}
		for end = max(end, start); end < len(text) && !strings.ContainsRune(" \t\r\n\"'`<>\\", rune(text[end])); {
			end++
		}
		// Web addresses have an @ in paths too (npm, Mastodon). In addresses
		// of databases and the like an @ more often ends a password with an
		// unescaped / or # in it.
		authority := text[start:min(end, start+maxAuthority)]
		stops := "?"
		if web := strings.ToLower(scheme); web == "http" || web == "https" || web == "ws" || web == "wss" {
			stops = "/?#"
		}
		if stop := strings.IndexAny(authority, stops); stop >= 0 {
			authority = authority[:stop]
		}
		if at := strings.LastIndexByte(authority, '@'); at > 0 {
			spans = append(spans, span{start: start, end: start + at, mark: hiddenMark + ": looks like a password]"})
		}
	}
}

// named finds values by the names before them. It looks at every character
// that can stand between a name and a value, and backwards from there, so
// that one odd quote does not hide what follows from it.
func (h *hider) named(text string, spans []span) []span {
	skip := 0 // end of the last span
	for i := 0; i < len(text); i++ {
		var name string
		quoted, value := false, i+1
		switch text[i] {
		case ':':
			switch {
			case strings.HasPrefix(text[i+1:], "//"):
				continue
			case strings.HasPrefix(text[i+1:], ":"):
				i++
				continue
			case strings.HasPrefix(text[i+1:], "="):
				value++
			}
			name, quoted = nameBefore(text, i)
		case '=':
			if i > 0 && strings.IndexByte("=!<>:", text[i-1]) >= 0 || strings.HasPrefix(text[i+1:], "=") {
				continue
			}
			if strings.HasPrefix(text[i+1:], ">") {
				value++
			}
			name, quoted = nameBefore(text, i)
		case '>':
			name = tagBefore(text, i)
		case ' ', '\t':
			name = flagBefore(text, i)
		default:
			continue
		}
		if name == "" || i < skip {
			continue
		}
		mark, ok := h.hidesInText(text, name, i)
		if !ok {
			continue
		}
		s, ok := valueAfter(text, value, name, quoted, text[i] == '>')
		if ok && !quoted && inQuery(text, i, name) {
			if fragment := strings.IndexByte(text[s.start:s.end], '#'); fragment >= 0 {
				s.end = s.start + fragment
			}
		}
		if !ok {
			continue
		}
		if s.mark = mark; mark == "" {
			s.mark = markSecret
		}
		spans = append(spans, s)
		skip = s.end
	}
	return spans
}

// hidesInText is hides for a name that ends before the separator at i. It
// looks at what stands before the name, too.
func (h *hider) hidesInText(text, name string, i int) (mark string, ok bool) {
	end := i
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '\t') {
		end--
	}
	start := max(0, end-len(name))
	bare := text[start:end] == name // not in quotes or brackets
	word := ""
	if bare && start > 0 && text[start-1] == ' ' {
		word = wordBefore(text, start-1, "_-")
	}
	if mark, ok = h.hides(name); ok {
		if mark == "" && word != "" && aboutSecret(keyWords(word+" "+name)) { // max tokens = 100
			return "", false
		}
		return mark, true
	}
	if valueNames[strings.ToLower(name)] {
		if pair := pairBefore(text, i, name); pair != "" {
			return h.hides(pair)
		}
	}
	switch {
	case !bare || start == 0:
	case inQuery(text, i, name):
		return "", urlNames[plainName(name)]
	case word != "": // api key: ...
		if mark, ok := h.extra[plainName(word+name)]; ok {
			return mark, true
		}
		words := keyWords(word + " " + name)
		return "", len(words) > 1 && endsSecret(strings.Join(words, "")) && !aboutSecret(words)
	case text[i] == '=': // token: string = ...
		before := strings.TrimRight(text[:start], " \t")
		if strings.HasSuffix(before, ":") {
			annotated, _ := nameBefore(text, len(before)-1)
			return h.hides(annotated)
		}
	}
	return "", false
}

// pairNames hold the name of what one of valueNames, next to them, holds:
// {"name": "API_KEY", "value": ...}.
var (
	pairNames  = set("name key header field id env")
	valueNames = set("value val values")
)

// pairBefore returns what stands in quotes under one of pairNames before name,
// which ends before i; "" if nothing does.
func pairBefore(text string, i int, name string) string {
	const space = " \t\r\n"
	before := strings.TrimRight(text[max(0, i-3*maxName):i], space)
	before = strings.TrimRight(before, "\"'`")
	before, ok := strings.CutSuffix(before, name)
	if !ok {
		return ""
	}
	before = strings.TrimRight(strings.TrimRight(before, "\"'`"), space)
	before, ok = strings.CutSuffix(before, ",")
	if before = strings.TrimRight(before, space); !ok || before == "" || strings.IndexByte("\"'`", before[len(before)-1]) < 0 {
		return ""
	}
	end := len(before) - 1
	start := strings.LastIndexByte(before[:end], before[end])
	if start < 0 {
		return ""
	}
	key, ok := strings.CutSuffix(strings.TrimRight(before[:start], space), ":")
	if under, _ := nameBefore(key+":", len(key)); !ok || !pairNames[strings.ToLower(under)] {
		return ""
	}
	return unquoteName(before[start+1 : end])
}

// inQuery reports whether name, which ends at i, is one of the query or the
// fragment of a URL.
func inQuery(text string, i int, name string) bool {
	start := i - len(name)
	return text[i] == '=' && start > 0 && text[start:i] == name && strings.IndexByte("?&;#", text[start-1]) >= 0
}

// maxName is how far back a name may begin.
const maxName = 100

// nameBefore returns the name that ends before i: a word, or what stands in
// quotes.
func nameBefore(text string, i int) (name string, quoted bool) {
	low := max(0, i-maxName)
	for i > low && strings.IndexByte(" \t]?*", text[i-1]) >= 0 {
		i--
	}
	if i == low {
		return "", false
	}
	if q := text[i-1]; q == '"' || q == '\'' || q == '`' {
		start := strings.LastIndexByte(text[low:i-1], q)
		if start < 0 {
			return "", false
		}
		name = text[low+start+1 : i-1]
		return unquoteName(name), true
	}
	name = wordBefore(text, i, "_-.$")
	return name[strings.LastIndexByte(name, '.')+1:], false
}

// unquoteName takes the backslashes of any level of quoting from a name.
func unquoteName(name string) string {
	if !strings.Contains(name, `\`) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		if name[i] != '\\' {
			b.WriteByte(name[i])
			i++
			continue
		}
		for i < len(name) && name[i] == '\\' {
			i++
		}
		p := parser{in: []byte(`\` + name[i:])}
		if r, ok := p.hex(0); ok {
			b.WriteRune(r)
			i += len("u0000")
		}
	}
	return b.String()
}

// wordBefore returns the letters, digits and characters of more that end
// before i.
func wordBefore(text string, i int, more string) string {
	start := i
	for start > 0 && i-start < maxName {
		c := text[start-1]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte(more, c) >= 0) {
			break
		}
		start--
	}
	return text[start:i]
}

// tagBefore returns the name of the XML tag that ends at i.
func tagBefore(text string, i int) string {
	name := wordBefore(text, i, "_-.:")
	if start := i - len(name); name == "" || start == 0 || text[start-1] != '<' {
		return ""
	}
	return name
}

// flagBefore returns the name of the command-line flag that ends at i.
func flagBefore(text string, i int) string {
	word := wordBefore(text, i, "_-")
	if !strings.HasPrefix(word, "-") {
		return ""
	}
	return strings.TrimLeft(word, "-")
}

// notSecret are words that follow a colon or an equals sign in programs and
// schemas.
var notSecret = set(`
	true false null none nil undefined string number boolean integer object
	array any unknown void await new function async typeof`)

// valueAfter returns the value that begins at or after i.
func valueAfter(text string, i int, name string, quotedName, tag bool) (span, bool) {
	if tag {
		end := strings.IndexByte(text[i:], '<')
		if end < 0 {
			end = len(text) - i
		}
		return span{start: i, end: i + end}, strings.TrimSpace(text[i:i+end]) != ""
	}
	envLine := i > 0 && text[i-1] == '=' && startsLine(text, i-1-len(name))
	for i < len(text) && (strings.IndexByte(" \t*", text[i]) >= 0 || quotedName && (text[i] == '\n' || text[i] == '\r')) {
		i++
	}
	if i == len(text) {
		return span{}, false
	}
	switch q := text[i]; {
	case q == '"' || q == '\'' || q == '`':
		s := span{start: i + 1, end: closingQuote(text, i+1, q)}
		if q == '"' {
			s.level = 1
		}
		return s, s.end > s.start
	case quotedName && (q == '{' || q == '['):
		return span{start: i, end: closingBracket(text, i)}, true
	case q == '|' || q == '>':
		return blockAfter(text, i+1)
	}
	end := i
	if lineNames[plainName(name)] {
		for end < len(text) && !strings.ContainsRune("\r\n\"'`\\", rune(text[end])) {
			end++
		}
		return span{start: i, end: end}, end > i
	}
	word := func() string {
		start := end
		stops := " \t\r\n\"'`\\,;&()[]{}<>|"
		if envLine {
			stops = " \t\r\n\"'`"
		}
		for end < len(text) && !strings.ContainsRune(stops, rune(text[end])) {
			end++
		}
		return text[start:end]
	}
	first := word()
	switch lower := strings.ToLower(first); {
	case lower == "bearer" || lower == "basic" || lower == "token":
		for end < len(text) && text[end] == ' ' {
			end++
		}
		if word() == "" {
			return span{}, false
		}
	case len(first) < 3 || notSecret[lower]:
		return span{}, false
	}
	return span{start: i, end: end}, true
}

// startsLine reports whether what begins at i is the first of its line, as
// NAME=value is in an environment file.
func startsLine(text string, i int) bool {
	if i < 0 || i > len(text) {
		return false
	}
	line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
	return strings.TrimSpace(line) == "" || strings.TrimSpace(line) == "export"
}

// blockAfter returns the indented lines of a YAML block (password: |) whose
// mark ends at i.
func blockAfter(text string, i int) (span, bool) {
	for i < len(text) && strings.IndexByte("+-0123456789 \r", text[i]) >= 0 {
		i++
	}
	if i == len(text) || text[i] != '\n' {
		return span{}, false
	}
	end := i
	for end < len(text) {
		next := strings.IndexByte(text[end+1:], '\n')
		if next < 0 {
			next = len(text) - end - 1
		}
		if line := text[end+1 : end+1+next]; strings.TrimSpace(line) != "" && line[0] != ' ' && line[0] != '\t' {
			break
		}
		if end += 1 + next; end >= len(text) {
			break
		}
	}
	return span{start: i + 1, end: min(end, len(text))}, end > i+1
}

// closingQuote returns where the string that begins at i ends, or the end of
// the text.
func closingQuote(text string, i int, q byte) int {
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == q || c == '\n' && q == '\'':
			return i
		case c == '\\':
			i++
		}
	}
	return len(text)
}

// closingBracket returns the position after the bracket that closes the one
// at i, or the end of the text.
func closingBracket(text string, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = closingQuote(text, i+1, '"')
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// window returns the beginning of text that is searched for secrets when only
// its first n bytes are shown: secrets that begin there need some of what
// follows to be known.
func window(text string, n int) string {
	const more = 8 << 10
	if len(text) <= n+more {
		return text
	}
	end := n + more
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
