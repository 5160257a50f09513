//go:build !race

package main_test

// docs/tour.md has a table of the packages. It is made from what stands here
// and from the imports, by
//
//	go test ./cmd/codemode-bridge -run TestTour -update

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// about says in one sentence what each package is for.
var about = map[string]string{
	"analysis":                         "what is known of a script before it runs, without an engine",
	"analysis/preview":                 "reads the calls of a script from goja's syntax tree",
	"bridge":                           "serves the eval and discovery tools over MCP; owns the live runs",
	"bridge/access":                    "says who may see and call what",
	"bridge/admin":                     "the approval page, its API, event stream and webhooks",
	"bridge/alive":                     "says which of the processes that share a folder are still running",
	"bridge/approval":                  "puts requests to people and settles each once",
	"bridge/approvalview":              "shows the requests that wait for a person in a terminal, and takes answers there",
	"bridge/atomicfile":                "replaces a file in one step",
	"bridge/audit":                     "reads the audit log for people: timelines, statistics, suggestions, exports",
	"bridge/bench":                     "measures the bridge from outside, against direct calls",
	"bridge/bench/context":             "counts what a model reads: tools listed, found by search, and through the bridge",
	"bridge/bench/flows":               "measures what rules about flows are worth: attacks and their benign twins",
	"bridge/bench/asking":              "counts how often people are asked in ordinary work, and which harmful calls get through",
	"bridge/builtin":                   "the servers that need no process: `time` and `utils`",
	"bridge/canon":                     "one frozen form of a call's arguments: canonical JSON, its digest, its display",
	"bridge/catalog":                   "knows the tools: names in scripts, declarations, search; an immutable snapshot",
	"bridge/clients":                   "reads and edits the configuration files of MCP clients, and undoes that",
	"bridge/commons":                   "keeps what many runs begin with, and writes it once for all of their journals",
	"bridge/config":                    "reads and checks the configuration file",
	"bridge/confirmed":                 "keeps what was last confirmed of each configuration file",
	"bridge/documents":                 "says how small documents are kept that several bridges share",
	"bridge/dialogs":                   "knows which dialogs are open at clients that have a session",
	"bridge/doctor":                    "checks everything that a bridge depends on, and says what is wrong and what to do",
	"bridge/entries":                   "writes and reads the entries of a run's journal that are about calls",
	"bridge/elicit":                    "brings what upstream servers say and ask in the middle of a call to the client of the run",
	"bridge/evalview":                  "reads the answer of an eval tool, for the command line",
	"bridge/filelock":                  "locks files against other processes",
	"bridge/footprint":                 "gives back the memory that only the start of a program needed",
	"bridge/forms":                     "asks a person with a form in their MCP client, and reads the answer",
	"bridge/gate":                      "the one door between a script and a tool",
	"bridge/handles":                   "keeps what is too much for a model: media and large results, of which scripts read parts",
	"bridge/identity":                  "says whom an OAuth token names: an issuer's keys, introspection, what clients are told",
	"bridge/instance":                  "a shared bridge, the rendezvous where its clients meet it, and the relay between the two",
	"bridge/jsonc":                     "edits JSON with comments, which stay",
	"bridge/knownview":                 "shows what is known of servers to people, and where a server differs from it",
	"bridge/learned":                   "runs a server without a box, notes what it uses, and proposes the smallest box for that",
	"bridge/ledger":                    "what is written down of runs and calls",
	"bridge/lifecycle":                 "says in which phase a run is, and what may happen to it there",
	"bridge/lines":                     "fits text and tables into the width of a terminal",
	"bridge/lockfile":                  "reads and writes codemode.lock: the definitions of tools that a team has accepted",
	"bridge/logfile":                   "writes the log of a process to a file, and removes old ones",
	"bridge/login":                     "logs in to upstream servers: an OAuth client, and what it keeps",
	"bridge/logintest":                 "a server that wants a login, with its authorization server, for tests",
	"bridge/mcphttp":                   "serves a bridge over HTTP: access, both protocols, the number of sessions",
	"bridge/mcphttptest":               "an MCP endpoint and plain HTTP requests to it, for tests",
	"bridge/meant":                     "finds the name that somebody meant by one that is not there",
	"bridge/metrics":                   "counts what a bridge does, for Prometheus, and serves the numbers",
	"bridge/memstore":                  "the simplest store: audit log, journals and requests in memory",
	"bridge/misfit":                    "reads schemas, names and texts of arguments: what they declare, what a text may be, and in words where a call does not fit",
	"bridge/notify":                    "notifies the person at this machine that a request waits",
	"bridge/observed":                  "learns from answers the types that tools do not declare; keeps no values",
	"bridge/otlptest":                  "a collector of OpenTelemetry, for tests",
	"bridge/openapi":                   "makes an MCP server from an OpenAPI document: its operations are tools",
	"bridge/pending":                   "decides whether a changed configuration may be taken over or waits for an approver",
	"bridge/pgstore":                   "keeps the audit log, the journals of runs and the requests in PostgreSQL",
	"bridge/pgtest":                    "a PostgreSQL server, for tests",
	"bridge/pins":                      "keeps each server's tools as somebody accepted them, and says which have changed",
	"bridge/principal":                 "says who a request comes from, once that is authenticated",
	"bridge/profileview":               "shows profiles and decisions to people as text",
	"bridge/push":                      "sends the rows of the audit log to others, each at least once, in order",
	"bridge/provenance":                "names, for people, what a run has read and sends again",
	"bridge/recorder":                  "carries every record to the audit log: hides secrets, keeps the order, logs decisions",
	"bridge/relay":                     "connects a server in a box with the hosts that its box names, and no others",
	"bridge/replay":                    "brings a script that is run again to where it was, by giving it the recorded answers in order",
	"bridge/replica":                   "knows the bridges that share a store: their names, and which of them are alive by its clock",
	"bridge/roots":                     "finds the folders that a run works on: the configuration's, the client's, or where it started",
	"bridge/rpc":                       "reads JSON-RPC messages before the SDK does, and does what the protocol demands and the SDK leaves out",
	"bridge/scripts":                   "reads and watches the folder of saved scripts",
	"bridge/secrets":                   "fills in the variables of a configuration, and finds the secrets that it names: keyring, files, commands",
	"bridge/secretstest":               "the keyring of a Linux desktop with its bus, for tests",
	"bridge/seal":                      "seals the state that stateless clients carry from a question to its answer",
	"bridge/setup":                     "brings the servers of MCP clients into a configuration, and the bridge into the clients' files",
	"bridge/sqlstore":                  "keeps the audit log, the journals of runs and the requests in SQLite",
	"bridge/sso":                       "identifies people through an OpenID Connect provider",
	"bridge/ssotest":                   "an OpenID Connect provider, for tests",
	"bridge/strict":                    "reads the text of a configuration: JSON with comments, its bounds, and its mistakes with their places",
	"cmd/codemode-bridge/policycmd":    "loads a configuration with the documents that it includes, and the commands that sign them",
	"bridge/policydoc":                 "signs and verifies documents of policy that a configuration includes",
	"bridge/include":                   "fetches and keeps the documents of policy that a configuration includes",
	"bridge/stopwatch":                 "has timeouts of contexts that can be paused, as while a person is asked",
	"bridge/storetest":                 "the one suite that every store passes",
	"bridge/surface":                   "describes the bridge's own tools to models: names, descriptions, schemas",
	"bridge/takeover":                  "takes over the runs and questions of a bridge that ended without a word",
	"bridge/tsdecl":                    "writes a JSON Schema as a TypeScript type",
	"bridge/trace":                     "says what the spans of a run are, and which trace they belong to",
	"bridge/turns":                     "lets sessions take turns at work that needs only the processor",
	"bridge/userfiles":                 "says where the files of one user are, by the custom of the system",
	"bridge/upstream":                  "keeps one live MCP session per upstream server",
	"bridge/upstream/npm":              "says where npm gets packages from, and connects to it",
	"bridge/upstream/tap":              "reads the wire below the SDK: messages as bytes, bounded, each with the call it belongs to",
	"bridge/view":                      "makes the view on which calls are decided, from policy, catalogue and pins, and follows changes",
	"bridge/watch":                     "notices that files in folders may have changed",
	"bridge/watchfile":                 "tells of each new content of one file",
	"bridge/webguard":                  "refuses requests from pages of other sites, and those whose body could end at two places",
	"bridge/wording":                   "puts requests into words for people",
	"bridge/workspace":                 "says where a path of this machine leads, and whether that is in the workspace",
	"cmd/codemode-bridge":              "commands, flags, wiring, signals",
	"cmd/codemode-bridge/accesscmd":    "the command that says what somebody may see and call, and why",
	"bridge/backup":                    "writes what a bridge keeps into one file, and reads it back",
	"bridge/certificate":               "serves TLS with a certificate in files, and takes a renewed one while connections are open",
	"docs/deploy":                      "examples of how the bridge is run, which its tests read strictly",
	"bridge/centre":                    "takes the audit logs of enrolled laptops, keeps them, and verifies them",
	"bridge/enrolment":                 "enrols a laptop at a centre, and sends the rows of its audit log there",
	"bridge/questions":                 "carries questions of laptops up to approvers at their centre, and verdicts down",
	"bridge/enrolment/wire":            "what laptops and their centre say to each other, and how it is signed",
	"cmd/codemode-bridge/enrollcmd":    "the command that enrols this machine at a centre",
	"cmd/codemode-bridge/laptopscmd":   "the commands of a centre, about its laptops",
	"cmd/codemode-bridge/pagecmd":      "the command that opens the approval page in a browser",
	"cmd/codemode-bridge/approverscmd": "the commands about who may answer questions",
	"cmd/codemode-bridge/auditcmd":     "the commands that read, check and keep the audit log, and tail",
	"cmd/codemode-bridge/checkcmd":     "the commands that check the configuration, and show its saved scripts",
	"cmd/codemode-bridge/logincmd":     "the commands that log in to servers, and each person's accounts",
	"cmd/codemode-bridge/boxcmd":       "the command that finds out which box a server needs",
	"cmd/codemode-bridge/cautions":     "what is no mistake in a configuration, and probably not meant",
	"cmd/codemode-bridge/cli":          "what all commands share: streams, printing, checks of arguments, exit codes",
	"cmd/codemode-bridge/secretscmd":   "the commands about the secrets that the system's keyring keeps",
	"cmd/codemode-bridge/evalcmd":      "what the commands that run a script read and print",
	"cmd/codemode-bridge/logging":      "opens the program's own log: standard error, and a file",
	"cmd/codemode-bridge/pushcmd":      "has a bridge push its audit log as the configuration says",
	"cmd/codemode-bridge/running":      "gets the state and tools of servers from a bridge that runs, for commands",
	"cmd/codemode-bridge/setupcmd":     "the commands that set the bridge up: init, install, uninstall",
	"cmd/codemode-bridge/statuscmd":    "the command that shows the running bridges, and how each serve is known to it",
	"cmd/codemode-bridge/servecmd":     "serves a bridge over HTTP, and drains it when it is to end",
	"cmd/codemode-bridge/storecmd":     "opens the store that a configuration names, and the command that copies one",
	"cmd/codemode-bridge/telemetry":    "exports spans by OTLP, with the OpenTelemetry SDK, which nothing else imports",
	"cmd/codemode-bridge/toolscmd":     "the commands about the tools that scripts can call",
	"cmd/codemode-bridge/explaincmd":   "`config explain`: what a key means, and where the documents are",
	"cmd/codemode-bridge/versioncmd":   "the command that says which version this is, and of what worker",
	"cmd/codemode-bridge/upstreams":    "converts the servers of a configuration for package upstream, with their boxes",
	"cmd/codemode-worker":              "the worker, and the launcher of boxes, as a program of its own",
	"docs/examples/shop":               "the server that the examples call",
	"docs/reference":                   "the reference of the configuration, for the program to quote, and the anchors of its pages",
	"profiles":                         "decides what one call may do, from plain facts, with no I/O, clock or randomness",
	"profiles/flow":                    "finds what was read again in what is sent, through case, white space and encodings",
	"profiles/known":                   "what is known of the most used servers: how each is started, and what each tool does",
	"profiles/templates":               "the profiles that are part of the program, which a configuration extends",
	"sandbox":                          "runs scripts in worker processes",
	"sandbox/confine":                  "keeps a program in a box: where it may read and write, which hosts it reaches",
	"sandbox/intl":                     "numbers, dates and words as Node writes them, in en-US",
	"sandbox/racing":                   "what tests do otherwise under the race detector",
	"sandbox/realm":                    "the engine: one goja runtime for one script, with the `codemode` object",
	"sandbox/source":                   "turns what a model wrote into a program, and maps positions back to the model's own lines",
	"sandbox/values":                   "carries values between a goja runtime and the outside: JSON, and the text that console.log shows",
	"sandbox/web":                      "the globals that scripts know from Node and browsers",
	"sandbox/wire":                     "the frames a worker and its parent exchange",
	"sandbox/worker":                   "the child: the protocol, one event loop, the script's own limits; it knows no JavaScript",
}

