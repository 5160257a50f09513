package main

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/bridge/upstream"
)

func TestDoctorFoldsWhatIsTheSame(t *testing.T) {
	t.Parallel()
	said := failing("c", "it is down", "")
	said.Said = []string{"why"}
	got := folded([]finding{fine("a", "on"), warning("b", "on", ""), fine("c", "on"), said, said, fine("", "on"), fine("", "on")})
	want := []finding{fine("a, c", "on"), warning("b", "on", ""), said, said, fine("", "on"), fine("", "on")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
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
	up := &checkup{}
	for _, test := range []struct {
		address string
		want    level
		text    string
	}{
		{at(ours), levelOK, "a bridge listens on " + at(ours)},
		{at(other), levelWarn, "serve cannot listen on " + at(other)},
		{"127.0.0.1:0", levelOK, "127.0.0.1:0 is free"},
		{"nowhere", levelWarn, "serve cannot listen on nowhere"},
	} {
		f := up.port(t.Context(), "http.listen", test.address)
		if f.Level != test.want || !strings.HasPrefix(f.Text, test.text) {
			t.Errorf("%s: %s %q", test.address, f.Level, f.Text)
		}
	}
}

func TestDoctorTried(t *testing.T) {
	t.Parallel()
	up := &checkup{app: &console{configPath: "c.json"}, limit: 1, cfg: &config.Config{Servers: map[string]*config.Server{"s": {}}}}
	for _, test := range []struct {
		tried tried
		want  finding
	}{
		{tried{OK: true, State: "connected", Tools: []string{"a"}, Took: 3}, fine("s", "1 tool, in 3 ms")},
		{tried{OK: true, State: "connected"}, warning("s", "it is connected and has no tools", "look at its tools.allow and tools.deny, and at what it needs to have some")},
		{tried{State: string(upstream.NeedsLogin), Why: "it wants one"}, warning("s", "it needs a login", "codemode-bridge servers login s --config c.json")},
		{tried{Why: "context deadline exceeded"}, failing("s", "it has not answered within 1ns", "start it by hand to see why, or give it longer with --timeout")},
		{tried{State: "failed", Why: "starting the process: no such file"}, failing("s", "starting the process: no such file", "install the program, or write where it is")},
	} {
		test.tried.Name = "s"
		if got := up.tried(test.tried); !reflect.DeepEqual(got, test.want) {
			t.Errorf("got %+v, want %+v", got, test.want)
		}
	}
	ended := up.tried(tried{Name: "s", State: "failed", Why: "the process ended; its stderr ends: one | two"})
	if ended.Text != "the process ended" || !reflect.DeepEqual(ended.Said, []string{"one", "two"}) || ended.Level != levelFail {
		t.Errorf("got %+v", ended)
	}
}

func TestDoctorShowsNoSecrets(t *testing.T) {
	t.Parallel()
	up := &checkup{}
	up.known.Learn([]recorder.Server{{Env: map[string]string{"API_KEY": "s3cret-value"}}}, func(string) (string, bool) { return "", false })
	f := finding{About: "s3cret-value", Text: "it said s3cret-value\x1b[2J", Said: []string{"key=s3cret-value"}}
	up.clean(&f)
	for _, text := range append(f.Said, f.About, f.Text) {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "\x1b") {
			t.Errorf("it shows %q", text)
		}
	}
}

func TestDoctorNamesThatAreTooLong(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("c.json", []byte(`{"evaluation": {"profiles": {"a12345678901234567890123456789_2": {}}}}`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	up := &checkup{cfg: cfg}
	if long := up.tooLong(setup.EntryName); long != "" {
		t.Errorf("what install writes is too long: %s", long)
	}
	if long := up.tooLong("codemode-bridge"); long != "mcp__codemode-bridge__codemode_eval_a12345678901234567890123456789_2" {
		t.Errorf("got %q", long)
	}
}
