package config

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

// hidden stands wherever a value must not be shown.
const hidden = "[hidden]"

// A Value is a text of the configuration that may be a secret: it was written
// in a header or a server's environment, or it may have come from a variable.
// However it is printed, encoded or logged, a Value shows what the file says
// ("${TOKEN}") or "[hidden]"; only Reveal gives the text itself. The zero
// Value is the empty text.
type Value struct {
	// Pointers to strings, because fmt prints the unexported fields of other
	// people's structs without asking for String: of these it prints the
	// address, whatever the verb.
	text, shown *string
	// origin, if not nil, is the text with references in the place of its secrets.
	origin  *string
	missing bool // the secrets have not been asked for, or are not to be had
}

func newValue(text, shown string) Value { return Value{text: &text, shown: &shown} }

// with returns v with another text and another form of showing it.
func (v Value) with(text, shown string) Value {
	v.text, v.shown = &text, &shown
	return v
}

// Origin returns the text with references in the place of the secrets that it names
// ("Bearer ${keyring:GITHUB}"). By it two configurations are compared before anybody
// has asked for the secrets. Variables are filled in, so it may be secret itself.
func (v Value) Origin() string {
	if v.origin != nil {
		return *v.origin
	}
	return v.Reveal()
}

// Secret reports whether the text names a secret.
func (v Value) Secret() bool { return v.origin != nil }

// Origins returns the origins of a list of values.
func Origins(values []Value) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.Origin()
	}
	return texts
}

// OriginMap returns the origins of values with names.
func OriginMap(values map[string]Value) map[string]string {
	texts := make(map[string]string, len(values))
	for k, v := range values {
		texts[k] = v.Origin()
	}
	return texts
}

// Reveal returns the text itself, for the one place that needs it.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// String returns what may be shown.
func (v Value) String() string {
	if v.shown == nil {
		return ""
	}
	return *v.shown
}

// IsZero reports whether the file has no such text.
func (v Value) IsZero() bool { return v.text == nil }

func (v Value) GoString() string             { return strconv.Quote(v.String()) }
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
func (v Value) LogValue() slog.Value         { return slog.StringValue(v.String()) }

// Reveal returns the texts of a list of values.
func Reveal(values []Value) []string {
	if values == nil {
		return nil
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.Reveal()
	}
	return texts
}

// RevealMap returns the texts of values with names.
func RevealMap(values map[string]Value) map[string]string {
	if values == nil {
		return nil
	}
	texts := make(map[string]string, len(values))
	for k, v := range values {
		texts[k] = v.Reveal()
	}
	return texts
}

var (
	urlPassword = regexp.MustCompile(`(://)[^/?#\s@]*@`)
	urlQuery    = regexp.MustCompile(`([?&][^=&#]*=)([^&#]*)`)
	reference   = regexp.MustCompile(`^\$\{[^{}]*\}$`)
	secretFlag  = regexp.MustCompile(`(?i)^--?[a-z0-9_-]*(token|secret|passw|key|auth|credential)[a-z0-9_-]*`)
)

// showSecret returns what may be shown of a header, or of a variable of a server's
// environment: a reference if it is nothing else, and otherwise nothing.
func showSecret(written string) string {
	if reference.MatchString(written) && !strings.Contains(written, ":-") {
		return canon.Redact(written) // a command may hold a secret
	}
	return hidden
}

// showURL hides the secrets that people write into addresses.
func showURL(written string) string {
	written = urlPassword.ReplaceAllString(written, "${1}"+hidden+"@")
	return urlQuery.ReplaceAllStringFunc(written, func(pair string) string {
		key, val, _ := strings.Cut(pair, "=")
		return key + "=" + showSecret(val)
	})
}

// hideFlags hides the arguments that follow a flag such as --api-key.
func hideFlags(args []Value) {
	for i, arg := range args {
		flag, val, joined := strings.Cut(arg.String(), "=")
		switch {
		case !secretFlag.MatchString(flag):
		case joined:
			args[i] = arg.with(arg.Reveal(), flag+"="+showSecret(val))
		case i+1 < len(args) && !strings.HasPrefix(args[i+1].String(), "-"):
			args[i+1] = args[i+1].with(args[i+1].Reveal(), showSecret(args[i+1].String()))
		}
	}
}