// The table stands between these two lines.
const (
	tourBegin = "<!-- packages: made by go test ./cmd/codemode-bridge -run TestTour -update -->\n"
	tourEnd   = "<!-- end of packages -->\n"
)

// packageTable writes the table, from the floor up.
func packageTable(imports map[string][]string, about map[string]string) []byte {
	of := levels(imports)
	paths := slices.SortedFunc(maps.Keys(imports), func(a, b string) int {
		if of[a] != of[b] {
			return of[a] - of[b]
		}
		return strings.Compare(a, b)
	})
	var b bytes.Buffer
	fmt.Fprint(&b, "| level | package | in one sentence |\n| --- | --- | --- |\n")
	for _, path := range paths {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", of[path], path, about[path])
	}
	return b.Bytes()
}

// withTable puts a table between the two lines of a document.
func withTable(doc, table []byte) ([]byte, error) {
	begin, rest, ok := bytes.Cut(doc, []byte(tourBegin))
	if !ok {
		return nil, fmt.Errorf("there is no line %q", tourBegin)
	}
	_, end, ok := bytes.Cut(rest, []byte(tourEnd))
	if !ok {
		return nil, fmt.Errorf("there is no line %q", tourEnd)
	}
	return slices.Concat(begin, []byte(tourBegin), table, []byte(tourEnd), end), nil
}

