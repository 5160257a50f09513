package approvalview

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// A heldDesk is a desk that keeps what is brought to it.
type heldDesk struct{ brought []approval.Verdict }

func (d *heldDesk) load() tea.Msg                { return nil }
func (d *heldDesk) wait(<-chan struct{}) tea.Cmd { return nil }

func (d *heldDesk) settle(_ approval.StoredRequest, v approval.Verdict) tea.Cmd {
	d.brought = append(d.brought, v)
	return nil
}

// A screen is a watch whose keys a test presses.
type screen struct {
	*watch
	desk *heldDesk
}

func newScreen(entries ...approval.StoredRequest) screen {
	d := &heldDesk{}
	w := newWatch(nil, "ann", "")
	w.desk = d
	w.Update(entriesMsg{entries: entries})
	return screen{w, d}
}

// press types keys: single characters, or the name of one in angle brackets.
func (s screen) press(keys string) (last tea.Cmd) {
	for len(keys) > 0 {
		name, rest := keys[:1], keys[1:]
		if keys[0] == '<' {
			name, rest, _ = strings.Cut(keys[1:], ">")
		}
		k := tea.Key{Code: rune(name[0]), Text: name}
		switch name {
		case "enter":
			k = tea.Key{Code: tea.KeyEnter}
		case "esc":
			k = tea.Key{Code: tea.KeyEscape}
		case "backspace":
			k = tea.Key{Code: tea.KeyBackspace}
		case "down":
			k = tea.Key{Code: tea.KeyDown}
		}
		_, last = s.Update(tea.KeyPressMsg(k))
		keys = rest
	}
	return last
}

// asks is a request about one call of mail__send.
func asks(id string, args string, change ...func(*approval.Request)) approval.StoredRequest {
	tree, err := canon.Parse([]byte(args))
	if err != nil {
		panic(err)
	}
	r := approval.Request{
		ID: id, Run: "r1", Client: "Claude\x1b[31m", Server: "mail", Tool: "send", Script: "mail__send",
		Decision: profiles.Decision{Disposition: profiles.Ask, Risk: profiles.High},
		Items:    []approval.Item{{Call: 1, Shown: canon.Display(tree, canon.DisplayOptions{}), Key: approval.Key{Server: "mail", Tool: "send", Args: tree.Digest()}}},
		Asked:    time.Now(), Until: time.Now().Add(5 * time.Minute),
	}
	for _, f := range change {
		f(&r)
	}
	return approval.StoredRequest{Request: r}
}

