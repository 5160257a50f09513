// Package enrollcmd has the command that enrols this machine at a centre, and what a
// bridge does for that: it sends its records there, and keeps those that were not sent.
package enrollcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/enrolment"
	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/bridge/filelock"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Laptop is what the command needs of the program.
type Laptop struct {
	*cli.Console
	Version string

	// Load reads the configuration in force, with the secrets that the store names.
	Load func(ctx context.Context) (*config.Config, error)
	Open func(ctx context.Context, place config.Audit, readOnly bool) (ledger.Book, error)
	// Edit changes the configuration file in one step, or not at all.
	Edit func(edit func(text []byte, cfg *config.Config) ([]byte, error)) error
}

// Kept returns the log that Keeping was given.
func Kept(book ledger.Book) ledger.Book {
	for {
		k, ok := book.(interface{ Unwrap() ledger.Book })
		if !ok {
			return book
		}
		book = k.Unwrap()
	}
}

// Keeping makes pruning leave the rows that the centre has not confirmed.
func Keeping(book ledger.Book, place config.Audit) ledger.Book {
	return enrolment.Keeping(book, enrolment.FolderOf(place.Path))
}

// Send sends the records of a bridge to the centre at which the machine is enrolled, until
// ctx ends.
func Send(ctx context.Context, store ledger.Store, place config.Audit, version string, log *slog.Logger) {
	linked, ok := store.(enrolment.Log)
	if !ok || place.Path == "" {
		return // no record is kept
	}
	enrolment.NewSender(enrolment.Options{Folder: enrolment.FolderOf(place.Path), Log: linked, Version: version, Logger: log.With("part", "centre")}).Run(ctx)
}

// Command is the command "enroll".
func (l *Laptop) Command() *cobra.Command {
	var code string
	var status, leave bool
	c := &cobra.Command{
		Use: "enroll [address]", Short: "Enrol this machine at a centre, which gets its records from then on", Args: cobra.MaximumNArgs(1),
		Long: "Enrols this machine at a centre: a codemode-bridge serve that your administrator runs. It asks for the code that\n" +
			"codemode-bridge laptops invite printed there, makes a key that stays here, and pins the key of the centre.\n" +
			"From then on every bridge of this machine sends the rows of its audit log, in order; what cannot be sent\nis kept, and sent later. Servers, their secrets and their answers stay here.",
		Example: `  codemode-bridge enroll https://centre.example.com
  codemode-bridge enroll --status
  codemode-bridge enroll --leave`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case status && leave, (status || leave) && (len(args) > 0 || code != ""), !status && !leave && len(args) == 0:
				return &cli.UsageError{Err: errors.New("enroll takes the address of a centre, or --status, or --leave")}
			case status:
				return l.with(c.Context(), true, l.status)
			case leave:
				return l.with(c.Context(), false, l.leave)
			}
			return l.with(c.Context(), false, func(ctx context.Context, f enrolment.Folder, book ledger.Book) error {
				return l.enroll(ctx, f, book, args[0], code)
			})
		},
	}
	c.Flags().StringVar(&code, "code", "", "the `code`; without it, it is asked for")
	c.Flags().BoolVar(&status, "status", false, "show where this machine is enrolled, and what was sent")
	c.Flags().BoolVar(&leave, "leave", false, "end the enrolment; nothing of the centre is needed for that")
	l.JSONFlag(c)
	return c
}

