// Package approvalview shows open requests in a terminal: as lines, as rows for
// programs, and as a screen on which an approver answers them.
//
//	approval.Store ── load, at each change ──▶ screen ── keys ──▶ Settle
//
// [Watch] is the screen: a list of open requests, and the selected one in full. An
// approval takes more than one key: the whole request must have been on the screen
// for at least half a second, and a second key, a reason or the tool's name follows.
// An answer applies to what was shown when it was begun; a request that has grown
// meanwhile must be looked at again. Whether an answer counts is for Settle to say,
// and for the bridge that asked.
//
// [Lines] and [Row] format a request for people and for programs. A line with text
// from others has only visible characters and cannot be mistaken for one of ours.
package approvalview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/lines"
	"codemode-bridge/bridge/wording"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// Options are what the screen needs. All are required.
type Options struct {
	Store         approval.Store
	Approver      string // who answers, for the head of the screen
	Configuration string // one's own: requests of another say so
	// Settle settles a request with a verdict, and returns the verdict as it was signed
	// and the request as it is then. It may be called concurrently.
	Settle func(context.Context, approval.StoredRequest, approval.Verdict) (approval.Verdict, approval.StoredRequest, error)
	In     io.Reader // a terminal
	Out    io.Writer
}

// ErrInterrupted is what Watch returns if it is interrupted or its context ends.
var ErrInterrupted = errors.New("interrupted")

// Watch shows the screen until the person quits it, or ctx ends.
func Watch(ctx context.Context, o Options) error {
	w := newWatch(&desk{ctx, o}, o.Approver, o.Configuration)
	// Signals end the context, which ends the program. If it had a handler of its own,
	// nobody would receive that handler's message any more, and it would never end.
	_, err := tea.NewProgram(w, tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(o.In), tea.WithOutput(o.Out)).Run()
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		return ErrInterrupted
	}
	return err
}

// A watch is the screen: the open requests, which one is chosen, and what is being
// typed.
type watch struct {
	desk interface {
		load() tea.Msg
		wait(changed <-chan struct{}) tea.Cmd
		settle(e approval.StoredRequest, v approval.Verdict) tea.Cmd
	}
	name          string
	own           string // the id of one's own configuration
	now           time.Time
	entries       []approval.StoredRequest
	shown         map[string]time.Time // by sight: since when it is on the screen
	chosen        string               // the chosen request's id
	details       bool
	scroll        int
	width, height int
	status        string
	typing        *typing
}

// A typing is what a person types before their answer is sent: a line for each
// step. The answer is about the calls that were shown when it was begun.
type typing struct {
	id      string
	about   canon.Digest
	since   time.Time // since when all of the request is on the screen
	steps   []step    // the first is being typed
	text    []rune
	verdict approval.Verdict
}

// A step is one line of a typing.
type step struct {
	label string
	// take puts a line into the verdict. False means that the line must be typed again.
	take func(v *approval.Verdict, line string) bool
}

// why is the step that asks for a reason.
func why(label string) step {
	return step{label, func(v *approval.Verdict, line string) bool { v.Text = line; return true }}
}

// howMany is the step that asks for how many calls a yes holds in its run.
func howMany(r approval.Request) step {
	var words []string
	for _, n := range r.Counts() {
		words = append(words, strconv.Itoa(n))
	}
	return step{"for how many calls like this in this run (" + strings.Join(words, ", ") + "): ", func(v *approval.Verdict, line string) bool {
		n, err := strconv.Atoi(line)
		v.Count = n
		return err == nil && n >= len(r.Items) && n <= r.MaxCount()
	}}
}

// sure is the step that asks for a second key.
var sure = step{"y sends it: ", func(_ *approval.Verdict, line string) bool { return line == "y" || line == "yes" }}

// lookFor is how long a request must have been on the screen before a key answers
// it: keys that were meant for something else must not.
const lookFor = 500 * time.Millisecond

func newWatch(desk *desk, name, own string) *watch {
	return &watch{desk: desk, name: name, own: own, now: time.Now(), shown: map[string]time.Time{}, width: 80, height: 24}
}

func (w *watch) Init() tea.Cmd { return tea.Batch(w.desk.wait(nil), second()) }

func second() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return secondMsg(t) })
}

