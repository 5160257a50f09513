// Package config reads and checks the configuration file.
//
// The file is JSON with comments and trailing commas, decoded more strictly
// than encoding/json does, because it holds policy: a key that is unknown,
// repeated or spelled in another case is an error and never ignored, and so
// is null. [Load] and [Parse] find all mistakes at once and return them as
// [Problems], each with its line, its column and, where there is one, a hint.
// What they return is complete: defaults are filled in, names and addresses
// are checked, the policy is built.
//
// One file passes through:
//
//	bytes ─ source.parse ─▶ syntax tree ─ decoder.decode ─▶ Config
//	                                                           │
//	      Problems, sorted by place ◀─ checker, profiles.Parse ┘
//
// Strings under servers, http and approvals may name variables ("${TOKEN}") and secrets
// ("${keyring:TOKEN}"). Their values are kept in a [Value], which no print, log or error
// shows. Parse asks for no secret: see [Config.WithSecrets].
//
// Nothing here reads the environment by itself: the caller says how variables
// are looked up. Only the program may import this package.
//
// The reference for people is docs/reference/config.md, the one for editors
// docs/reference/config.schema.json; a test compares both with the types below.
package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"codemode-bridge/bridge/access"
	"codemode-bridge/bridge/policydoc"
	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/strict"
	"codemode-bridge/profiles"

	"github.com/tailscale/hujson"
)

// A Config is one configuration, complete and checked. It is not changed
// after Parse returned it. Printing, encoding or logging it shows no secret.
type Config struct {
	Head
	// Servers are the upstream servers by name, disabled ones included.
	Servers map[string]*Server `json:"servers" alias:"mcpServers" keys:"fold" expand:"yes"`
	// Evaluation is the policy as it was written; Profiles is what it means.
	Evaluation Evaluation `json:"evaluation,omitzero"`
	Sandbox    Sandbox    `json:"sandbox"`
	Surface    Surface    `json:"surface"`
	// NewTools and ChangedTools are for the servers that have none of their own.
	NewTools     Reaction `json:"newTools"`
	ChangedTools Reaction `json:"changedTools"`
	HTTP         HTTP     `json:"http" expand:"yes"`
	// Access says who may see and call what; nil: everybody everything. Rules is
	// what it means.
	Access  []access.Entry `json:"access,omitempty"`
	Windows Windows        `json:"windows"`
	Scripts Scripts        `json:"scripts"`
	Runs    Runs           `json:"runs"`
	Audit   Audit          `json:"audit"`
	// Store is the address of a PostgreSQL database (postgres://...) that keeps what the
	// files of Audit would; without it, they do. StoreKey encrypts the store's key there.
	Store    Value `json:"store,omitzero" expand:"yes" show:"url"`
	StoreKey Value `json:"storeKey,omitzero" expand:"yes" show:"never"`
	// Centre makes serve a centre of laptops; see package centre.
	Centre    Centre    `json:"centre,omitzero" expand:"yes"`
	Approvals Approvals `json:"approvals" expand:"yes"`
	Secrets   Secrets   `json:"secrets"`
	Log       Log       `json:"log"`
	Metrics   Metrics   `json:"metrics,omitzero" expand:"yes"`

	// Profiles is the policy, built from Evaluation.
	Profiles *profiles.Set `json:"-"`
	// File is the absolute name of the file.
	File string `json:"-"`
	// Digest is of the file's bytes.
	Digest Digest `json:"-"`
	// Overlay is the absolute name of the overlay; empty where there is none.
	Overlay string `json:"-"`

	from origin
}

// A Head says what a configuration is, and on what it builds.
type Head struct {
	// Schema is for editors and has no meaning here.
	Schema string `json:"$schema,omitempty"`
	// ID tells the configuration from others that share its store; if it is empty,
	// the paths of its files do. See [Config.Identity].
	ID string `json:"id,omitempty"`
	// Include are documents of policy that lie below the file; see [Document].
	Include []policydoc.Include `json:"include,omitempty"`
	// Closed, in a document, says that a file which includes it may add no servers.
	Closed bool `json:"closed,omitempty"`
}

