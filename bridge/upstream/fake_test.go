//go:build unix

package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codemode-bridge/sandbox/confine"
	"codemode-bridge/sandbox/racing"
)

// The fake upstream: an MCP server written by hand, so that it can break every
// rule. A script says what it does wrong. It is a child process (this test
// binary, started again) or an HTTP server.

// A script is what a fake does at each stage: the first time the first word,
// then the second; the last word stands for all further times. A stage that is
// not there behaves.
type script struct {
	// Stages: discover, initialize, list, call, and the stream on which a
	// server of 2026-07-28 announces changes. Words: see answer.
	Discover, Initialize, List, Call, Listen []string

	Modern bool   // speaks 2026-07-28; otherwise it does not know server/discover
	Start  string // what the process does before it reads: see fakeMain
	Split  bool   // every byte is a write of its own
	JSON   bool   // HTTP: answers with JSON and not with event streams
	Tools  int    // how many, beside the fixed ones; listed in pages of 1000
	Status int    // HTTP: every answer has this status
	Seed   uint64 // chooses the faults of the word "any"
	Log    string // file that requests and effects are written to; with it, times are counted over all processes
}

// exact is a result that no decoder into Go values brings through unchanged.
const exact = `{"content":[{"type":"text","text":"caf\u00e9 \ud800"}],"structuredContent":{"n":9007199254740993,"e":1e400,"z":1.0,"a":-0,"a":2}}`

// fakeLogin is the link that the start "login" writes.
const fakeLogin = "https://auth.example/authorize?client_id=c&response_type=code&state=s"

const fakeVariable = "UPSTREAM_FAKE"

// fakeRun is a variable that tells whose the processes of a fake are, theirs
// included.
const fakeRun = "UPSTREAM_FAKE_OF"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "box" {
		os.Exit(confine.Main())
	}
	if text := os.Getenv(fakeVariable); text != "" {
		var s script
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			panic(err)
		}
		fakeMain(s)
		return
	}
	os.Exit(m.Run())
}

// patient is what fakes have for limits: a busy machine keeps to them.
var patient = Limits{ConnectTimeout: 3 * time.Minute, Timeout: 3 * time.Minute}

// stdio is the spec of a fake that is a child process.
func (s script) stdio(t testing.TB) Spec {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Name: "fake", Command: racing.Program(), Env: map[string]string{fakeVariable: string(text), fakeRun: strconv.Itoa(os.Getpid())}, Limits: patient}
}

// http is the spec of a fake that is an HTTP server, which ends with the test.
func (s script) http(t *testing.T) Spec {
	t.Helper()
	f := newFake(s)
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		close(f.over)
		server.CloseClientConnections()
		server.Close()
	})
	return Spec{Name: "fake", URL: server.URL, Limits: patient}
}