func (w *watch) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		w.width, w.height = max(msg.Width, 30), max(msg.Height, 8)
	case secondMsg:
		w.now = time.Time(msg)
		w.show(slices.DeleteFunc(slices.Clone(w.entries), func(e approval.StoredRequest) bool { return !e.Open(w.now) }))
		return w, second()
	case entriesMsg:
		return w, w.take(msg)
	case settledMsg:
		w.say(msg.id, msg.text)
		if msg.err != nil {
			w.say(msg.id, msg.err.Error())
		}
		return w, w.desk.load
	case editedMsg:
		e, ok := w.entry(msg.id)
		if msg.err != nil || !ok {
			w.say(msg.id, fmt.Sprintf("not answered: %v", cmp.Or(msg.err, errElsewhere)))
			return w, nil
		}
		w.begin(e, approval.Verdict{Approve: true, Args: msg.args})
	case tea.PasteMsg:
		if w.typing != nil {
			w.typing.text = append(w.typing.text, []rune(oneLine(msg.String()))...)
		}
	case tea.KeyPressMsg:
		return w, w.key(msg)
	}
	return w, nil
}

// take shows the current requests, and rings the bell for new ones.
func (w *watch) take(msg entriesMsg) tea.Cmd {
	if msg.err != nil {
		w.status = canon.Escape(msg.err.Error())
		if msg.next == nil {
			return nil
		}
		return tea.Tick(time.Second, func(time.Time) tea.Msg { return w.desk.wait(nil)() })
	}
	var cmds []tea.Cmd
	if w.show(msg.entries) {
		cmds = append(cmds, tea.Raw("\a"))
	}
	if msg.next != nil {
		cmds = append(cmds, w.desk.wait(msg.next))
	}
	return tea.Batch(cmds...)
}

// show puts requests on the screen, and reports whether one of them is new or has
// changed. If that is the one that the person is answering, the answer is dropped.
func (w *watch) show(entries []approval.StoredRequest) (news bool) {
	shown := map[string]time.Time{}
	for _, e := range entries {
		since, known := w.shown[sight(e)]
		if !known {
			since, news = time.Now(), true
		}
		shown[sight(e)] = since
	}
	w.entries, w.shown = entries, shown
	if _, ok := w.entry(w.chosen); !ok {
		if w.chosen, w.details, w.scroll = "", false, 0; len(w.entries) > 0 {
			w.chosen = w.entries[0].ID
		}
	}
	if t := w.typing; t != nil {
		switch e, ok := w.entry(t.id); {
		case !ok:
			w.typing = nil
			w.say(t.id, errElsewhere.Error())
		case e.Digest() != t.about:
			w.typing = nil
			w.say(t.id, "there is more of it now: look again")
		}
	}
	return news
}

// sight identifies a request as it is on the screen: with other calls it is another.
func sight(e approval.StoredRequest) string { return e.ID + " " + e.Digest().String() }

var errElsewhere = errors.New("it is settled, or its time is over")

// say shows a line about a request. Errors may quote what a server calls itself.
func (w *watch) say(id, text string) { w.status = id + ": " + canon.Escape(text) }

func (w *watch) entry(id string) (approval.StoredRequest, bool) {
	for _, e := range w.entries {
		if e.ID == id {
			return e, true
		}
	}
	return approval.StoredRequest{}, false
}

// key does what a key stands for.
func (w *watch) key(msg tea.KeyPressMsg) tea.Cmd {
	if msg.String() == "ctrl+c" {
		return tea.Quit
	}
	if w.typing != nil {
		return w.typed(msg)
	}
	e, ok := w.entry(w.chosen)
	switch msg.String() {
	case "q":
		return tea.Quit
	case "j", "down":
		w.move(1)
	case "k", "up":
		w.move(-1)
	case "pgdown", "space":
		w.scroll += w.height / 2
	case "pgup":
		w.scroll = max(0, w.scroll-w.height/2)
	case "v", "enter":
		w.details, w.scroll = !w.details, 0
	case "a", "f", "s", "n", "d", "r", "x", "e":
		switch {
		case !ok:
			w.status = "nothing waits for a person"
		case time.Since(w.shown[sight(e)]) < lookFor:
			w.status = e.ID + " has only just come: look at it first"
		default:
			return w.answer(e, msg.String())
		}
	}
	return nil
}

func (w *watch) move(by int) {
	for i, e := range w.entries {
		if e.ID == w.chosen {
			w.chosen = w.entries[min(max(i+by, 0), len(w.entries)-1)].ID
			w.scroll = 0
			return
		}
	}
}