func TestKeysAnswer(t *testing.T) {
	t.Parallel()
	manual := func(r *approval.Request) { r.Decision.Manual = true }
	reason := func(r *approval.Request) { r.Decision.Risk, r.Decision.RequireReason = profiles.Critical, true }
	remember := func(r *approval.Request) {
		r.Decision.Risk, r.Decision.Remember = profiles.Low, true
		r.Items[0].Cover = approval.Cover{Kind: "delete", Free: []string{"n"}}
	}
	for _, row := range []struct {
		name, keys string
		change     []func(*approval.Request)
		want       *approval.Verdict // nil: nothing is brought
		status     string
	}{
		{name: "yes", keys: "ay<enter>", want: &approval.Verdict{Approve: true}},
		{name: "one key is no yes", keys: "a<enter>"},
		{name: "another word is no yes", keys: "aok<enter>no<enter>"},
		{name: "a slip is mended", keys: "ax<backspace>y<enter>", want: &approval.Verdict{Approve: true}},
		{name: "given up", keys: "ay<esc><enter>", status: "not answered"},
		{name: "no", keys: "d", want: &approval.Verdict{}},
		{name: "no, why", keys: "rwrong box<enter>", want: &approval.Verdict{Text: "wrong box"}},
		{name: "no, stop", keys: "xstop it<enter>", want: &approval.Verdict{Stop: true, Text: "stop it"}},
		{name: "several in this run", keys: "n20<enter>", change: []func(*approval.Request){remember}, want: &approval.Verdict{Approve: true, Scope: approval.RunScope, Count: 20}},
		{name: "for the session", keys: "sy<enter>", change: []func(*approval.Request){remember}, want: &approval.Verdict{Approve: true, Scope: approval.SessionScope}},
		{name: "and forget", keys: "fy<enter>", change: []func(*approval.Request){func(r *approval.Request) { r.Decision.Context = true }}, want: &approval.Verdict{Approve: true, Forget: true}},
		{name: "nothing to forget", keys: "fy<enter>", status: "nothing to forget"},
		{name: "not for the session", keys: "sy<enter>", status: "only once"},
		{name: "a reason is needed", keys: "ait is due<enter>", change: []func(*approval.Request){reason}, want: &approval.Verdict{Approve: true, Text: "it is due"}},
		{name: "the name is typed", keys: "asend<enter>", change: []func(*approval.Request){manual}, want: &approval.Verdict{Approve: true, Typed: "send"}},
		{name: "the name and a reason", keys: "asend<enter>it is due<enter>", change: []func(*approval.Request){manual, reason}, want: &approval.Verdict{Approve: true, Typed: "send", Text: "it is due"}},
		{name: "keys of nothing", keys: "yn<enter>123!<enter>"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScreen(asks("q1", `{"to": "bob@example.com"}`, row.change...))
				time.Sleep(time.Second)
				if strings.ContainsRune("afsn", rune(row.keys[0])) {
					s.press("v") // all of it has been read
				}
				s.press(row.keys)
				switch {
				case row.want == nil && len(s.desk.brought) > 0:
					t.Errorf("brought %+v", s.desk.brought)
				case row.want != nil && (len(s.desk.brought) != 1 || asJSON(t, s.desk.brought[0]) != asJSON(t, *row.want)):
					t.Errorf("brought %+v, want %+v", s.desk.brought, *row.want)
				}
				if !strings.Contains(s.status, row.status) {
					t.Errorf("status %q, want %q", s.status, row.status)
				}
			})
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What was typed for something else answers nothing: neither a request that
// has just come, nor one that has just been opened in full.
func TestTypedAheadAnswersNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(asks("q1", `{"to": "bob"}`))
		for _, key := range []string{"a", "s", "d", "r", "x", "e"} {
			if s.press(key); len(s.desk.brought) > 0 || s.typing != nil || !strings.Contains(s.status, "look at it first") {
				t.Errorf("%s: %+v, %q", key, s.desk.brought, s.status)
			}
		}
		time.Sleep(499 * time.Millisecond)
		if s.press("d"); len(s.desk.brought) > 0 {
			t.Fatal("a key half a second after the request counts too early")
		}
		time.Sleep(time.Millisecond)
		if s.press("ay<enter>"); len(s.desk.brought) > 0 || !s.details {
			t.Fatalf("allowed unread: %+v", s.desk.brought)
		}
		time.Sleep(time.Second)
		if s.press("y<enter>"); len(s.desk.brought) != 1 {
			t.Errorf("brought %+v", s.desk.brought)
		}

		// A second request does not inherit the time of the first.
		s.Update(entriesMsg{entries: []approval.StoredRequest{asks("q2", `{"to": "eve"}`)}})
		if s.press("d"); len(s.desk.brought) != 1 {
			t.Error("a key answered what has just come")
		}
	})
}

// An answer is about what was shown: a request that changes, or is settled by
// others, meanwhile takes it back.
func TestAnswerIsAboutWhatWasShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := asks("q1", `{"to": "bob"}`)
		s := newScreen(one)
		s.press("v")
		time.Sleep(time.Second)
		s.press("ay")
		grown := one
		grown.Items = append([]approval.Item{}, one.Items[0], one.Items[0])
		grown.Items[1].Call = 2
		s.Update(entriesMsg{entries: []approval.StoredRequest{grown}})
		if s.press("<enter>"); s.typing != nil || len(s.desk.brought) > 0 || !strings.Contains(s.status, "look again") {
			t.Errorf("%+v, %q", s.desk.brought, s.status)
		}
		time.Sleep(time.Second)
		s.press("<enter>ay")
		s.Update(entriesMsg{})
		if s.press("<enter>"); len(s.desk.brought) > 0 || !strings.Contains(s.status, "settled") {
			t.Errorf("%+v, %q", s.desk.brought, s.status)
		}

		// So does its time.
		s.Update(entriesMsg{entries: []approval.StoredRequest{one}})
		time.Sleep(6 * time.Minute)
		s.Update(secondMsg(time.Now()))
		if s.press("d"); len(s.desk.brought) > 0 || len(s.entries) > 0 {
			t.Errorf("answered after its time: %+v", s.desk.brought)
		}
	})
}

func TestEditedArgumentsAreConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(asks("q1", `{"to": "bob"}`, func(r *approval.Request) { r.Decision.Manual = true }))
		s.press("v")
		time.Sleep(time.Second)
		s.Update(editedMsg{id: "q1", args: []byte(`{"to": "carol"}`)})
		if screen := strings.Join(s.lines(), "\n"); !strings.Contains(screen, "edited by you") || !strings.Contains(screen, "carol") || !strings.Contains(screen, "bob") {
			t.Errorf("nobody sees what the yes is to:\n%s", screen)
		}
		if s.press("y<enter>"); len(s.desk.brought) != 1 || string(s.desk.brought[0].Args) != `{"to": "carol"}` {
			t.Errorf("brought %+v", s.desk.brought)
		}
		s.Update(editedMsg{id: "q1", err: errors.New("exit status 1")})
		s.Update(editedMsg{id: "gone", args: []byte(`{}`)})
		if s.press("y<enter>"); len(s.desk.brought) != 1 || !strings.Contains(s.status, "gone: not answered") {
			t.Errorf("brought %+v, %q", s.desk.brought, s.status)
		}
	})
}

// Whatever a call holds, each line of the screen fits, is visible text, and
// looks like no other line of ours.
func TestScreenIsInert(t *testing.T) {
	t.Parallel()
	hostile := `{"to": "a\u001b[2J\u001b]52;c;aGk=\u0007\u202e\u200b\r\nWaiting: 0   approver: root", "wide": "` + strings.Repeat("漢字", 400) +
		`", "long": "` + strings.Repeat("x", 200_000) + `", "k\u001b[8m": "\u009b31m", "lines": "` + strings.Repeat(`y sends it: \n`, 300) + `"}`
	odd := func(r *approval.Request) { r.Tool, r.Decision.Manual = "se\x1b]0;x\x07nd", true }
	synctest.Test(t, func(t *testing.T) {
		for _, size := range [][2]int{{80, 24}, {50, 20}, {20, 8}, {3, 1}, {300, 100}} {
			s := newScreen(asks("q1", hostile), asks("q2", `{}`, odd), asks("q3", `{"to": "bob"}`))
			s.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			time.Sleep(time.Second)
			for _, keys := range []string{"", "v", "<down>", "a", "typed", "<esc>", "jjkk", "r" + strings.Repeat("z", 600)} {
				s.press(keys)
				if keys == "a" {
					s.Update(settledMsg{id: "q2", err: errors.New("type \x1b]0;x\x07")})
				}
				lines := s.lines()
				if len(lines) != s.height {
					t.Errorf("%v after %.5q: %d lines", size, keys, len(lines))
				}
				for _, line := range lines {
					if lipgloss.Width(line) > s.width {
						t.Errorf("%v after %.5q: %d wide: %q", size, keys, lipgloss.Width(line), line)
					}
					for _, style := range riskStyles { // the one thing that is no text
						begin, end, _ := strings.Cut(style.Render("|"), "|")
						line = strings.Replace(strings.Replace(line, begin, "", 1), end, "", 1)
					}
					if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
						t.Errorf("%v after %.5q: %q", size, keys, line)
					}
				}
			}
		}
	})
}

func TestCountdown(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{
		-time.Second: "0m00s", 59*time.Second + 600*time.Millisecond: "1m00s", 5 * time.Minute: "5m00s",
		3*time.Hour + 7*time.Minute: "3h07m", 168 * time.Hour: "7d00h", 26 * time.Hour: "1d02h",
	} {
		if got := countdown(left); got != want {
			t.Errorf("%v is shown as %s, want %s", left, got, want)
		}
	}
}

// A long line is broken at words where it can be, and loses nothing.
func TestWrappedLosesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "short", strings.Repeat("word ", 60), strings.Repeat("x", 500), "a " + strings.Repeat("漢", 200), "  indented " + strings.Repeat("yz ", 90)} {
		all := wrapped(s, 40)
		joined := all[0]
		for _, line := range all[1:] {
			joined += strings.TrimPrefix(line, "      ")
		}
		for _, line := range all {
			if lipgloss.Width(line) > 40 {
				t.Errorf("%d wide: %q", lipgloss.Width(line), line)
			}
		}
		if joined != s {
			t.Errorf("%q became %q", s, all)
		}
	}
}
