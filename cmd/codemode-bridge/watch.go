package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/sqlstore"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) approvalsWatch() *cobra.Command {
	var fromStdin bool
	c := &cobra.Command{
		Use: "watch", Short: "Answer on this terminal, as questions come", Args: noArgs,
		Long: "Shows the calls that wait for a person, of every bridge with the same audit log, with the time that is\nleft, and takes your answers. Your approver's token is asked for first: a terminal alone proves nothing.",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withRequests(c.Context(), func(cfg *config.Config, store *sqlstore.Requests) (err error) {
				in, ok := a.in.(*os.File)
				if out, isFile := a.out.(*os.File); !ok || !isFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
					return &usageError{errors.New("there is no terminal here; approvals list, approve and deny work without one")}
				}
				people, who, err := a.authenticate(cfg, fromStdin)
				if err != nil {
					return err
				}
				s, err := a.openSettling(c.Context(), cfg, store)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, s.Close()) }()
				d := &watchDesk{ctx: c.Context(), store: store, settling: s, people: people, who: who}
				_, err = tea.NewProgram(newWatch(d, who.Name), tea.WithContext(c.Context()), tea.WithInput(in), tea.WithOutput(a.out)).Run()
				if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
					return errInterrupted
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&fromStdin, "token-stdin", false, "read your token from standard input, before its keys")
	return c
}

// A watchDesk is what the screen works with.
type watchDesk struct {
	ctx      context.Context
	store    approval.Store
	settling settling
	people   *approval.Approvers
	who      approval.Approver
}

// Messages of the screen.
type (
	entriesMsg struct {
		entries []approval.Entry
		next    <-chan struct{} // closed after the next change
		err     error
	}
	settledMsg struct {
		id   string
		text string
		err  error
	}
	editedMsg struct {
		id   string
		args []byte
		err  error
	}
	secondMsg time.Time
)

// load reads the open requests.
func (d *watchDesk) load() tea.Msg {
	next := d.store.Requested()
	all, err := d.store.Entries(d.ctx, approval.Filter{Open: time.Now()})
	return entriesMsg{all, next, err}
}

// wait reads them again after a change.
func (d *watchDesk) wait(next <-chan struct{}) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-next:
		case <-d.ctx.Done():
		}
		return d.load()
	}
}

// settle brings a verdict on a request.
func (d *watchDesk) settle(e approval.Entry, v approval.Verdict) tea.Cmd {
	return func() tea.Msg {
		signed, err := d.people.Sign(d.who, e.Request, v, "terminal", time.Now())
		if err != nil {
			return settledMsg{id: e.ID, err: err}
		}
		now, err := d.settling.desk.Settle(d.ctx, e.ID, e.Digest(), signed)
		if err != nil {
			return settledMsg{id: e.ID, err: err}
		}
		text := answered(signed)
		if now.Verdict == nil {
			text += ", and still needed: " + now.Missing()
		}
		return settledMsg{id: e.ID, text: text}
	}
}

// A watch is the screen: the open requests, one of them chosen, and what is
// being typed.
type watch struct {
	desk interface {
		load() tea.Msg
		wait(next <-chan struct{}) tea.Cmd
		settle(e approval.Entry, v approval.Verdict) tea.Cmd
	}
	name          string
	now           time.Time
	entries       []approval.Entry
	shown         map[string]time.Time // since when each request is on the screen
	chosen        string               // its id
	details       bool
	scroll        int
	width, height int
	status        string
	typing        *typing
}

// A typing is a line that a person writes before their answer counts.
type typing struct {
	id      string
	label   string
	text    []rune
	verdict approval.Verdict
	then    func(v *approval.Verdict, text string) *typing // what comes next; nil: the answer
}

// lookFor is how long a request must have been on the screen before a key
// answers it: what was typed for something else does not.
const lookFor = 500 * time.Millisecond

func newWatch(desk *watchDesk, name string) *watch {
	return &watch{desk: desk, name: name, now: time.Now(), shown: map[string]time.Time{}, width: 80, height: 24}
}

func (w *watch) Init() tea.Cmd { return tea.Batch(w.desk.load, second()) }

func second() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return secondMsg(t) })
}