// answer begins the answer that a key stands for.
func (w *watch) answer(e approval.StoredRequest, key string) tea.Cmd {
	switch key {
	case "d":
		return w.desk.settle(e, approval.Verdict{})
	case "r", "x":
		w.typing = &typing{id: e.ID, about: e.Digest(), verdict: approval.Verdict{Stop: key == "x"}, steps: []step{why("why not (the script can read it): ")}}
	case "e":
		if len(e.Items) != 1 {
			w.say(e.ID, "several calls are answered as they are")
			return nil
		}
		return edit(e)
	case "f":
		if !e.Decision.MayForget() {
			w.say(e.ID, "there is nothing to forget with a yes to this call")
			return nil
		}
		w.begin(e, approval.Verdict{Approve: true, Forget: true})
	case "s", "n":
		if len(e.Wider()) == 0 || len(e.Counts()) == 0 {
			w.say(e.ID, "a yes to this call counts only once")
			return nil
		}
		if offers := func(c approval.Choice) bool { return c.Scope == approval.SessionScope }; key == "s" && !slices.ContainsFunc(e.Choices(true), offers) {
			w.say(e.ID, "a yes to more than this call is for this run: n")
			return nil
		}
		if key == "s" {
			w.begin(e, approval.Verdict{Approve: true, Scope: approval.SessionScope})
		} else {
			w.begin(e, approval.Verdict{Approve: true, Scope: approval.RunScope})
		}
	default:
		w.begin(e, approval.Verdict{Approve: true})
	}
	return nil
}

// begin starts to ask for what a yes needs besides its key: the tool's name, a
// reason, or else a second key. Nobody may allow what they have not seen, so the
// whole request is on the screen meanwhile.
func (w *watch) begin(e approval.StoredRequest, v approval.Verdict) {
	since := time.Now()
	if w.details {
		since = w.shown[sight(e)]
	}
	w.details, w.scroll = true, 0
	var steps []step
	if e.Decision.Manual && v.Args == nil {
		steps = append(steps, step{fmt.Sprintf("type the tool's name, %s: ", canon.Escape(e.Tool)),
			func(v *approval.Verdict, line string) bool { v.Typed = line; return true }})
	}
	if e.Decision.RequireReason {
		steps = append(steps, why("why (this call needs a reason): "))
	}
	if v.Scope == approval.RunScope {
		steps = append(steps, howMany(e.Request))
	}
	if len(steps) == 0 {
		steps = append(steps, sure)
	}
	w.typing = &typing{id: e.ID, about: e.Digest(), since: since, verdict: v, steps: steps}
}

// typed takes a key of a line that is being typed.
func (w *watch) typed(msg tea.KeyPressMsg) tea.Cmd {
	t := w.typing
	switch msg.String() {
	case "pgdown":
		w.scroll += w.height / 2
	case "pgup":
		w.scroll = max(0, w.scroll-w.height/2)
	case "esc":
		w.typing = nil
		w.say(t.id, "not answered")
	case "backspace":
		if n := len(t.text); n > 0 {
			t.text = t.text[:n-1]
		}
	case "enter":
		if time.Since(t.since) < lookFor {
			t.text = nil
			w.say(t.id, "look at it first")
			return nil
		}
		line := strings.TrimSpace(string(t.text))
		t.text = nil
		if t.steps[0].take(&t.verdict, line) {
			t.steps = t.steps[1:]
		}
		if len(t.steps) > 0 {
			return nil
		}
		w.typing = nil
		e, ok := w.entry(t.id)
		if !ok {
			w.say(t.id, errElsewhere.Error())
			return nil
		}
		return w.desk.settle(e, t.verdict)
	default:
		if text := oneLine(msg.Text); len(t.text)+len(text) <= 500 {
			t.text = append(t.text, []rune(text)...)
		}
	}
	return nil
}

// oneLine drops characters that cannot be seen on a line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

// edit lets the person change the arguments in their editor. They must not see what
// is hidden in the display, so the arguments of a call with hidden or cut values
// cannot be edited here: they must all be written anew.
func edit(e approval.StoredRequest) tea.Cmd {
	failed := func(err error) tea.Cmd {
		return func() tea.Msg { return editedMsg{id: e.ID, err: err} }
	}
	if !e.Editable() {
		return failed(errors.New("some of its arguments are hidden, cut or unseen here, or several people must agree, so they cannot be edited here; approvals approve --args takes all of them"))
	}
	f, err := os.CreateTemp("", "codemode-args-*.json")
	if err != nil {
		return failed(err)
	}
	text, err := indented(e.Items[0].Shown.JSON)
	if err == nil {
		_, err = f.Write(text)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return failed(err)
	}
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	words := append(strings.Fields(editor), f.Name())
	return tea.ExecProcess(exec.Command(words[0], words[1:]...), func(err error) tea.Msg {
		args, readErr := os.ReadFile(f.Name())
		return editedMsg{e.ID, args, errors.Join(err, readErr, os.Remove(f.Name()))}
	})
}

func indented(raw json.RawMessage) ([]byte, error) {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.MarshalIndent(v, "", "  ")
}