// An origin is what a configuration was read from.
type origin struct {
	// What the file and the overlay say, which may be secret; see Value for why
	// these are pointers.
	text, overlay *string
	overlayDigest Digest              // of the overlay's bytes
	places        map[string]position // of every value, by its JSON pointer
	// The secrets that it names, and those of them that were asked for; again reads it
	// with others.
	named []placed
	rules *access.Rules // what Access means
	found map[secrets.Reference]secrets.Secret
	again func(map[secrets.Reference]secrets.Secret) (*Config, error)

	ground ground // what no box may have

	included  Included
	conflicts []Conflict
}

// OverlayDigest is of the overlay's bytes; zero where there is none.
func (c *Config) OverlayDigest() Digest { return c.from.overlayDigest }

// Env looks a variable up, as os.LookupEnv does. A nil Env knows none.
type Env = func(name string) (string, bool)

// Texts are a configuration as it was written, before any variable is filled
// in: the file and, where there is one, its overlay.
type Texts struct {
	// Name and OverlayName are the absolute names of the two. Relative paths
	// start from the folder of Name.
	Name, File           string
	OverlayName, Overlay string
	// Included are the documents that the file includes: the text of an [Included].
	Included string
}

// Texts returns what the configuration was read from.
func (c *Config) Texts() Texts {
	t := Texts{Name: c.File, File: *c.from.text, OverlayName: c.Overlay, Included: c.from.included.String()}
	if c.from.overlay != nil {
		t.Overlay = *c.from.overlay
	}
	return t
}

// WithoutOverlay returns the file without its overlay.
func (t Texts) WithoutOverlay() Texts { return Texts{Name: t.Name, File: t.File, Included: t.Included} }

// Parse reads the texts as [Parse] and [ParseOverlaid] do.
func (t Texts) Parse(env Env, policy ...profiles.Options) (*Config, error) {
	return t.parse(env, policy, reading{})
}

// Recall is Parse for texts that were in force once. A variable that is no longer
// set is not a mistake: its value is empty. The result is for comparing, not for use.
func (t Texts) Recall(env Env, policy ...profiles.Options) (*Config, error) {
	return t.parse(env, policy, reading{lenient: true})
}

func (t Texts) parse(env Env, policy []profiles.Options, how reading) (_ *Config, err error) {
	if how.included, err = t.Documents(); err != nil {
		return nil, err
	}
	if t.OverlayName == "" {
		return parse(t.Name, []byte(t.File), env, policy, how)
	}
	return parseOverlaid(t.Name, []byte(t.File), Overlay{t.OverlayName, []byte(t.Overlay)}, env, policy, how)
}