func TestTour(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	imports := make(map[string][]string)
	for _, p := range listPackages(t, root) {
		imports[p.Path] = nil
		for _, imported := range p.Imports {
			if path, ours := local(imported); ours {
				imports[p.Path] = append(imports[p.Path], path)
			}
		}
		if about[p.Path] == "" {
			t.Errorf("about does not say what %s is for", p.Path)
		}
	}
	for path := range about {
		if _, ok := imports[path]; !ok {
			t.Errorf("about speaks of %s, which does not exist", path)
		}
	}
	name := filepath.Join(root, "docs", "tour.md")
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want, err := withTable(doc, packageTable(imports, about))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(doc, want) {
		return
	}
	if !*update {
		t.Fatal("the table of packages in docs/tour.md is not what the code is; go test ./cmd/codemode-bridge -run TestTour -update writes it")
	}
	if err := os.WriteFile(name, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPackageTable(t *testing.T) {
	t.Parallel()
	got := packageTable(map[string][]string{"cmd/c": {"a", "b"}, "b": {"a"}, "a": nil}, map[string]string{"a": "is the floor", "b": "stands on it", "cmd/c": "is the roof"})
	want := "| level | package | in one sentence |\n| --- | --- | --- |\n| 0 | `a` | is the floor |\n| 1 | `b` | stands on it |\n| 2 | `cmd/c` | is the roof |\n"
	if string(got) != want {
		t.Errorf("wrote\n%s\nwant\n%s", got, want)
	}
	doc, err := withTable([]byte("x\n"+tourBegin+"old\n"+tourEnd+"y\n"), []byte("new\n"))
	if err != nil || string(doc) != "x\n"+tourBegin+"new\n"+tourEnd+"y\n" {
		t.Errorf("wrote %q, %v", doc, err)
	}
	for _, doc := range []string{"", tourBegin, tourEnd + tourBegin} {
		if _, err := withTable([]byte(doc), nil); err == nil {
			t.Errorf("found the place of the table in %q", doc)
		}
	}
}