// Durations and sizes are written the same way in the whole file: "60s",
// "1h30m"; "64KB", "16MB", where 1 KB is 1,024 bytes.
type (
	Duration = profiles.Duration
	Size     = profiles.Size
)

// A Kind says how a server is reached.
type Kind string

// The kinds of servers.
const (
	KindStdio   Kind = "stdio"   // a child process, over its standard input and output
	KindHTTP    Kind = "http"    // streamable HTTP
	KindSSE     Kind = "sse"     // the older HTTP with server-sent events
	KindBuiltin Kind = "builtin" // part of the bridge, in its own process
	KindOpenAPI Kind = "openapi" // no MCP server, but an API that a document describes
)

// UnmarshalText also reads the spellings of other clients.
func (k *Kind) UnmarshalText(text []byte) error {
	if s := string(text); s == "streamable-http" || s == "streamableHttp" {
		*k = KindHTTP
		return nil
	}
	return choose(k, text, KindStdio, KindHTTP, KindSSE, KindBuiltin, KindOpenAPI)
}

// An AuthType says who logs in to a server.
type AuthType string

// The types of login.
const (
	AuthPerson      AuthType = "person"            // a person in the browser, once
	AuthCredentials AuthType = "clientCredentials" // the bridge, as a client with a secret
	AuthNone        AuthType = "none"              // nobody
)

// UnmarshalText reads the word.
func (a *AuthType) UnmarshalText(text []byte) error {
	return choose(a, text, AuthPerson, AuthCredentials, AuthNone)
}

// An AuthPer says whose login a server's calls use.
type AuthPer string

// Whose it is.
const (
	AuthShared    AuthPer = "shared"    // one for all
	AuthPrincipal AuthPer = "principal" // each person's own
)

// UnmarshalText reads the word.
func (a *AuthPer) UnmarshalText(text []byte) error { return choose(a, text, AuthShared, AuthPrincipal) }

// A Protocol says which era of MCP is spoken with a server.
type Protocol string

// The eras.
const (
	ProtocolAuto   Protocol = "auto"   // find out, and remember
	ProtocolLegacy Protocol = "legacy" // up to 2025-11-25
	ProtocolModern Protocol = "modern" // from 2026-07-28 on
)

func (p *Protocol) UnmarshalText(text []byte) error {
	return choose(p, text, ProtocolAuto, ProtocolLegacy, ProtocolModern)
}

// An Elicitation says what becomes of the questions that a server asks people.
type Elicitation string

// What becomes of them.
const (
	ElicitationAsk  Elicitation = "ask"  // they are put to the person at the client, labelled as the server's
	ElicitationDeny Elicitation = "deny" // they are refused
)

func (e *Elicitation) UnmarshalText(text []byte) error {
	return choose(e, text, ElicitationAsk, ElicitationDeny)
}

// A Sampling says whether a server may use the client's model.
type Sampling string

// The permissions.
const (
	SamplingDeny  Sampling = "deny"
	SamplingAsk   Sampling = "ask" // a person each time
	SamplingAllow Sampling = "allow"
)

func (s *Sampling) UnmarshalText(text []byte) error {
	return choose(s, text, SamplingDeny, SamplingAsk, SamplingAllow)
}

// A Rate is so many calls in a second, a minute or an hour: "10/s", "60/m",
// "1000/h". The empty Rate is no limit.
type Rate string

var (
	rateForm = regexp.MustCompile(`^([1-9][0-9]{0,5})/([smh])$`)
	rateUnit = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}
)

// UnmarshalText reads the written form.
func (r *Rate) UnmarshalText(text []byte) error {
	if !rateForm.Match(text) {
		return wrong(`write "10/s", "60/m" or "1000/h"`, "must be a number of calls and a time")
	}
	*r = Rate(text)
	return nil
}