// A Server is one upstream server.
type Server struct {
	// Name is the server's key in the file.
	Name string `json:"-"`
	// Type is inferred from the other keys if the file does not say.
	Type Kind `json:"type"`
	// Builtin is which built-in server it is, for KindBuiltin.
	Builtin string `json:"builtin,omitempty" expand:"no"`
	// Command is a program: a name to be looked up in PATH, or an absolute
	// path. Args are its arguments.
	Command Value   `json:"command,omitzero"`
	Args    []Value `json:"args,omitempty"`
	// Env is set for the child, besides the variables that PassEnv lets
	// through from the bridge's own environment.
	Env     map[string]Value `json:"env,omitempty" show:"never"`
	PassEnv []string         `json:"passEnv,omitempty" expand:"no"`
	// Cwd is the child's folder, absolute; empty means the bridge's own.
	Cwd Value `json:"cwd,omitzero"`
	// Confine, if not nil, is the box that the child runs in.
	Confine *Confine `json:"confine,omitempty"`
	// Rotating names the variables, headers and credentials whose values may
	// change without making it another server: see [Server.Identity].
	Rotating []string `json:"rotating,omitempty" expand:"no"`
	// OpenAPI is the document of a server of KindOpenAPI: an absolute path, or a
	// URL. Credentials are for its security schemes, by their names.
	OpenAPI     Value            `json:"openapi,omitzero" show:"url"`
	Credentials map[string]Value `json:"credentials,omitempty" show:"never"`
	// URL and Headers are for HTTP, SSE and OpenAPI servers. The paths of an
	// OpenAPI document are appended to the URL.
	URL     Value            `json:"url,omitzero" show:"url"`
	Headers map[string]Value `json:"headers,omitempty" show:"never" keys:"fold"`
	// Auth says how to log in to an HTTP or SSE server.
	Auth Auth `json:"auth,omitzero"`
	// Timeout is for one call; Sandbox.CallTimeout if the file does not say.
	Timeout        Duration `json:"timeout" range:"10ms..24h"`
	ConnectTimeout Duration `json:"connectTimeout" range:"10ms..10m"`
	// Concurrency is how many calls may be under way at the same time.
	Concurrency int `json:"concurrency" range:"1..1000"`
	// Rate is how many calls may be made in a period; empty means any number.
	Rate Rate `json:"rate,omitempty"`
	// IdleStop ends the process after so long without a call; zero means never.
	IdleStop Duration `json:"idleStop,omitempty" range:"1s..24h"`
	// PerSession gives each session a process or connection of its own.
	PerSession bool `json:"perSession,omitempty"`
	// MaxReply bounds one reply; Sandbox.Reply if the file does not say.
	MaxReply Size     `json:"maxReply" range:"1KB..48MB"`
	Disabled bool     `json:"disabled,omitempty"`
	Protocol Protocol `json:"protocol"`
	Tools    Tools    `json:"tools,omitzero" expand:"no"`
	// Elicitation says whether the server may ask people something in the middle
	// of a call, and Sampling whether it may use the client's model.
	Elicitation Elicitation `json:"elicitation"`
	Sampling    Sampling    `json:"sampling"`
	// Roots are the folders that the server is told of, as file URIs.
	Roots []string `json:"roots,omitempty" expand:"no"`
	// Labels are what all of its tools and resources are called in rules about flows; nil if
	// nobody has said.
	Labels []string `json:"labels,omitempty" expand:"no"`
	// Known is the file of package known that the person has accepted for this
	// server, as "filesystem" or "filesystem@2026.8.31": see [Server.Recognize].
	Known string `json:"known,omitempty" expand:"no"`
	// TrustAnnotations lets the server's own readOnlyHint count as low risk.
	TrustAnnotations bool `json:"trustAnnotations,omitempty"`
	// Trace says whether the server is told which trace a call belongs to; nil: unless a tool
	// of it is labelled untrusted.
	Trace *bool `json:"trace,omitempty"`
	// NewTools and ChangedTools say what becomes of tools that nobody has
	// accepted as they are; those of the Config where the file says nothing.
	NewTools     Reaction `json:"newTools" expand:"no"`
	ChangedTools Reaction `json:"changedTools" expand:"no"`
	// Quarantine is short for a Reaction of ReactionQuarantine to both.
	Quarantine bool `json:"quarantine,omitempty"`
	// Unready, if not empty, says why it cannot be started or reached as it is: secrets
	// that it names are missing, or unusable. See [Config.WithSecrets].
	Unready Problems `json:"-"`
}

// An Auth says how to log in to a server that requires it.
type Auth struct {
	// Type, if the file does not say, is AuthNone for a server with an
	// Authorization header, and AuthPerson otherwise.
	Type AuthType `json:"type"`
	// Per says whose login the calls use; empty means AuthShared.
	Per AuthPer `json:"per,omitempty"`
	// Env is the variable that a stdio server gets the token of the person in.
	Env string `json:"env,omitempty" expand:"no"`
	// ClientID and ClientSecret belong to a client that was registered with the
	// authorization server by hand.
	ClientID     Value `json:"clientId,omitzero"`
	ClientSecret Value `json:"clientSecret,omitzero" show:"never"`
	// Scopes are the scopes to ask for; nil means those that the server names.
	Scopes []string `json:"scopes,omitempty" expand:"no"`
	// Issuer is the only authorization server that may be used.
	Issuer Value `json:"issuer,omitzero"`
	// RedirectPort is the port that the browser comes back to; 0 means any.
	RedirectPort int `json:"redirectPort,omitempty" range:"1..65535"`
}

// IsZero reports whether the file says nothing of it.
func (a Auth) IsZero() bool {
	return a.Type == "" && a.Per == "" && a.Env == "" && a.ClientID.IsZero() && a.ClientSecret.IsZero() && a.Scopes == nil && a.Issuer.IsZero() && a.RedirectPort == 0
}

// Tools are globs over the names of tools as the server itself calls them.
type Tools struct {
	// Allow, if not nil, hides every tool that none of its globs matches.
	Allow []string `json:"allow,omitempty"`
	// Deny hides every tool that one of its globs matches.
	Deny []string `json:"deny,omitempty"`
	// Labels are what tools are called in rules about flows, by globs.
	Labels map[string][]string `json:"labels,omitempty"`
}