// with opens the audit log. Reading, it is nil if there is none.
func (l *Laptop) with(ctx context.Context, reads bool, do func(context.Context, enrolment.Folder, ledger.Book) error) (err error) {
	cfg, err := l.Load(ctx)
	if err != nil {
		return err
	}
	if !cfg.Audit.Enabled || cfg.Audit.Path == "" {
		return &cli.SetupError{Err: errors.New("no record is kept here that could be sent"), Do: "remove audit.enabled from the configuration"}
	}
	f := enrolment.FolderOf(cfg.Audit.Path)
	if _, no := f.Enrolment(); reads && errors.Is(no, enrolment.ErrNotEnrolled) {
		return do(ctx, f, nil)
	}
	book, err := l.Open(ctx, cfg.Audit, reads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	return do(ctx, f, book)
}

// goesUp says what a centre gets.
const goesUp = `%s will get, from now on, every row of this machine's audit log:
  each run with its script, each call with server, tool and arguments, who was asked and what they said, and how it ended
  as the log has them: secrets are hidden in it, and long values cut (codemode-bridge audit query shows it)
It does not get the answers of servers, files, the configuration, secrets or logins. Servers stay on this machine.
`

func (l *Laptop) enroll(ctx context.Context, f enrolment.Folder, book ledger.Book, address, code string) error {
	address, err := enrolment.Address(address)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	log, ok := book.(enrolment.Log)
	if !ok {
		return errors.New("this store's rows cannot be sent")
	}
	old, err := f.Enrolment()
	if err != nil && !errors.Is(err, enrolment.ErrNotEnrolled) {
		return err
	}
	if err == nil && old.Centre != address {
		return &cli.SetupError{Err: fmt.Errorf("this machine is enrolled at %s, as %s", old.Centre, old.Laptop), Do: "codemode-bridge enroll --leave ends that"}
	}
	fmt.Fprintf(l.Err, goesUp, address)
	if code == "" {
		if code, err = l.ReadSecret("the code of codemode-bridge laptops invite: "); err != nil {
			return err
		}
	}
	if _, _, err := wire.ParseCode(code); err != nil {
		return &cli.UsageError{Err: err}
	}
	key, err := f.Key(true)
	if err != nil {
		return err
	}
	from, err := start(ctx, log, old)
	if err != nil {
		return err
	}
	e, err := enrolment.Enrol(ctx, address, code, key, from, l.Version, nil)
	if err != nil {
		return fmt.Errorf("enrolling this machine: %w", err)
	}
	if err := f.Save(e); err != nil {
		return err
	}
	if err := record(ctx, book, "enrolled", e, ""); err != nil {
		return err
	}
	included := false
	if e.PolicyKey != "" {
		included = l.include(e)
	}
	if l.JSON {
		return l.PrintJSON(map[string]any{"policy_included": included, "centre": e.Centre, "centre_key": wire.Fingerprint(e.CentreKey), "laptop": e.Laptop, "person": e.Person})
	}
	fmt.Fprintf(l.Out, "this machine is enrolled at %s as %s, of %s; the centre's key is %s\n", e.Centre, e.Laptop, e.Person, wire.Fingerprint(e.CentreKey))
	err = enrolment.NewSender(enrolment.Options{Folder: f, Log: log, Version: l.Version}).Once(ctx)
	if err != nil && !errors.Is(err, filelock.ErrHeld) {
		fmt.Fprintf(l.Err, "nothing was sent yet: %v\n", err)
	}
	l.Told("bridges that run send from now on; codemode-bridge enroll --status says how far they are")
	return nil
}

// include makes the configuration include the centre's policy, as far as the person agrees.
// The machine is enrolled either way.
func (l *Laptop) include(e enrolment.Enrolment) bool {
	entry := struct {
		URL string `json:"url"`
		Key string `json:"key"`
	}{e.Centre + wire.PathPolicy, e.PolicyKey}
	err := l.Edit(func(text []byte, cfg *config.Config) ([]byte, error) {
		quoted, err := json.Marshal(entry.URL)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(text, quoted) {
			return text, nil
		}
		next, err := jsonc.Insert(text, "/include/-", entry)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(l.Err, "the centre has a policy for laptops, which this configuration will include:")
		fmt.Fprintln(l.Err, strings.Join(setup.Diff(l.HomeShort(cfg.File), text, next, setup.Secrets(text)), "\n"))
		if l.HasPerson() {
			agreed, err := l.Agree("include it?")
			if err != nil || !agreed {
				return nil, cmp.Or(err, cli.ErrNothingDone)
			}
		}
		return next, nil
	})
	if err != nil {
		fmt.Fprintf(l.Err, "the configuration does not include the centre's policy (%s, key %s): %v\n", entry.URL, entry.Key, err)
	}
	return err == nil
}

// start returns the row after which rows are sent: the last one, or, if the machine is
// enrolled again, the one after which they were sent from the first.
func start(ctx context.Context, log enrolment.Log, old enrolment.Enrolment) (wire.Head, error) {
	last, hash, err := log.Head(ctx)
	if err != nil {
		return wire.Head{}, err
	}
	store, links, err := log.LinksAfter(ctx, old.From.Seq, 1, 1)
	if err != nil {
		return wire.Head{}, err
	}
	if old.Laptop != "" && store == old.From.Store && len(links) > 0 && links[0].Seq == old.From.Seq+1 &&
		ledger.HashRow(store, links[0].Seq, ledger.Hash(old.From.Hash), links[0].Body) == links[0].Hash {
		return old.From, nil
	}
	return wire.Head{Store: store, Seq: last, Hash: wire.Hash(hash)}, nil
}

// record notes in the machine's own log that it was enrolled, or has left.
func record(ctx context.Context, book ledger.Book, what string, e enrolment.Enrolment, why string) error {
	detail := map[string]string{"what": what, "laptop": e.Laptop, "person": e.Person, "centre": e.Centre, "centre_key": wire.Fingerprint(e.CentreKey)}
	if why != "" {
		detail["why"] = why
	}
	return book.Record(ctx, ledger.Record{Event: ledger.Laptop, Time: time.Now(), Outcome: ledger.Done, Durable: true, Detail: ledger.Detail(detail)})
}

func (l *Laptop) leave(ctx context.Context, f enrolment.Folder, book ledger.Book) error {
	e, err := f.Enrolment()
	if err != nil {
		if errors.Is(err, enrolment.ErrNotEnrolled) {
			fmt.Fprintln(l.Err, enrolment.ErrNotEnrolled)
			return nil
		}
		return err
	}
	var untold error
	key, err := f.Key(false)
	if err != nil {
		untold = err
	} else {
		asked, cancel := context.WithTimeout(ctx, 10*time.Second)
		untold = enrolment.NewClient(e, key, nil).Leave(asked)
		cancel()
	}
	why := ""
	if untold != nil {
		why = "the centre was not told: " + untold.Error()
	}
	if err := record(ctx, book, "left", e, why); err != nil {
		return err
	}
	if err := f.Leave(); err != nil {
		return err
	}
	fmt.Fprintf(l.Out, "this machine is enrolled at %s no more; nothing is sent from now on\n", e.Centre)
	var refusal *wire.Refusal
	switch {
	case untold == nil:
	case errors.As(untold, &refusal) && refusal.Code == wire.Revoked: // it has ended there already
		fmt.Fprintf(l.Err, "the centre had ended it before: %v\n", untold)
	default:
		fmt.Fprintf(l.Err, "the centre could not be told (%v); its administrator ends it there with: codemode-bridge laptops revoke %s\n", untold, e.Laptop)
	}
	return nil
}

// standing is what --status --json prints.
type standing struct {
	Enrolled  bool       `json:"enrolled"`
	Centre    string     `json:"centre,omitempty"`
	CentreKey string     `json:"centre_key,omitempty"`
	Laptop    string     `json:"laptop,omitempty"`
	Person    string     `json:"person,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Sent      int64      `json:"sent"`    // the last row that the centre has
	Waiting   int64      `json:"waiting"` // rows that it has not
	Reached   *time.Time `json:"reached,omitempty"`
	Problem   string     `json:"problem,omitempty"`
	Reason    string     `json:"reason,omitempty"` // the centre's, if it refused
	Skew      string     `json:"clock_off,omitempty"`
}

func (l *Laptop) status(ctx context.Context, f enrolment.Folder, book ledger.Book) error {
	if book == nil {
		if l.JSON {
			return l.PrintJSON(standing{})
		}
		_, err := fmt.Fprintln(l.Out, enrolment.ErrNotEnrolled)
		return err
	}
	e, sent, waiting, err := stands(ctx, f, book)
	if err != nil {
		return err
	}
	is := standing{Enrolled: true, Centre: e.Centre, CentreKey: wire.Fingerprint(e.CentreKey), Laptop: e.Laptop, Person: e.Person, Since: &e.Enrolled,
		Sent: sent.Head.Seq, Waiting: waiting, Problem: sent.Problem, Reason: string(sent.Reason)}
	if !sent.Reached.IsZero() {
		is.Reached = &sent.Reached
	}
	if sent.Skew != 0 {
		is.Skew = sent.Skew.Round(time.Second).String()
	}
	if l.JSON {
		return l.PrintJSON(is)
	}
	fmt.Fprintf(l.Out, "enrolled at   %s, key %s\n", is.Centre, is.CentreKey)
	fmt.Fprintf(l.Out, "as            %s, of %s, since %s\n", is.Laptop, is.Person, e.Enrolled.Local().Format(time.DateTime))
	switch {
	case is.Reached == nil && is.Problem == "":
		fmt.Fprintln(l.Out, "connected     not yet: a bridge that runs sends (codemode-bridge run, or serve)")
	case is.Reached == nil:
		fmt.Fprintln(l.Out, "connected     never")
	default:
		fmt.Fprintf(l.Out, "connected     last %s\n", is.Reached.Local().Format(time.DateTime))
	}
	fmt.Fprintf(l.Out, "sent          up to row %d\n", is.Sent)
	fmt.Fprintf(l.Out, "waiting       %s\n", cli.Count(int(is.Waiting), "row"))
	if is.Problem != "" {
		fmt.Fprintf(l.Out, "problem       %s (%s)\n", audit.Shown(is.Problem), sent.Tried.Local().Format(time.DateTime))
	}
	if is.Skew != "" {
		fmt.Fprintf(l.Out, "clock         the centre's is %s ahead of this machine's\n", is.Skew)
	}
	return nil
}

func stands(ctx context.Context, f enrolment.Folder, book ledger.Book) (e enrolment.Enrolment, sent enrolment.Sent, waiting int64, err error) {
	if e, err = f.Enrolment(); err != nil {
		return e, sent, 0, err
	}
	if sent, err = f.Sent(); err != nil {
		return e, sent, 0, err
	}
	log, ok := book.(enrolment.Log)
	if !ok {
		return e, sent, 0, errors.New("this store's rows cannot be sent")
	}
	waiting, err = enrolment.Waiting(ctx, log, sent.Head)
	return e, sent, waiting, err
}

// A State is how it stands with the centre.
type State struct {
	Centre        string // empty: this machine is enrolled at none
	Last, Waiting int64
	Reached       time.Time
	Problem       string
	Final         bool // only a person can end the problem
	Skew          time.Duration
}

// Look says how it stands with the centre.
func (l *Laptop) Look(ctx context.Context, place config.Audit) (is State, err error) {
	f := enrolment.FolderOf(place.Path)
	if _, err := f.Enrolment(); errors.Is(err, enrolment.ErrNotEnrolled) {
		return is, nil
	}
	book, err := l.Open(ctx, place, true)
	if err != nil {
		return is, err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	e, sent, waiting, err := stands(ctx, f, book)
	if err != nil {
		return is, err
	}
	final := (&wire.Refusal{Code: sent.Reason}).Final()
	return State{Centre: e.Centre, Last: sent.Head.Seq, Waiting: waiting, Reached: sent.Reached, Problem: sent.Problem, Final: final, Skew: sent.Skew}, nil
}