func (w *watch) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		w.width, w.height = max(msg.Width, 20), max(msg.Height, 8)
	case secondMsg:
		w.now = time.Time(msg)
		return w, second()
	case entriesMsg:
		return w, w.take(msg)
	case settledMsg:
		w.status = msg.id + ": " + msg.text
		if msg.err != nil {
			w.status = msg.id + ": " + msg.err.Error()
		}
		return w, w.desk.load
	case editedMsg:
		e, ok := w.entry(msg.id)
		if msg.err != nil || !ok {
			w.status = fmt.Sprintf("%s: nothing was sent: %v", msg.id, msg.err)
			return w, nil
		}
		return w, w.begin(e, approval.Verdict{Approve: true, Args: msg.args})
	case tea.PasteMsg:
		if w.typing != nil {
			w.typing.text = append(w.typing.text, []rune(oneLine(msg.String()))...)
		}
	case tea.KeyPressMsg:
		return w, w.key(msg)
	}
	return w, nil
}

// take shows the requests of this moment.
func (w *watch) take(msg entriesMsg) tea.Cmd {
	if msg.err != nil {
		w.status = msg.err.Error()
		return tea.Tick(time.Second, func(time.Time) tea.Msg { return w.desk.load() })
	}
	now := time.Now()
	shown := map[string]time.Time{}
	var bell tea.Cmd
	for _, e := range msg.entries {
		since, known := w.shown[e.ID+e.Digest().String()]
		if !known {
			since = now
			bell = tea.Raw("\a")
		}
		shown[e.ID+e.Digest().String()] = since
	}
	w.entries, w.shown = msg.entries, shown
	if _, ok := w.entry(w.chosen); !ok {
		if w.chosen, w.details, w.scroll = "", false, 0; len(w.entries) > 0 {
			w.chosen = w.entries[0].ID
		}
		if w.typing != nil {
			w.typing, w.status = nil, w.typing.id+": it was settled elsewhere"
		}
	}
	return tea.Batch(bell, w.desk.wait(msg.next))
}

func (w *watch) entry(id string) (approval.Entry, bool) {
	for _, e := range w.entries {
		if e.ID == id {
			return e, true
		}
	}
	return approval.Entry{}, false
}