// Split returns the number of calls and the time that they may be made in, both
// 0 for no limit.
func (r Rate) Split() (calls int, per time.Duration) {
	parts := rateForm.FindStringSubmatch(string(r))
	if parts == nil {
		return 0, 0
	}
	calls, _ = strconv.Atoi(parts[1])
	return calls, rateUnit[parts[2]]
}

// A Surface says how many tools a client is shown.
type Surface string

// The surfaces.
const (
	SurfaceDefault Surface = "default" // the eval tools, search_tools, get_tools, eval_resume
	SurfaceFull    Surface = "full"    // the rest as well
)

func (s *Surface) UnmarshalText(text []byte) error {
	return choose(s, text, SurfaceDefault, SurfaceFull)
}

// A Reaction is what becomes of a tool that nobody has accepted as it is.
type Reaction string

// The reactions, each stricter than the one before.
const (
	ReactionAllow      Reaction = "allow"      // it is taken as it is
	ReactionAsk        Reaction = "ask"        // its calls ask a person
	ReactionQuarantine Reaction = "quarantine" // scripts do not see it
)

func (r *Reaction) UnmarshalText(text []byte) error {
	return choose(r, text, ReactionAllow, ReactionAsk, ReactionQuarantine)
}

// Looser reports whether r holds less back than o.
func (r Reaction) Looser(o Reaction) bool {
	order := []Reaction{ReactionAllow, ReactionAsk, ReactionQuarantine}
	return slices.Index(order, r) < slices.Index(order, o)
}

// A Period is a long time, written in days or like a [Duration]: "90d", "12h".
type Period time.Duration

const day = 24 * time.Hour

// UnmarshalText reads the written form.
func (p *Period) UnmarshalText(text []byte) error {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return wrong("", "must be a time such as \"90d\" or \"12h\"")
		}
		*p = Period(time.Duration(n) * day)
		return nil
	}
	var d Duration
	if d.UnmarshalText(text) != nil {
		return wrong("", "must be a time such as \"90d\" or \"12h\"")
	}
	*p = Period(d)
	return nil
}

// MarshalText writes the form that UnmarshalText reads.
func (p Period) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String is the written form, in whole days where that is exact.
func (p Period) String() string {
	if d := time.Duration(p); d%day != 0 {
		return d.String()
	}
	return strconv.FormatInt(int64(time.Duration(p)/day), 10) + "d"
}

// A Durability says what a record of the audit log survives.
type Durability string

// The durabilities.
const (
	// DurabilityDefault: a power cut, for calls that were asked, denied or
	// are not read-only; the end of the process, for the rest.
	DurabilityDefault Durability = "default"
	DurabilityAll     Durability = "all" // a power cut, for every record
)

func (d *Durability) UnmarshalText(text []byte) error {
	return choose(d, text, DurabilityDefault, DurabilityAll)
}

// A LogLevel is the least level that is logged.
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

func (l *LogLevel) UnmarshalText(text []byte) error {
	return choose(l, text, LogDebug, LogInfo, LogWarn, LogError)
}

// Slog returns the level as one of package slog's.
func (l LogLevel) Slog() slog.Level {
	switch l {
	case LogDebug:
		return slog.LevelDebug
	case LogWarn:
		return slog.LevelWarn
	case LogError:
		return slog.LevelError
	}
	return slog.LevelInfo
}

// A LogFormat says how log lines are written.
type LogFormat string

// The formats.
const (
	LogAuto LogFormat = "auto" // text on a terminal, JSON elsewhere
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

func (f *LogFormat) UnmarshalText(text []byte) error {
	return choose(f, text, LogAuto, LogText, LogJSON)
}

// choose sets dst to the one of the allowed words that text is.
func choose[T ~string](dst *T, text []byte, allowed ...T) error {
	words := make([]string, len(allowed))
	for i, a := range allowed {
		if string(text) == string(a) {
			*dst = a
			return nil
		}
		words[i] = string(a)
	}
	return wrong(didYouMean(string(text), words), "must be one of %s", quoteList(words))
}

func quoteList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, ", ")
}