// IsZero reports whether all tools are seen.
func (t Tools) IsZero() bool { return len(t.Allow) == 0 && len(t.Deny) == 0 && len(t.Labels) == 0 }

// A Sandbox holds the limits of runs and the size of the worker pool.
type Sandbox struct {
	CPU         Duration `json:"cpu" range:"10ms..10m"`                 // CPU time of one run, waiting not counted
	Heap        Size     `json:"heap" range:"16MB..8GB"`                // a worker's memory
	Calls       int      `json:"calls" range:"1..1000000"`              // in one run
	Parallel    int      `json:"parallel" range:"1..10000"`             // at the same time in one run
	Source      Size     `json:"source" range:"1KB..16MB"`              // the script's text
	Logs        Size     `json:"logs" range:"1KB..16MB"`                // what it writes to the console
	Result      Size     `json:"result" range:"1KB..16MB"`              // to the model; larger ones are summarised
	Reply       Size     `json:"reply" range:"1KB..48MB"`               // of an upstream server to one call
	CallTimeout Duration `json:"callTimeout" range:"10ms..24h"`         // one call, where the server has no timeout of its own
	Workers     int      `json:"workers" range:"1..1024"`               // live ones; runs beyond queue
	Memory      Size     `json:"memory,omitempty" range:"64MB..1024GB"` // of all workers together; 0: half of the machine's
	Warm        int      `json:"warm" range:"0..64"`                    // kept ready
	Fresh       bool     `json:"fresh,omitempty"`                       // a new worker for every run
}

// HTTP is what `serve` listens on and whom it answers.
type HTTP struct {
	// Listen is host:port. Without tokens it is a loopback address.
	Listen Value `json:"listen"`
	// Tokens are the bearer tokens that are accepted; if there are none, and no Auth,
	// no token is required.
	Tokens []Token `json:"tokens,omitempty"`
	// Auth is an issuer whose tokens are accepted beside them; its zero value is none.
	Auth        OAuth    `json:"auth,omitzero"`
	IdleTimeout Duration `json:"idleTimeout" range:"10s..24h"`
	MaxSessions int      `json:"maxSessions" range:"1..100000"`
	MaxBody     Size     `json:"maxBody" range:"64KB..64MB"`
	// AllowedHosts and AllowedOrigins are accepted besides the listen address.
	AllowedHosts   []Value `json:"allowedHosts,omitempty"`
	AllowedOrigins []Value `json:"allowedOrigins,omitempty"`
	TLS            TLS     `json:"tls,omitzero" expand:"no"` // its zero value is plain HTTP
}

// TLS names the files of a certificate, with its chain, and of its key, as PEM. They are
// absolute.
type TLS struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// A Token is one accepted bearer token, given by its SHA-256 or by a variable.
type Token struct {
	Name   string   `json:"name" expand:"no"`
	Groups []string `json:"groups,omitempty" expand:"no"` // that entries of Access may name
	SHA256 Value    `json:"sha256,omitzero" show:"never"`
	Token  Value    `json:"token,omitzero" show:"never"`
	// Digest is the SHA-256 of the token, whichever way it was given.
	Digest Digest `json:"-"`
}

// Windows says how several `run` of one user are served.
type Windows struct {
	// Share lets one process serve all with the same configuration and environment.
	Share bool `json:"share"`
	// Linger is how long that process stays once the last has gone; zero means not
	// at all.
	Linger Duration `json:"linger,omitempty" range:"1s..24h"`
}

// Secrets says how secrets are asked for.
type Secrets struct {
	// Timeout bounds each question to the keyring, and each command.
	Timeout Duration `json:"timeout" range:"1s..5m"`
}

// Scripts says where saved scripts are.
type Scripts struct {
	// Dir is the folder, absolute; empty means that the environment names none.
	Dir string `json:"dir"`
}

// Runs says what is kept of runs, so that they can outlive their bridge.
type Runs struct {
	// Journal bounds what is kept of one run while it lives.
	Journal Size `json:"journal" range:"64KB..1GB"`
	// Keep is how long that stays once the run has ended; 0 means not at all.
	Keep Period `json:"keep,omitempty" range:"1h..365d"`
}

