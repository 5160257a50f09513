package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codemode-bridge/bridge/certificate"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/profiles/known"
	"codemode-bridge/sandbox/confine"
)

func TestDoctorFoldsWhatIsTheSame(t *testing.T) {
	t.Parallel()
	said := failing("c", "it is down", "")
	said.Said = []string{"why"}
	got := Fold([]Finding{fine("a", "on"), warning("b", "on", ""), fine("c", "on"), said, said, fine("", "on"), fine("", "on")})
	want := []Finding{fine("a, c", "on"), warning("b", "on", ""), said, said, fine("", "on"), fine("", "on")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDoctorHardening(t *testing.T) {
	t.Parallel()
	levels := func(steps map[string]string) string {
		var all []string
		for _, f := range hardening(steps) {
			all = append(all, f.About+"="+string(f.Level))
		}
		return strings.Join(all, " ")
	}
	for _, test := range []struct {
		steps map[string]string
		want  string
	}{
		{map[string]string{"landlock": "on", "seccomp": "on", "cgroup": "none", "memory-limit": "on"}, "cgroup=ok landlock=ok memory-limit=ok seccomp=ok"},
		{map[string]string{"landlock": "on", "seccomp": "on", "cgroup": "none"}, "cgroup=warn landlock=ok seccomp=ok"},
		{map[string]string{"landlock": "not supported", "seccomp": "on"}, "landlock=warn seccomp=ok"},
		{map[string]string{"job": "on"}, "job=ok =warn"},
		{nil, "=warn"},
	} {
		if got := levels(test.steps); got != test.want {
			t.Errorf("%v: %s, want %s", test.steps, got, test.want)
		}
	}
}

func TestDoctorPorts(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	ours := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", "codemode-bridge") }))
	defer ours.Close()
	at := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	for _, test := range []struct {
		address string
		want    Level
		text    string
	}{
		{at(ours), OK, "a bridge listens on " + at(ours)},
		{at(other), Warn, "serve cannot listen on " + at(other)},
		{"127.0.0.1:0", OK, "127.0.0.1:0 is free"},
		{"nowhere", Warn, "serve cannot listen on nowhere"},
	} {
		f := port(t.Context(), "http.listen", test.address, nil)
		if f.Level != test.want || !strings.HasPrefix(f.Text, test.text) {
			t.Errorf("%s: %s %q", test.address, f.Level, f.Text)
		}
	}
}

func TestDoctorBoxes(t *testing.T) {
	t.Parallel()
	holds := &upstream.BoxStatus{Is: "confined: writes app, no network", Steps: confine.Steps{"files": "on"}}
	got := new(Checkup).boxes([]Trial{
		{Name: "remote"}, {Name: "a", kept: &upstream.BoxStatus{Is: upstream.NotConfined}}, {Name: "kept", kept: holds},
		{Name: "b", kept: holds, lacks: []string{"network: not permitted"}}, {Name: "c", kept: &upstream.BoxStatus{Is: upstream.NotConfined}},
		{Name: "d", kept: holds, lacks: []string{"network: not permitted"}}, {Name: "e", kept: holds, lacks: []string{"files: no root", "calls: none"}},
	})
	const do = `policy does not count on that; "require": true in "confine" refuses to start a server so`
	want := []Finding{
		warning("b, d", "confined in part; not on: network: not permitted", do),
		warning("e", "confined in part; not on: files: no root; calls: none", do),
		{Level: OK, Text: "not confined: a, c", Do: `"confine" keeps a server to folders and hosts that you name`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if all := new(Checkup).boxes([]Trial{{Name: "remote"}, {Name: "kept", kept: holds}}); len(all) > 0 {
		t.Errorf("there is nothing to say, and it says %v", all)
	}
}

func TestDoctorTried(t *testing.T) {
	t.Parallel()
	up := New(Options{Limit: 1, Typed: func(command string) string { return "codemode-bridge " + command + " --config c.json" }})
	for _, test := range []struct {
		trial Trial
		want  Finding
	}{
		{Trial{OK: true, State: "connected", Tools: []string{"a"}, Took: 3}, fine("s", "1 tool, in 3 ms")},
		{Trial{OK: true, State: "connected"}, warning("s", "it is connected and has no tools", "look at its tools.allow and tools.deny, and at what it needs to have some")},
		{Trial{State: string(upstream.NeedsLogin), Why: "it wants one"}, warning("s", "it needs a login", "codemode-bridge servers login s --config c.json")},
		{Trial{Why: "; its stderr ends: loading"}, func() Finding {
			f := failing("s", "it has not answered within 1ns", "start it by hand to see why, or give it longer with --timeout")
			f.Said = []string{"loading"}
			return f
		}()},
		{Trial{State: "failed", Why: "it did not answer the handshake within 30s"}, failing("s", "it did not answer the handshake within 30s", "start its command by hand to see what it waits for, or raise its connectTimeout; codemode-bridge servers disable s --config c.json does without it")},
		{Trial{withheld: "npx may lack X: write it"}, failing("s", "it has not answered within 1ns", "npx may lack X: write it; or start it by hand to see why, or give it longer with --timeout")},
		{Trial{State: "failed", Why: "it ended; its stderr ends: npm error network", withheld: "npx may lack X: write it"}, func() Finding {
			f := failing("s", "it ended", "npx may lack X: write it; or codemode-bridge servers test s --config c.json tries again; codemode-bridge servers disable s --config c.json does without it")
			f.Said = []string{"npm error network"}
			return f
		}()},
		{Trial{State: "failed", Why: "it ended", withheld: "npx may lack X: write it"}, failing("s", "it ended", "codemode-bridge servers test s --config c.json tries again; codemode-bridge servers disable s --config c.json does without it")},
		{Trial{OK: true, State: "connected", Tools: []string{"a"}, Took: 3, withheld: "npx may lack X: write it"}, fine("s", "1 tool, in 3 ms")},
		{Trial{State: "failed", Why: "starting the process: no such file"}, failing("s", "starting the process: no such file", "install the program, or write where it is")},
	} {
		test.trial.Name = "s"
		if diff := cmp.Diff(test.want, up.tried(test.trial, false)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	ended := up.tried(Trial{Name: "s", State: "failed", Why: "the process ended; its stderr ends: one | two"}, false)
	if ended.Text != "the process ended" || !slices.Equal(ended.Said, []string{"one", "two"}) || ended.Level != Fail {
		t.Errorf("got %+v", ended)
	}
}

func TestDoctorShowsNoSecrets(t *testing.T) {
	t.Parallel()
	up := New(Options{Hide: strings.NewReplacer("s3cret-value", "[hidden]").Replace})
	f := Finding{About: "s3cret-value", Text: "it said s3cret-value\x1b[2J", Said: []string{"key=s3cret-value"}}
	up.clean(&f)
	for _, text := range append(f.Said, f.About, f.Text) {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "\x1b") {
			t.Errorf("it shows %q", text)
		}
	}
}

func TestDoctorNamesThatAreTooLong(t *testing.T) {
	t.Parallel()
	up := &Checkup{config: &Config{Profiles: []string{"a12345678901234567890123456789_2"}}}
	if long := up.tooLong(setup.EntryName); long != "" {
		t.Errorf("what install writes is too long: %s", long)
	}
	if long := up.tooLong("codemode-bridge"); long != "mcp__codemode-bridge__codemode_eval_a12345678901234567890123456789_2" {
		t.Errorf("got %q", long)
	}
}

// checkup is one of an installation in a folder, without a configuration.
func checkup(t *testing.T) (Options, string) {
	t.Helper()
	dir := t.TempDir()
	same := func(text string) string { return text }
	return Options{
		File: filepath.Join(dir, "config.json"), Limit: time.Minute, Typed: same, Hide: same,
		State: filepath.Join(dir, "state"), Cache: filepath.Join(dir, "cache"),
		System: clients.System{OS: "linux", Env: func(name string) (string, bool) { return dir, name == "HOME" }},
		Entry:  func() ([]string, error) { return []string{"/opt/codemode-bridge", "run"}, nil },
		Read: func() (*Config, []Problem) {
			return nil, []Problem{{Text: "it is broken", Do: "mend it", File: "config.json", Line: 2, Column: 3}}
		},
		Sandbox: func(context.Context) (map[string]string, *Problem) { return map[string]string{"seccomp": "on"}, nil },
		Short:   func(path string) string { return strings.TrimPrefix(path, dir+"/") },
	}, dir
}

// findings are what a checkup finds, as lines: area, level, what about and text.
func findings(t *testing.T, up *Checkup) []string {
	t.Helper()
	var all []string
	for _, area := range up.Areas() {
		for _, f := range area.Check(t.Context()) {
			if f.Area != area.Name {
				t.Errorf("%+v is of the area %s", f, area.Name)
			}
			all = append(all, strings.Join([]string{f.Area, string(f.Level), f.About, f.Text}, "|"))
		}
	}
	return all
}

func TestDoctorWithoutAConfiguration(t *testing.T) {
	t.Parallel()
	o, _ := checkup(t)
	up := New(o)
	want := []string{
		"config|fail||it is broken",
		"config|ok||servers, tools, logins, store and ports are not looked at as long as it cannot be used",
		"sandbox|ok|seccomp|on",
		"clients|ok||none of the clients that are known has servers here",
	}
	if got := findings(t, up); !slices.Equal(got, want) || up.Usable() {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// A client's file has local servers only where the folder has some in it.
func TestDoctorLocalServers(t *testing.T) {
	t.Parallel()
	for local, want := range map[string]bool{`{}`: false, `{"here": {"command": "here"}}`: true} {
		o, dir := checkup(t)
		o.System.Folder = filepath.Join(dir, "work")
		text := fmt.Sprintf(`{"mcpServers": {"files": {"command": "files"}}, "projects": {%q: {"mcpServers": %s}}}`, filepath.ToSlash(o.System.Folder), local)
		if err := os.WriteFile(filepath.Join(dir, ".claude.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := findings(t, New(o))
		if !slices.Contains(got, "clients|ok|Claude Code (user)|without the bridge") || slices.Contains(got, "clients|ok|Claude Code (local)|without the bridge") != want {
			t.Errorf("with %s: got\n%s", local, strings.Join(got, "\n"))
		}
	}
}

func TestDoctorOfAWholeInstallation(t *testing.T) {
	t.Parallel()
	o, dir := checkup(t)
	log := filepath.Join(dir, "state", "audit.db")
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{log: "rows", filepath.Join(dir, ".claude.json"): `{"mcpServers": {"codemode": {"command": "/opt/codemode-bridge", "args": ["run"]}, "files": {"command": "files"}}}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expired := login.Info{Expires: time.Unix(1, 0)}
	c := &Config{
		Servers: []Server{
			{Name: "off", Disabled: true, Login: func() (login.Info, bool) { return expired, true }},
			{Name: "gone", Spec: upstream.Spec{Name: "gone", Kind: upstream.Stdio, Command: filepath.Join(dir, "nothing")}, Login: func() (login.Info, bool) { return expired, true }},
		},
		Profiles: []string{"strict"}, Evaluates: true, Listen: "127.0.0.1:0", NobodyConfirms: "nobody is an admin",
		Review: func() (int, int, error) { return 2, 1, nil },
		Audit: Audit{Enabled: true, Path: log, Open: func(context.Context) (LogState, error) {
			return LogState{Last: 7, Opened: true, Whole: time.Now()}, nil
		}},
	}
	o.Read = func() (*Config, []Problem) { return c, nil }
	got := strings.Join(findings(t, New(o)), "\n")
	for _, want := range []string{
		"config|ok||2 servers, 1 profile\nconfig|warn||nobody is an admin\n",
		"servers|ok|off|disabled\nservers|fail|gone|starting the process: ",
		"tools|warn||2 tools of servers are not what somebody has accepted\ntools|ok||1 tool blocked\n",
		"logins|warn|gone|it has expired on ",
		"store|ok|state/audit.db|it opens, and its end is whole (last row 7); all of it was last verified on " + time.Now().UTC().Format("2006-"),
		"store|ok|state|writable", "store|ok|cache|writable", "store|ok||what is kept is for you alone",
		"ports|ok|http.listen|127.0.0.1:0 is free\nports|ok|approvals.listen|off: there is no approval page",
		"clients|ok|Claude Code (user)|starts this bridge as codemode\nclients|warn|Claude Code (user)|the model can call files past the bridge",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not find %q:\n%s", want, got)
		}
	}

	damaged := errors.New("row 3 is not what was written")
	for want, at := range map[string]time.Time{"ok not verified yet": {}, "ok last verified on": time.Now().Add(-longUnverified / 2), "warn last verified on": time.Now().Add(-2 * longUnverified)} {
		c.Audit.Open = func(context.Context) (LogState, error) { return LogState{Last: 7, Opened: true, Whole: at}, nil }
		level, text, _ := strings.Cut(want, " ")
		if f := New(o).log(t.Context(), c.Audit); string(f.Level) != level || !strings.Contains(f.Text, text) || (f.Do != "") != (level == "warn") {
			t.Errorf("%s: %+v", want, f)
		}
	}
	c.Audit.Open = func(context.Context) (LogState, error) { return LogState{Opened: true, Damaged: true}, damaged }
	if f := New(o).log(t.Context(), c.Audit); f.Level != Fail || f.Text != damaged.Error() || !strings.Contains(f.Do, "audit repair") {
		t.Errorf("a damaged log: %+v", f)
	}
	if err := os.Chmod(log, 0o644); err != nil {
		t.Fatal(err)
	}
	// Nobody else gets to what a package manager has fetched for a box.
	boxes := filepath.Join(dir, "state", "boxes", "files")
	if err := os.MkdirAll(boxes, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(boxes, "index.js"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(boxes, "index.js"), 0o644); err != nil {
		t.Fatal(err)
	}
	up := New(o)
	up.config = c
	if all := up.open(); runtime.GOOS != "windows" && (len(all) != 1 || all[0].Text != "others can read state/audit.db") {
		t.Errorf("a file that others can read: %+v", all)
	}
}

// What a server lists is compared with what is known of it, if that was accepted.
func TestDoctorKnown(t *testing.T) {
	t.Parallel()
	r := known.Recognize("filesystem", known.Started{Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/ws"}})
	if !r.Accepted {
		t.Fatalf("filesystem is not accepted: %s", r.Why)
	}
	strange := upstream.Tool{Name: "format_disk", Input: json.RawMessage(`{}`)}
	for name, row := range map[string]struct {
		server Server
		listed []upstream.Tool
		want   string // part of the warnings
	}{
		"it did not answer":   {Server{Known: r}, nil, ""},
		"it lists other ones": {Server{Known: r}, []upstream.Tool{strange}, "it lists tools that are not known: format_disk"},
		"some are hidden":     {Server{Known: r, Spec: upstream.Spec{Deny: []string{"*"}}}, []upstream.Tool{strange}, "it lists tools that are not known: format_disk"},
		"it is disabled":      {Server{Known: r, Disabled: true}, []upstream.Tool{strange}, ""},
		"nothing is known":    {Server{}, []upstream.Tool{strange}, ""},
	} {
		row.server.Name = "files"
		up := New(Options{})
		up.config, up.listed = &Config{Servers: []Server{row.server}}, map[string][]upstream.Tool{"files": row.listed}
		var texts []string
		for _, f := range up.known() {
			texts = append(texts, string(f.Level)+" "+f.About+": "+f.Text)
		}
		got := strings.Join(texts, "\n")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) || strings.Contains(got, "does not list") != (name == "it lists other ones") {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// What a bridge that runs is connected to is not tried, nor waited for; the rest is.
func TestDoctorAsksTheBridgeThatRuns(t *testing.T) {
	t.Parallel()
	tools := []upstream.Tool{{Name: "a"}, {Name: "b"}}
	for state, want := range map[upstream.State]bool{upstream.Connected: true, upstream.Idle: true, upstream.Connecting: false, upstream.Failed: false, upstream.NeedsLogin: false, upstream.Unhealthy: false} {
		if _, ok := Running(upstream.Status{Name: "x", State: state}, tools); ok != want {
			t.Errorf("%s: %t", state, ok)
		}
	}
	if _, ok := Running(upstream.Status{Name: "x", State: upstream.Connected}, nil); ok {
		t.Error("one without tools is not tried")
	}
	there, _ := Running(upstream.Status{Name: "there", State: upstream.Connected, Kind: upstream.Stdio, PID: 7}, tools)
	missing := filepath.Join(t.TempDir(), "missing")
	var waited []string
	up := New(Options{
		Limit: time.Minute, Typed: func(command string) string { return command },
		Running: func(context.Context) map[string]Trial { return map[string]Trial{"there": there} },
		Waits: func(servers []string) (func(string), func()) {
			waited = servers
			return func(string) {}, func() {}
		},
	})
	up.config = &Config{Servers: []Server{{Name: "there", Spec: upstream.Spec{Name: "there", Command: missing}}, {Name: "broken", Spec: upstream.Spec{Name: "broken", Command: missing}}}}
	var got []string
	for _, f := range up.servers(t.Context()) {
		text, _, _ := strings.Cut(f.Text, ": ")
		got = append(got, strings.Join([]string{string(f.Level), f.About, text}, "|"))
	}
	want := []string{"ok|there|2 tools, at the bridge that runs", "fail|broken|starting the process", "ok||not confined"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(waited, []string{"broken"}) || up.states["there"] != upstream.Connected || len(up.listed["there"]) != 2 {
		t.Errorf("waited for %q, states %v", waited, up.states)
	}
}

func TestDoctorAsksTheIssuer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		says []IssuerProblem
		want []Level
	}{
		"nothing":           {nil, []Level{OK}},
		"it cannot be read": {[]IssuerProblem{{"it is down", "start it", true}}, []Level{Fail}},
		"clients are lost":  {[]IssuerProblem{{"no PKCE", "turn it on", false}, {"no registration", "register", false}}, []Level{OK, Warn, Warn}},
	} {
		all := issuer(t.Context(), &Config{Issuer: "https://login.example", AskIssuer: func(context.Context) []IssuerProblem { return row.says }})
		var got []Level
		said := row.says
		for _, f := range all {
			got = append(got, f.Level)
			if f.Level == OK {
				continue
			}
			if f.Text != said[0].Text || f.Do != said[0].Do || f.About != "http.auth" {
				t.Errorf("%s: %+v", name, f)
			}
			said = said[1:]
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
	if all := issuer(t.Context(), &Config{}); all != nil {
		t.Errorf("without an issuer: %+v", all)
	}
}

func TestCertificates(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		left  time.Duration
		level Level
		words string
	}{
		{-time.Minute, Fail, "ended on"}, {13 * 24 * time.Hour, Warn, "ends on"}, {15 * 24 * time.Hour, OK, "is for bridge.test, until"},
	} {
		f := lasts("http.tls", &certificate.State{Expires: now.Add(row.left), Hosts: []string{"bridge.test"}}, now)
		if f.Level != row.level || !strings.Contains(f.Text, row.words) {
			t.Errorf("%v before its end: %+v", row.left, f)
		}
	}
	if f := lasts("http.tls", &certificate.State{Wrong: errors.New("no such file"), Hint: "make one"}, now); f.Level != Fail || f.Do != "make one" {
		t.Errorf("broken: %+v", f)
	}
}