func fakeMain(s script) {
	word, arg, _ := strings.Cut(s.Start, ":")
	switch word {
	case "exit":
		fmt.Fprintln(os.Stderr, "fatal: no API key in "+os.Getenv("SECRET"))
		os.Exit(3)
	case "says": // and goes on when its stdin ends
		fmt.Fprintln(os.Stderr, "loading with "+os.Getenv("SECRET"))
		defer time.Sleep(time.Hour) // not select {}: the runtime ends a program in which nothing else waits
	case "banner":
		fmt.Print("\xEF\xBB\xBFWelcome to the fake server!\r\n\r\n{\"level\":\"info\"}\n[1,2]\n{\"jsonrpc\":\"2.0\"\n")
	case "flood":
		n, _ := strconv.Atoi(arg)
		line := strings.Repeat("x", 1000)
		for i := range n {
			fmt.Fprintln(os.Stderr, i, line)
		}
	case "endless":
		for block := bytes.Repeat([]byte("x"), 1<<16); ; {
			if _, err := os.Stdout.Write(block); err != nil {
				os.Exit(0)
			}
		}
	case "yes":
		for {
			if _, err := fmt.Println("y"); err != nil {
				os.Exit(0)
			}
			time.Sleep(time.Millisecond)
		}
	case "stubborn", "family":
		signal.Ignore(syscall.SIGTERM)
		if word == "family" {
			family(arg)
		}
		defer time.Sleep(time.Hour) // stdin has ended; it goes on
	case "orphans":
		family(arg)
	case "stderr": // without end
		go func() {
			for line := strings.Repeat("x", 1000); ; time.Sleep(time.Millisecond) {
				fmt.Fprint(os.Stderr, strings.Repeat(line+"\n", 20))
			}
		}()
	case "login": // it waits until somebody has logged in, or has not
		fmt.Fprintln(os.Stderr, "Please authorize this client by visiting:\n"+fakeLogin+"\nWaiting for authorization...")
		for {
			text, _ := os.ReadFile(arg)
			if string(text) == "no" {
				os.Exit(1)
			}
			if string(text) == "yes" {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	case "write": // or end
		if err := os.WriteFile(arg, nil, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "token": // notes whose it has, or ends
		if err := noteToken(arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "dial": // or end
		if _, err := net.Dial("tcp", arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "slowly": // ends when it is asked to, after it wrote down that it was
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		go func() {
			<-asked
			_ = os.WriteFile(arg, nil, 0o600)
			os.Exit(0)
		}()
		defer time.Sleep(time.Hour) // the end of stdin is not enough
	case "env":
		_ = os.WriteFile(arg, []byte(strings.Join(os.Environ(), "\n")), 0o600)
	}
	out := io.Writer(os.Stdout)
	if s.Split {
		out = byByte{out}
	}
	f := newFake(s)
	lock := &sync.Mutex{}
	if word == "storm" { // of announcements, without end
		go func() {
			for w := (&stdioWire{out: out, lock: lock}); ; time.Sleep(time.Millisecond) {
				w.lines(100, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
		}()
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		go f.handle(line, &stdioWire{out: out, lock: lock})
	}
}

// family starts processes that outlive their parent: a child in the group and a
// daemon in a session of its own. Their numbers go to a file.
func family(file string) {
	for _, args := range [][]string{{"sleep", "300"}, {"setsid", "sleep", "300"}} {
		cmd := exec.Command(args[0], args[1:]...)
		if cmd.Start() == nil {
			f, _ := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			fmt.Fprintln(f, cmd.Process.Pid)
			f.Close()
		}
	}
}

type byByte struct{ w io.Writer }

func (b byByte) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := b.w.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// A wire is where a fake's messages go. raw writes bytes as they are.
type wire interface {
	line(string)
	lines(n int, s string) // the same one n times, in one write
	slowly(s string, each time.Duration)
	raw([]byte) error
	crash()
	hang()
	lockstep(head string, n int, filler, tail string)
}

type stdioWire struct {
	out  io.Writer
	lock *sync.Mutex
}

func (w *stdioWire) line(s string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	_, _ = io.WriteString(w.out, s+"\n")
}
func (w *stdioWire) lines(n int, s string) { w.line(strings.Repeat(s+"\n", n)) }
func (w *stdioWire) raw(p []byte) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	_, err := w.out.Write(p)
	return err
}
func (w *stdioWire) slowly(s string, each time.Duration) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, b := range []byte(s + "\n") {
		_, _ = w.out.Write([]byte{b})
		time.Sleep(each)
	}
}
func (w *stdioWire) crash() {
	fmt.Fprintln(os.Stderr, "panic: out of cheese")
	os.Exit(7)
}
func (w *stdioWire) hang() { select {} }

type httpWire struct {
	w       http.ResponseWriter
	r       *http.Request
	json    bool
	started bool
	split   bool
	over    chan struct{}
}

func (w *httpWire) line(s string) {
	if w.json {
		_ = w.raw([]byte(s))
		return
	}
	_ = w.raw([]byte("data: " + s + "\n\n"))
}
func (w *httpWire) lines(n int, s string) {
	if w.json {
		n = 1 // there is room for one message only, and it will be the wrong one
	}
	w.line(strings.TrimSuffix(strings.Repeat(s+"\n\ndata: ", n), "\n\ndata: "))
}
func (w *httpWire) raw(p []byte) error {
	if !w.started {
		w.started = true
		w.w.Header().Set("Content-Type", "text/event-stream")
		if w.json {
			w.w.Header().Set("Content-Type", "application/json")
		}
	}
	var err error
	if w.split && len(p) < 10_000 {
		for i := range p {
			_, err = w.w.Write(p[i : i+1])
			w.w.(http.Flusher).Flush()
		}
		return err
	}
	_, err = w.w.Write(p)
	w.w.(http.Flusher).Flush()
	return err
}
func (w *httpWire) slowly(s string, each time.Duration) {
	if !w.json {
		s = "data: " + s + "\n\n"
	}
	for _, b := range []byte(s) {
		if w.raw([]byte{b}) != nil {
			return
		}
		time.Sleep(each)
	}
}
func (w *httpWire) crash() { panic(http.ErrAbortHandler) }
func (w *httpWire) hang() {
	select {
	case <-w.r.Context().Done():
	case <-w.over:
	}
}

type fake struct {
	script
	over chan struct{}

	mu   sync.Mutex
	seen map[string]int
	got  []string // methods, and ids that were cancelled
	list int

	random *rand.Rand
}

func newFake(s script) *fake {
	return &fake{script: s, over: make(chan struct{}), seen: map[string]int{}, random: rand.New(rand.NewPCG(s.Seed, uint64(os.Getpid())))}
}

// fault is what goes wrong this time at a stage.
func (f *fake) fault(stage string, words []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.seen[stage]
	f.seen[stage]++
	if data, err := os.ReadFile(f.Log); err == nil {
		n = strings.Count(string(data), stage) - 1
	}
	if len(words) == 0 {
		return ""
	}
	word := words[min(n, len(words)-1)]
	if word == "any" {
		return mishaps[f.random.IntN(len(mishaps))]
	}
	return word
}

// mishaps are the faults that a seed chooses from.
var mishaps = []string{
	"", "", "", "", "", "", "crash", "effect", "half", "hang", "error", "odderror", "huge-2", "deep-20", "garbage",
	"wrongid", "noid", "twice", "dup", "case", "batch", "notobject", "notify-3", "ask-100", "slow",
}

func (f *fake) note(s string) {
	f.mu.Lock()
	f.got = append(f.got, s)
	f.mu.Unlock()
	if f.Log != "" {
		file, err := os.OpenFile(f.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(file, s)
			file.Close()
		}
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.Status != 0 {
		http.Error(w, "no", f.Status)
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if !bytes.Contains(body, []byte(`"id":`)) {
		w.WriteHeader(http.StatusAccepted)
	}
	f.handle(body, &httpWire{w: w, r: r, json: f.JSON, split: f.Split, over: f.over})
}

type fakeRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Cursor    string          `json:"cursor"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

func (f *fake) handle(msg []byte, w wire) {
	var q fakeRequest
	if json.Unmarshal(msg, &q) != nil {
		return
	}
	f.note(strings.TrimSpace(q.Method + " " + q.Params.Name + string(q.Params.RequestID)))
	result, stage, words := "", "", []string(nil)
	switch q.Method {
	case "server/discover":
		stage, words = "server/discover", f.Discover
		result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}}}`
		if len(f.Listen) > 0 {
			result = strings.Replace(result, `"tools":{}`, `"tools":{"listChanged":true}`, 1)
		}
		if !f.Modern && len(words) == 0 {
			words = []string{"error"}
		}
	case "initialize":
		stage, words = "initialize", f.Initialize
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake\u202e","version":"1"}}`
	case "tools/list":
		stage, words = "tools/list", f.List
		result = f.page(q.Params.Cursor)
	case "tools/call":
		stage, words = "tools/call", f.Call
		if q.Params.Name == "fail" {
			words = []string{string(bytes.Trim(q.Params.Arguments, `{"}:`))}
		}
		result = f.result(q)
	case "subscriptions/listen":
		f.listen(f.fault(q.Method, f.Listen), w)
		return
	default:
		return
	}
	answer := `{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + result + `}`
	f.answer(f.fault(stage, words), answer, q, w)
}

// listen serves the stream of announcements: "drop" ends it after the first
// message, "refuse" with a status, "hang" never begins it, and "" keeps it.
func (f *fake) listen(fault string, w wire) {
	web, ok := w.(*httpWire)
	switch {
	case !ok: // over stdio there is one stream for everything
	case fault == "refuse":
		web.w.WriteHeader(http.StatusMethodNotAllowed)
	case fault == "hang":
		w.hang()
	default:
		web.json = false
		w.line(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}`)
		if fault != "drop" {
			w.hang()
		}
	}
}

func (f *fake) result(q fakeRequest) string {
	switch q.Params.Name {
	case "echo":
		return `{"content":[],"structuredContent":` + string(q.Params.Arguments) + `}`
	case "ask":
		return `{"resultType":"input_required","inputRequests":{"a":{}}}`
	}
	return exact
}

// page is one page of the list: some fixed tools, odd ones among them, and as
// many as the script says.
func (f *fake) page(cursor string) string {
	var tools []string
	if cursor == "" {
		tools = []string{
			`{"name":"exact","description":"d","inputSchema":{"type":"object","maximum":9007199254740993},"annotations":{"readOnlyHint":true,"title":"T"}}`,
			`{"name":"echo","inputSchema":true}`, `{"name":"fail"}`, `{"name":"ask","inputSchema":"odd"}`, `{"name":"hidden"}`,
			`{"name":""}`, `{"name":"bad\u0000"}`, `{"name":7}`, `{"name":"exact"}`, `null`, `{"name":"a","name":"b"}`,
		}
	}
	from, _ := strconv.Atoi(cursor)
	to := min(from+1000, f.Tools)
	for i := from; i < to; i++ {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
	}
	next := ""
	if to < f.Tools {
		next = `,"nextCursor":"` + strconv.Itoa(to) + `"`
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]` + next + `}`
}

// answer sends an answer, or does what the fault says instead.
func (f *fake) answer(fault, answer string, q fakeRequest, w wire) {
	word, arg, _ := strings.Cut(fault, "-")
	n, _ := strconv.Atoi(arg)
	id := string(q.ID)
	reply := func(id, member, value string) string {
		if id != "" {
			id = `"id":` + id + `,`
		}
		return `{"jsonrpc":"2.0",` + id + `"` + member + `":` + value + `}`
	}
	switch word {
	case "":
		w.line(answer)
	case "crash": // before anything was done
		w.crash()
	case "effect": // done, but the answer is lost
		f.note("effect")
		w.crash()
	case "half": // of a message
		_ = w.raw([]byte(answer[:len(answer)/2]))
		w.crash()
	case "hang":
		w.hang()
	case "error":
		w.line(reply(id, "error", `{"code":-32601,"message":"method not found"}`))
	case "odderror":
		w.line(reply(id, "error", `{"code":"x","message":7}`))
	case "huge": // so many MB, the id last
		w.lockstep(`{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"`, n<<20, "x", `"}]},"id":`+id+`}`)
	case "items": // so many thousand content items
		w.lockstep(`{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[`, n*1000*27, `{"type":"text","text":"a"}, `, `{"type":"text","text":"a"}]}}`)
	case "endless":
		_ = w.raw([]byte(`{"jsonrpc":"2.0","id":` + id + `,"result":"`))
		for block := bytes.Repeat([]byte("x"), 1<<16); w.raw(block) == nil; {
			block[0] = 'x'
		}
	case "deep":
		w.line(reply(id, "result", `{"a":`+strings.Repeat("[", n*1000)+strings.Repeat("]", n*1000)+`}`))
	case "slow": // a byte in so many milliseconds
		w.slowly(answer, time.Duration(max(n, 1))*time.Millisecond)
	case "garbage":
		w.line("{not json at all")
		w.line("\xff\xfe \u0000")
		w.line(answer)
	case "wrongid":
		w.line(reply("99999", "result", `{"content":[]}`))
		w.line(reply(`"`+id+`"`, "result", `{"content":[]}`))
		w.line(reply(id+".0", "result", `{"content":[]}`))
		w.line(answer)
	case "noid":
		w.line(reply("", "result", "{}"))
		w.line(reply("null", "error", `{"code":1,"message":"x"}`))
		w.line(answer)
	case "twice":
		w.line(answer)
		w.line(answer)
	case "dup": // two results
		w.line(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]},"result":{"content":[1]}}`)
		w.line(answer)
	case "case":
		w.line(`{"jsonrpc":"2.0","ID":` + id + `,"Result":{"content":[]}}`)
		w.line(answer)
	case "batch":
		w.line(`[` + answer + `]`)
		w.line(answer)
	case "notobject":
		w.line(reply(id, "result", `[]`))
	case "notify":
		for range n {
			w.lines(1000, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			w.lines(1000, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		}
		w.line(answer)
	case "ask": // requests of the server to us
		for i := range n {
			w.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":"s%d","method":"ping"}`, i))
		}
		w.line(answer)
	case "progress":
		for i := range n {
			w.line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%d,"message":"m"}}`, q.Params.Meta.Token, i, n))
			w.line(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"somebody","progress":1}}`)
		}
		w.line(answer)
	case "cursor": // repeats
		w.line(reply(id, "result", `{"tools":[{"name":"exact"}],"nextCursor":"same"}`))
	case "cursors": // never end, and give nothing
		w.line(reply(id, "result", fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, time.Now().UnixNano())))
	case "change": // at each call
		f.mu.Lock()
		f.list++
		name := "exact" + strconv.Itoa(f.list)
		f.mu.Unlock()
		w.line(reply(id, "result", `{"tools":[{"name":"`+name+`"}]}`))
		if _, ok := w.(*stdioWire); ok {
			w.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
	default:
		panic("unknown fault " + fault)
	}
}

// lockstep writes one long message piece by piece, and no other in between.
func (w *stdioWire) lockstep(head string, n int, filler, tail string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	long(func(p []byte) error { _, err := w.out.Write(p); return err }, head, n, filler, tail+"\n")
}
func (w *httpWire) lockstep(head string, n int, filler, tail string) {
	if !w.json {
		head, tail = "data: "+head, tail+"\n\n"
	}
	long(w.raw, head, n, filler, tail)
}

func long(write func([]byte) error, head string, n int, filler, tail string) {
	block := []byte(strings.Repeat(filler, 60_000/len(filler)))
	if write([]byte(head)) != nil {
		return
	}
	for n > 0 {
		size := min(n, len(block)) / len(filler) * len(filler)
		if size == 0 || write(block[:size]) != nil {
			break
		}
		n -= size
	}
	_ = write([]byte(tail))
}