// Audit says where and how the audit log is kept.
type Audit struct {
	// Enabled, if false, keeps no records: what was asked and decided is then only
	// in the program's log.
	Enabled bool `json:"enabled"`
	// Path is the log's file, absolute; empty means that the environment names
	// no folder for it.
	Path string `json:"path"`
	// Durability says what a record survives.
	Durability Durability `json:"durability"`
	// Checkpoint, if not empty, is a second file, absolute, that checkpoints
	// are added to.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Keep is how old records may get; 0 keeps them for ever.
	Keep Period `json:"keep,omitempty" range:"1h..36500d"`
	// KeepRows is how many records are kept; 0 keeps them all.
	KeepRows int `json:"keepRows,omitempty" range:"100..1000000000"`
	// Push says who gets the records as well.
	Push Push `json:"push,omitzero" expand:"yes"`
	// Store and StoreKey are those of the Config.
	Store    Value `json:"-"`
	StoreKey Value `json:"-"`
}

// A Centre takes the records of enrolled laptops.
type Centre struct {
	// SigningKey is the seed of its Ed25519 key, in hexadecimal: laptops know the centre by it.
	SigningKey Value `json:"signingKey,omitzero" show:"never"`
	// Policy is the signed document of policy for laptops, an absolute file, beside which is
	// FILE.sig; empty if there is none.
	Policy string `json:"policy,omitempty"`
}

// Where is the place of the log for people: its file, or the database without its
// password.
func (a Audit) Where() string {
	if a.Store.IsZero() {
		return a.Path
	}
	at, err := url.Parse(a.Store.Reveal())
	if err != nil {
		return a.Store.String()
	}
	at.RawQuery = ""
	if at.User != nil {
		at.User = url.User(at.User.Username())
	}
	return at.String()
}

// Requests is the file of open questions and grants, beside the log: every
// process with the same log shares them.
func (a Audit) Requests() string {
	if a.Path == "" {
		return ""
	}
	return strings.TrimSuffix(a.Path, filepath.Ext(a.Path)) + "-requests.db"
}

// Log says what is logged, and how.
type Log struct {
	Level  LogLevel  `json:"level"`
	Format LogFormat `json:"format"`
}

// A Digest is a SHA-256.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

func (c *Config) setDefaults() {
	c.Servers = map[string]*Server{}
	c.Sandbox = Sandbox{
		CPU:         duration("10s"),
		Heap:        256 << 20,
		Calls:       1000,
		Parallel:    100,
		Source:      256 << 10,
		Logs:        64 << 10,
		Result:      64 << 10,
		Reply:       16 << 20,
		CallTimeout: duration("60s"),
		Workers:     64,
		Warm:        2,
	}
	c.Surface = SurfaceDefault
	c.NewTools, c.ChangedTools = ReactionAllow, ReactionAsk
	c.HTTP = HTTP{
		Listen:      newValue("127.0.0.1:7420", "127.0.0.1:7420"),
		IdleTimeout: duration("30m"),
		MaxSessions: 1000,
		MaxBody:     4 << 20,
	}
	c.Windows = Windows{Share: true}
	c.Secrets = Secrets{duration("10s")}
	c.Approvals.setDefaults()
	c.Runs = Runs{Journal: 32 << 20}
	c.Audit = Audit{Enabled: true, Durability: DurabilityDefault}
	c.Log = Log{Level: LogInfo, Format: LogAuto}
}

func (s *Server) setDefaults() {
	s.ConnectTimeout = duration("30s")
	s.Concurrency = 100
	s.Protocol = ProtocolAuto
	s.Elicitation = ElicitationAsk
	s.Sampling = SamplingDeny
}

// duration parses a duration that is written in this package.
func duration(text string) (d Duration) {
	if err := d.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return d
}

// ServerNames returns the names of all servers, sorted.
func (c *Config) ServerNames() []string { return slices.Sorted(maps.Keys(c.Servers)) }

// ServerOrder returns the names of all servers in the order in which the file has
// them, those included that were taken out of Servers.
func (c *Config) ServerOrder() []string {
	at := map[string]position{}
	for pointer, place := range c.from.places {
		for _, root := range []string{"/servers/", "/mcpServers/"} {
			if name, ok := strings.CutPrefix(pointer, root); ok && !strings.Contains(name, "/") {
				at[name] = place
			}
		}
	}
	return slices.SortedFunc(maps.Keys(at), func(a, b string) int {
		return cmp.Or(at[a].line-at[b].line, at[a].column-at[b].column, strings.Compare(a, b))
	})
}