// key does what a key says.
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
	case "a", "s", "d", "r", "x", "e":
		switch {
		case !ok:
			w.status = "nothing waits for a person"
		case time.Since(w.shown[e.ID+e.Digest().String()]) < lookFor:
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
func (w *watch) answer(e approval.Entry, key string) tea.Cmd {
	switch key {
	case "d":
		return w.desk.settle(e, approval.Verdict{})
	case "r", "x":
		label := "why not (the script can read it): "
		w.typing = &typing{id: e.ID, label: label, verdict: approval.Verdict{Stop: key == "x"}, then: reasonThen}
		return nil
	case "e":
		if len(e.Items) != 1 {
			w.status = e.ID + " is about several calls: they are answered as they are"
			return nil
		}
		return edit(e)
	case "s":
		if !e.Decision.Remember {
			w.status = fmt.Sprintf("%s: a call of %s risk is allowed once only", e.ID, e.Decision.Risk)
			return nil
		}
		return w.begin(e, approval.Verdict{Approve: true, Scope: approval.Same})
	default:
		return w.begin(e, approval.Verdict{Approve: true})
	}
}

// begin takes a yes through what it needs beside a key: the tool's name, a
// reason, or at least a second key.
func (w *watch) begin(e approval.Entry, v approval.Verdict) tea.Cmd {
	w.details = true // nobody allows what they have not seen
	t := &typing{id: e.ID, verdict: v, label: "y sends it: "}
	t.then = func(_ *approval.Verdict, text string) *typing {
		if text == "y" || text == "yes" {
			return nil
		}
		return t
	}
	if e.Decision.RequireReason {
		t.label, t.then = "why (this call needs a reason): ", reasonThen
	}
	if e.Decision.Manual && v.Args == nil {
		after := t
		t = &typing{id: e.ID, verdict: v, label: fmt.Sprintf("type the tool's name, %s: ", e.Tool)}
		t.then = func(v *approval.Verdict, text string) *typing {
			v.Typed = text
			if !e.Decision.RequireReason {
				return nil
			}
			after.verdict = *v
			return after
		}
	}
	w.typing = t
	return nil
}

func reasonThen(v *approval.Verdict, text string) *typing {
	v.Text = text
	return nil
}

// typed takes a key of a line that is being typed.
func (w *watch) typed(msg tea.KeyPressMsg) tea.Cmd {
	t := w.typing
	switch msg.String() {
	case "esc":
		w.typing, w.status = nil, t.id+": not answered"
	case "backspace":
		if n := len(t.text); n > 0 {
			t.text = t.text[:n-1]
		}
	case "enter":
		next := t.then(&t.verdict, strings.TrimSpace(string(t.text)))
		if next != nil {
			if next == t {
				t.text = nil
			}
			w.typing = next
			return nil
		}
		w.typing = nil
		e, ok := w.entry(t.id)
		if !ok {
			w.status = t.id + ": it was settled elsewhere"
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

// oneLine keeps what can stand on a line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

// edit lets the person change the arguments in their editor. What is hidden in
// the display is not theirs to see, and so a call with hidden or cut values is
// edited on the page, by whoever writes all of it anew.
func edit(e approval.Entry) tea.Cmd {
	failed := func(err error) tea.Cmd {
		return func() tea.Msg { return editedMsg{id: e.ID, err: err} }
	}
	shown := e.Items[0].Shown
	if shown.Hidden+shown.Cut > 0 {
		return failed(errors.New("some of its arguments are hidden or cut, so they cannot be edited here; approvals approve --args takes all of them"))
	}
	f, err := os.CreateTemp("", "codemode-args-*.json")
	if err != nil {
		return failed(err)
	}
	text, err := indented(shown.JSON)
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

// lines are the screen: every line of it fits, and consists of what the
// renderer of requests let through and of our own words.
func (w *watch) lines() []string {
	head := fmt.Sprintf("Waiting: %d   approver: %s", len(w.entries), w.name)
	lines := []string{w.fit(head), ""}
	if len(w.entries) == 0 {
		lines = append(lines, w.fit("Nothing waits for a person. Questions appear here as they come."))
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
		lines = append(lines, w.row(w.entries[i]))
	}
	if e, ok := w.entry(w.chosen); ok && w.details {
		lines = append(lines, "")
		var body []string
		for _, l := range requestLines(e, w.now) {
			body = append(body, wrapped(l, w.width)...)
		}
		free := max(1, w.height-len(lines)-3)
		w.scroll = min(w.scroll, max(0, len(body)-free))
		more := len(body) - w.scroll - free
		if more > 0 {
			body = body[:w.scroll+free]
			body[len(body)-1] = w.fit(fmt.Sprintf("... %d more lines: space, page up", more+1))
		}
		lines = append(lines, body[w.scroll:]...)
	}
	for len(lines) < w.height-2 {
		lines = append(lines, "")
	}
	lines = append(lines[:w.height-2], w.fit(w.status))
	help := "j/k move  v details  a approve  s for the session  e edit  d deny  r deny, why  x deny, stop  q quit"
	if w.typing != nil {
		help = w.typing.label + string(w.typing.text) + "_   (enter, esc)"
		return append(lines, w.tail(help))
	}
	return append(lines, w.fit(help))
}

// row is a request in the list.
func (w *watch) row(e approval.Entry) string {
	mark := "  "
	if e.ID == w.chosen {
		mark = "> "
	}
	risk := e.Decision.Risk.String()
	left := max(0, e.Until.Sub(w.now)).Round(time.Second)
	rest := fmt.Sprintf(" %s  %s  %s", approval.Summary(e.Request), orNobody(approval.Describe(e.Request, approval.DescribeOptions{}).Client), e.ID)
	end := fmt.Sprintf("  %s left", left)
	space := w.width - len(mark) - 8 - len(end)
	return mark + riskStyles[risk].Render(fmt.Sprintf("%-8s", strings.ToUpper(risk))) + padded(cutTo(rest, space), space) + end
}

func (w *watch) fit(s string) string { return cutTo(s, w.width) }

// tail keeps the end of a line that is too long: where one types.
func (w *watch) tail(s string) string {
	for runes := []rune(s); lipgloss.Width(s) > w.width; s = string(runes) {
		runes = runes[1:]
	}
	return s
}

func cutTo(s string, width int) string {
	for runes := []rune(s); lipgloss.Width(s) > width && len(runes) > 0; s = string(runes) {
		runes = runes[:len(runes)-1]
	}
	return s
}

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-lipgloss.Width(s)))
}

// wrapped breaks a line where the screen ends; nothing of it is left out.
func wrapped(s string, width int) []string {
	var all []string
	for {
		head := cutTo(s, width)
		if head == "" || head == s {
			return append(all, s)
		}
		all = append(all, head)
		s = "      " + s[len(head):]
	}
}