var riskStyles = map[string]lipgloss.Style{
	"low":      lipgloss.NewStyle().Foreground(lipgloss.Color("2")),
	"medium":   lipgloss.NewStyle().Foreground(lipgloss.Color("3")),
	"high":     lipgloss.NewStyle().Foreground(lipgloss.Color("1")),
	"critical": lipgloss.NewStyle().Foreground(lipgloss.Color("15")).Background(lipgloss.Color("1")).Bold(true),
}

func (w *watch) View() tea.View {
	view := tea.NewView(strings.Join(w.lines(), "\n"))
	view.AltScreen = true
	view.WindowTitle = fmt.Sprintf("codemode approvals (%d)", len(w.entries))
	return view
}

// lines returns the screen. Every line fits, and consists of our own words and of
// text in display form.
func (w *watch) lines() []string {
	head := fmt.Sprintf("Waiting: %d   approver: %s", len(w.entries), canon.Escape(w.name))
	all := []string{w.fit(head), ""}
	if len(w.entries) == 0 {
		all = append(all, w.fit("Nothing waits for a person. Questions appear here as they come."))
	}
	room := w.height - 5 // of the list and the details
	first, most := 0, room
	if w.details {
		most = min(len(w.entries), max(3, room/4))
	}
	for i, e := range w.entries {
		if e.ID == w.chosen && i >= most {
			first = i - most + 1
		}
	}
	for i := first; i < len(w.entries) && i < first+most; i++ {
		all = append(all, w.row(w.entries[i]))
	}
	if e, ok := w.entry(w.chosen); ok && w.details {
		all = append(append(all, ""), w.all(e, max(1, w.height-len(all)-4))...)
	}
	for len(all) < w.height-2 {
		all = append(all, "")
	}
	all = append(all[:w.height-2], w.fit(w.status))
	if w.typing != nil {
		return append(all, lines.Tail(w.typing.steps[0].label+string(w.typing.text)+"_   (enter, esc)", w.width))
	}
	return append(all, w.fit(w.help()))
}

// all returns as much of a request as there is room for, from where it is scrolled
// to.
func (w *watch) all(e approval.StoredRequest, room int) []string {
	whole := Lines(e, w.own, w.now)
	if t := w.typing; t != nil && t.id == e.ID && t.verdict.Args != nil { // the yes is to these
		whole = append(AsEdited(e, t.verdict.Args), whole...)
	}
	var body []string
	for _, l := range whole {
		body = append(body, wrapped(l, w.width)...)
	}
	w.scroll = min(w.scroll, max(0, len(body)-room))
	if more := len(body) - w.scroll - room; more > 0 {
		body = body[:w.scroll+room]
		body[len(body)-1] = w.fit(fmt.Sprintf("... %d more lines: space, page up", more+1))
	}
	return body[w.scroll:]
}

// help says what the keys do, in as many words as there is room for.
func (w *watch) help() string {
	for _, text := range helps {
		if len(text) <= w.width {
			return text
		}
	}
	return helps[len(helps)-1]
}

var helps = []string{
	"a approve  f and forget  n several in this run  s for the session  e edit  d deny  r deny, why  x deny, stop  v details  j/k move  q quit",
	"a approve  f forget  n several  s session  e edit  d deny  r why  x stop  v details  j/k move  q quit",
	"a yes  n several  s session  e edit  d no  r why  x stop  v all  q quit",
	"a yes n several s session e edit d no r why x stop v all q",
	"a yes d no v all q quit",
}

// row returns the line of a request in the list.
func (w *watch) row(e approval.StoredRequest) string {
	mark := "  "
	if e.ID == w.chosen {
		mark = "> "
	}
	risk := e.Decision.Risk.String()
	rest := fmt.Sprintf(" %s  %s  %s", wording.Summary(e.Request), OrUnnamed(canon.Escape(e.Client)), e.ID)
	if asks := Elsewhere(e.Request, w.own); asks != "" {
		rest = " [" + asks + "]" + rest
	}
	end := fmt.Sprintf("  %s left", countdown(e.Until.Sub(w.now)))
	space := max(1, w.width-len(mark)-8-len(end))
	return mark + riskStyles[risk].Render(fmt.Sprintf("%-8s", strings.ToUpper(risk))) + lines.Pad(lines.Cut(rest, space), space) + end
}

// countdown writes how much time is left, in its two largest units.
func countdown(left time.Duration) string {
	s := int(max(0, left).Round(time.Second).Seconds())
	switch {
	case s >= 24*3600:
		return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
	case s >= 3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
}

func (w *watch) fit(s string) string { return lines.Cut(s, w.width) }

// wrapped breaks a line where the screen ends, after a word if one ends near
// there; nothing of it is left out.
func wrapped(s string, width int) []string { return lines.Hang(s, width, "      ") }