// String returns the configuration as JSON that shows no secret.
func (c *Config) String() string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(c); err != nil {
		return fmt.Sprintf("config %s: %v", c.File, err)
	}
	return text.String()
}

// GoString returns what String does.
func (c *Config) GoString() string { return c.String() }

// LogValue is the file's name and a few counts: a whole configuration is too long
// for a log line.
func (c *Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("file", c.File),
		slog.String("digest", c.Digest.String()[:12]),
		slog.Int("servers", len(c.Servers)),
		slog.Int("profiles", len(c.Evaluation.Profiles)),
	)
}

// Load reads the file at path and parses it. The error is [Problems] when the
// content is wrong, and says why the file can't be read otherwise.
func Load(path string, env Env, policy ...profiles.Options) (*Config, error) {
	data, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("reading config: %w", err)
	}
	return Parse(path, data, env, policy...)
}

// read reads a file, up to one byte more than a configuration may have.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, strict.MaxFile+1))
}

// Parse reads a configuration from data. The name is that of the file: error
// messages have it, and relative paths start from its folder. The options
// are passed on to [profiles.Parse]. The error is [Problems] when the content
// is wrong; every mistake of the file is in it, sorted by place.
func Parse(name string, data []byte, env Env, policy ...profiles.Options) (*Config, error) {
	return parse(name, data, env, policy, reading{})
}

func parse(name string, data []byte, env Env, policy []profiles.Options, how reading) (*Config, error) {
	src := strict.NewSource(name, data)
	tree, problem := src.Parse()
	if problem != nil {
		return nil, Problems{problem}
	}
	c, err := build(src, tree, env, policy, how)
	if err == nil {
		c.from.again = func(found map[secrets.Reference]secrets.Secret) (*Config, error) {
			how.found = found
			return parse(name, data, env, policy, how)
		}
	}
	return c, err
}

// build makes a configuration of the syntax tree of a source.
func build(src *strict.Source, tree hujson.Value, env Env, policy []profiles.Options, how reading) (*Config, error) {
	file, err := filepath.Abs(src.File)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of config %s: %w", src.File, err)
	}
	text := string(src.Text)
	tree, conflicts, problem := how.layers(src, tree)
	if problem != nil {
		return nil, Problems{problem}
	}
	c := &Config{File: file, Overlay: how.overlay, Digest: sha256.Sum256(src.Text), from: origin{text: &text, places: map[string]position{}, included: how.included, conflicts: conflicts}}
	c.setDefaults()
	found := newFindings(src)
	d := &decoder{findings: found, env: env, reading: how}
	d.decode(tree, reflect.ValueOf(c).Elem(), spot{name: "the configuration"})
	check := &checker{found, c, env}
	check.identity()
	check.servers()
	check.sandbox()
	check.http()
	checkPush(check, &check.config.Audit.Push)
	check.scripts()
	check.audit()
	check.approvals()
	checkMetrics(check)
	check.evaluation(policy)
	check.access()
	check.boxes()
	c.from.named, c.from.found = d.named, how.found
	if problems := check.unready(found.serverRoot(), d.named, how.found); len(problems) > 0 {
		return nil, problems.Sorted()
	}
	for path := range found.places {
		at := where(found.places, path, -1)
		line, column := src.Place(at)
		c.from.places[path] = position{src.FileOf(at), line, column}
	}
	return c, nil
}

// A position is a place in a file. It holds nothing of what stands there.
type position struct {
	file         string
	line, column int
}

// Place returns where a value stands in the file, or in the overlay, by its
// JSON pointer. For a value that is not there it is the place of the nearest one
// around it. Line and column count from 1.
func (c *Config) Place(pointer string) (file string, line, column int) {
	for known := pointer; ; known = known[:strings.LastIndexByte(known, '/')] {
		if at, ok := c.from.places[known]; ok || known == "" {
			return at.file, at.line, at.column
		}
	}
}

// Has reports whether the file or the overlay has a value with a JSON pointer.
func (c *Config) Has(pointer string) bool {
	_, ok := c.from.places[pointer]
	return ok
}
