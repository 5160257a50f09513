package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/alive"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/sqlstore"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// approvalsCommand answers the questions of every bridge with the same audit
// log, whether it serves a page or not.
func approvalsCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "approvals", Short: "The calls that wait for a person, and their answers"}
	group.AddCommand(approvalsList(con), approvalsShow(con), approvalsApprove(con), approvalsDeny(con), approvalsWatch(con), approvalsOpen(con))
	return group
}

// openRequestStore opens the requests of the configuration's bridges. There may be
// none yet.
func openRequestStore(ctx context.Context, con *console) (*config.Config, *sqlstore.Requests, error) {
	cfg, err := con.load()
	if err != nil {
		return nil, nil, err
	}
	if cfg, err = inForce(ctx, con, cfg); err != nil {
		return nil, nil, err
	}
	if !cfg.Audit.Enabled {
		return nil, nil, &configError{errors.New("the requests are in the bridge's memory: audit.enabled is false"), "answer them at the client or on the bridge's page"}
	}
	if err := mustHavePath(cfg.Audit); err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(cfg.Audit.Requests()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &configError{errNeverAsked, "a bridge that runs with this configuration puts its questions into " + cfg.Audit.Requests()}
	}
	store, err := sqlstore.OpenRequests(ctx, cfg.Audit.Requests())
	if err != nil {
		return nil, nil, err
	}
	return cfg, store, nil
}

// errNeverAsked is what there is to say where no bridge has asked anything yet.
var errNeverAsked = errors.New("nothing was ever asked here")

// readRequests is withRequests for lists, which are empty where nothing was
// ever asked. Own is the id of the configuration.
func readRequests(ctx context.Context, con *console, do func(broker *approval.Broker, own string) error) error {
	err := withRequests(ctx, con, func(cfg *config.Config, store *sqlstore.Requests) error {
		gone := func(bridge string) bool { return alive.Gone(bridgesOf(cfg.Audit), bridge) }
		return do(approval.New(approval.Options{Store: store, Gone: gone}), realmOf(cfg).Configuration)
	})
	if errors.Is(err, errNeverAsked) {
		return do(approval.New(approval.Options{}), "")
	}
	return err
}

// withRequests opens the requests, does something with them, and closes them.
func withRequests(ctx context.Context, con *console, do func(*config.Config, *sqlstore.Requests) error) (err error) {
	cfg, store, err := openRequestStore(ctx, con)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(cfg, store)
}

// A requestRow is a request in a list, as --json prints it.
type requestRow struct {
	ID string `json:"id"`
	approval.Description
	Asked   time.Time         `json:"asked"`
	Ends    time.Time         `json:"ends"`
	Verdict *approval.Verdict `json:"verdict,omitempty"`
	// Unjudged are answers that wait for the bridge that asked to judge them.
	Unjudged []approval.Verdict `json:"unjudged,omitempty"`
	// Outcomes are the calls of a settled request, and Edited how its call was
	// changed by whoever allowed it.
	Outcomes []callOutcome        `json:"outcomes,omitempty"`
	Edited   *approval.EditedCall `json:"edited,omitempty"`
}

// A callOutcome is how one call was answered, and what became of it.
type callOutcome struct {
	Call   int    `json:"call"`
	Answer string `json:"answer"`          // approved, denied or unanswered
	State  string `json:"state,omitempty"` // sending, done, failed, refused or unknown; empty if the log was not read or does not know
	Error  string `json:"error,omitempty"`
}

// newRequestRow describes an entry; known is what the log has of its run's calls.
func newRequestRow(e approval.Entry, known map[int]ledger.CallState) requestRow {
	row := requestRow{ID: e.ID, Description: approval.Describe(e.Request, approval.DescribeOptions{Votes: e.Votes}), Asked: e.Asked, Ends: e.Until, Unjudged: e.Unjudged(), Edited: e.EditedCall()}
	if e.Verdict != nil {
		v := e.Verdict.Shown()
		row.Verdict, row.Outcomes = &v, outcomes(e, known)
	}
	return row
}

// outcomes are the calls of a settled request.
func outcomes(e approval.Entry, known map[int]ledger.CallState) []callOutcome {
	var all []callOutcome
	for _, item := range e.Items {
		is := known[item.Call]
		all = append(all, callOutcome{item.Call, e.Verdict.Answer(item.Call), is.State, audit.Shown(is.Error)})
	}
	return all
}

// callStates reads from the audit log what became of a settled request's calls;
// nil where there is no log.
func callStates(ctx context.Context, con *console, cfg *config.Config, e approval.Entry) (states map[int]ledger.CallState, err error) {
	if _, missing := os.Stat(cfg.Audit.Path); e.Verdict == nil || missing != nil {
		return nil, nil
	}
	log, err := openStore(ctx, cfg.Audit, true, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return ledger.CallStates(ctx, log, e.Run)
}

func approvalsList(con *console) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "list", Short: "List the calls that wait for a person", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return readRequests(c.Context(), con, func(broker *approval.Broker, own string) error {
				f := approval.Filter{Open: time.Now()}
				if all {
					f = approval.Filter{Newest: 200}
				}
				entries, err := broker.Entries(c.Context(), f)
				if err != nil {
					return err
				}
				rows := []requestRow{}
				for _, e := range entries {
					rows = append(rows, newRequestRow(e, nil))
				}
				if con.json {
					return con.printJSON(rows)
				}
				if len(rows) == 0 {
					fmt.Fprintln(con.err, "nothing waits for a person")
					return nil
				}
				table := [][]string{{"id", "risk", "what", "client", "answer by", "configuration"}}
				for i, r := range rows {
					state := r.Until
					if v := entries[i].Verdict; v != nil {
						state = verdictWords(entries[i].Request, *v)
					}
					table = append(table, []string{r.ID, r.Risk, r.Summary, r.Client, state, elsewhere(entries[i].Request, own)})
				}
				return con.table(withoutEmpty(table))
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also those that were answered, the newest 200")
	con.jsonFlag(c)
	return c
}

// withoutEmpty drops the last column of a table if it says nothing.
func withoutEmpty(table [][]string) [][]string {
	last := len(table[0]) - 1
	if slices.ContainsFunc(table[1:], func(row []string) bool { return row[last] != "" }) {
		return table
	}
	for i, row := range table {
		table[i] = row[:last]
	}
	return table
}

func approvalsShow(con *console) *cobra.Command {
	c := &cobra.Command{
		Use: "show id", Short: "Print one request: everything that would be sent, and why it is asked", Args: minArgs(1), ValidArgsFunction: con.completeRequest,
		RunE: func(c *cobra.Command, ids []string) error {
			return withRequests(c.Context(), con, func(cfg *config.Config, store *sqlstore.Requests) error {
				for _, id := range ids {
					e, err := findRequest(c.Context(), store, id)
					if err != nil {
						return err
					}
					known, err := callStates(c.Context(), con, cfg, e)
					if err != nil {
						return err
					}
					if con.json {
						if err := con.printJSON(newRequestRow(e, known)); err != nil {
							return err
						}
						continue
					}
					lines := requestLines(e, realmOf(cfg).Configuration, time.Now())
					if e.Verdict != nil {
						for _, o := range outcomes(e, known) {
							lines = append(lines, o.line())
						}
					}
					fmt.Fprintln(con.out, strings.Join(lines, "\n"))
				}
				return nil
			})
		},
	}
	con.jsonFlag(c)
	return c
}

// requestLines are a request with all of its arguments, for a terminal. Own is
// the id of one's configuration.
func requestLines(e approval.Entry, own string, now time.Time) []string {
	d := approval.Describe(e.Request, approval.DescribeOptions{Votes: e.Votes})
	lines := []string{
		fmt.Sprintf("%s  %s  risk %s", e.ID, d.Headline, strings.ToUpper(d.Risk)),
		"  " + d.RiskSays,
		fmt.Sprintf("  tool     %s (server %s)", d.Tool, d.Server),
	}
	if asks := elsewhere(e.Request, own); asks != "" {
		lines = append(lines, "  asked by "+asks+": its bridge judges whether an answer counts, by its own approvers")
	}
	for _, call := range d.Calls {
		if len(d.Calls) > 1 {
			lines = append(lines, fmt.Sprintf("  call %d", call.Number))
		}
		lines = append(lines, fieldLines(call.Fields)...)
		for _, s := range call.Sources {
			lines = append(lines, "  ! "+s)
		}
	}
	lines = append(lines, editedLines(e)...)
	for _, w := range d.Warnings {
		lines = append(lines, "  ! "+w)
	}
	lines = append(lines, "  why      "+strings.Join(d.Why, "; "), "  a yes    "+d.Covers)
	for _, n := range d.Needs {
		lines = append(lines, "  needs    "+n)
	}
	if d.Missing != "" {
		lines = append(lines, "  so far   "+d.Missing)
	}
	if len(d.Difference) > 0 {
		lines = append(lines, "  how the tool differs from what was accepted:")
		for _, line := range d.Difference {
			lines = append(lines, "    "+line)
		}
	}
	if len(d.Checks) > 0 {
		lines = append(lines, "  checks   "+strings.Join(d.Checks, ", "))
	}
	lines = append(lines, fmt.Sprintf("  run      %s of %s, %s before", d.Run, orNobody(d.Client), count(d.Done, "call")))
	if d.Folder != "" {
		lines = append(lines, "  folder   "+d.Folder)
	}
	if len(d.Model.Calls) > 0 {
		lines = append(lines, "  written by the model, unchecked: its script has "+strings.Join(d.Model.Calls, ", "))
	}
	if d.Model.Says != "" {
		lines = append(lines, "  written by a model, unchecked: of long arguments it says: "+d.Model.Says)
	}
	for _, v := range e.Unjudged() {
		lines = append(lines, "  brought  "+unjudgedWords(v))
	}
	switch {
	case e.Verdict != nil:
		lines = append(lines, "  settled  "+verdictWords(e.Request, *e.Verdict))
	case !e.Open(now):
		lines = append(lines, "  settled  nobody answered in time: not sent")
	default:
		lines = append(lines, fmt.Sprintf("  unanswered at %s = not sent", d.Until))
	}
	return lines
}

// editedLines say what whoever allowed a call put in the place of its arguments.
func editedLines(e approval.Entry) []string {
	edited := e.EditedCall()
	switch {
	case edited == nil:
		return nil
	case edited.Args == nil: // an older release answered it
		return []string{"  edited by " + edited.By + ", who was asked about other arguments: audit show has those that took their place"}
	}
	lines := []string{"  edited by " + edited.By + ": these arguments take the place of those that were asked about:"}
	return append(lines, fieldLines(edited.Fields)...)
}

// asEdited says what somebody is about to put in the place of a call's arguments.
func asEdited(e approval.Entry, args json.RawMessage) []string {
	e.Verdict = &approval.Verdict{Approve: true, Args: args, By: "you"}
	return editedLines(e)
}

// fieldLines are arguments in full.
func fieldLines(fields []approval.Field) (lines []string) {
	for _, f := range fields {
		if len(f.Lines) <= 1 {
			lines = append(lines, fmt.Sprintf("  %-12s %s", f.Name, strings.Join(f.Lines, "")))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %-12s %d characters, %d lines:", f.Name, f.Characters, len(f.Lines)))
		for _, l := range f.Lines {
			lines = append(lines, "    | "+l)
		}
	}
	return lines
}

// line says what became of a call.
func (o callOutcome) line() string {
	text := fmt.Sprintf("  call %-3d  %s", o.Call, o.Answer)
	if o.State != "" {
		text += ", " + o.State
	}
	if o.Error != "" {
		text += ": " + o.Error
	}
	return text
}

func orNobody(name string) string {
	if name == "" {
		return "an unnamed client"
	}
	return name
}

// unjudgedWords are an answer that nobody has judged yet, in a few words.
func unjudgedWords(v approval.Verdict) string {
	word := "no"
	if v.Approve {
		word = "yes"
	}
	return fmt.Sprintf("%s said %s at %s; the bridge that asked has not judged it yet", v.Who(), word, v.Time.Local().Format("15:04:05"))
}

// verdictWords are a request's verdict in a few words.
func verdictWords(r approval.Request, v approval.Verdict) string {
	if v.Stopped != "" {
		return fmt.Sprintf("not answered: %s stopped the run (%s)", canon.Visible(v.Stopped), v.Time.Local().Format("15:04:05"))
	}
	word := "no"
	switch {
	case v.Approve && v.Rows != nil:
		word = fmt.Sprintf("yes to %d of %s", len(v.Rows), count(len(r.Items), "call"))
	case v.Approve && (v.Edited || v.Args != nil):
		word = "yes, with edited arguments"
	case v.Approve:
		word = "yes"
	}
	by := v.Who()
	if by == "" {
		by = "nobody, " + v.Channel
	}
	text := fmt.Sprintf("%s (%s, %s)", word, canon.Visible(by), v.Time.Local().Format("15:04:05"))
	if v.Text != "" {
		text += ": " + canon.Visible(canon.Redact(v.Text))
	}
	return text
}

// findRequest finds a request by its id, or by how the id begins.
func findRequest(ctx context.Context, store *sqlstore.Requests, id string) (approval.Entry, error) {
	found, err := store.Entries(ctx, approval.Filter{ID: id})
	if err != nil {
		return approval.Entry{}, err
	}
	if len(found) == 0 && len(id) >= 3 {
		if found, err = store.Entries(ctx, approval.Filter{Newest: 1000}); err != nil {
			return approval.Entry{}, err
		}
		found = slices.DeleteFunc(found, func(e approval.Entry) bool { return !strings.HasPrefix(e.ID, id) })
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return approval.Entry{}, &usageError{fmt.Errorf("there is no request %q; approvals list names those that wait", id)}
	default:
		return approval.Entry{}, &usageError{fmt.Errorf("%d requests begin with %q: write more of it", len(found), id)}
	}
}

func (con *console) completeRequest(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	_ = withRequests(c.Context(), con, func(_ *config.Config, store *sqlstore.Requests) error {
		open, err := store.Entries(c.Context(), approval.Filter{Open: time.Now()})
		for _, e := range open {
			ids = append(ids, e.ID+"\t"+approval.Summary(e.Request))
		}
		return err
	}) // a completion that fails offers nothing
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// An answering is what the flags of approve and deny say.
type answering struct {
	verdict   approval.Verdict
	rows      []string
	args      string
	fromStdin bool
	identical bool
}

func approvalsApprove(con *console) *cobra.Command {
	var o answering
	var scope string
	c := &cobra.Command{
		Use: "approve id...", Short: "Allow calls, as an approver", Args: minArgs(1), ValidArgsFunction: con.completeRequest,
		Long: "Allows calls. Your approver's token is asked for on the terminal and not shown; a program uses the\nHTTP API, or --token-stdin. The calls are printed first: what is sent is exactly that.",
		RunE: func(c *cobra.Command, ids []string) error {
			o.verdict.Approve, o.verdict.Scope = true, approval.Scope(strings.ReplaceAll(scope, "-", "_"))
			return answerRequests(c.Context(), con, ids, o)
		},
	}
	f := c.Flags()
	f.StringVar(&scope, "scope", "once", "how much the yes covers: `once`, session (the same arguments again), session-any (any arguments)")
	f.StringVar(&o.verdict.Text, "reason", "", "why; critical calls need it")
	f.StringVar(&o.verdict.Typed, "typed", "", "the tool's `name`, where a call needs it typed")
	f.StringSliceVar(&o.rows, "rows", nil, "only these `calls` of a request about several, by number")
	f.StringVar(&o.args, "args", "", "send this `JSON` object instead; it is checked and judged like any call")
	f.BoolVar(&o.identical, "identical", false, "also all other requests that wait for the very same call")
	answerFlags(con, c, &o)
	complete(c, "scope", []string{"once", "session", "session-any"})
	return c
}

func approvalsDeny(con *console) *cobra.Command {
	var o answering
	c := &cobra.Command{
		Use: "deny id...", Short: "Refuse calls, as an approver", Args: minArgs(1), ValidArgsFunction: con.completeRequest,
		RunE: func(c *cobra.Command, ids []string) error { return answerRequests(c.Context(), con, ids, o) },
	}
	c.Flags().StringVar(&o.verdict.Text, "reason", "", "why; the script can read it")
	c.Flags().BoolVar(&o.verdict.Stop, "stop", false, "stop the script as well")
	answerFlags(con, c, &o)
	return c
}

func answerFlags(con *console, c *cobra.Command, o *answering) {
	c.Flags().BoolVar(&o.fromStdin, "token-stdin", false, "read your token from standard input")
	con.jsonFlag(c)
}

// answerRequests brings an approver's verdict to requests.
func answerRequests(ctx context.Context, con *console, ids []string, o answering) error {
	return withRequests(ctx, con, func(cfg *config.Config, store *sqlstore.Requests) (err error) {
		for _, row := range o.rows {
			n, err := strconv.Atoi(row)
			if err != nil {
				return &usageError{fmt.Errorf("--rows takes numbers of calls, not %q", row)}
			}
			o.verdict.Rows = append(o.verdict.Rows, n)
		}
		if o.args != "" {
			if _, err := canon.Parse([]byte(o.args)); err != nil {
				return &usageError{fmt.Errorf("--args is not what a tool takes: %w", err)}
			}
			o.verdict.Args = json.RawMessage(o.args)
		}
		var entries []approval.Entry
		for _, id := range ids {
			e, err := findRequest(ctx, store, id)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		if o.identical {
			if entries, err = withIdentical(ctx, store, entries); err != nil {
				return err
			}
		}
		if o.verdict.Approve { // what is allowed is what was shown: these calls, by their digest
			for _, e := range entries {
				lines := requestLines(e, realmOf(cfg).Configuration, time.Now())
				if o.verdict.Args != nil {
					lines = append(lines, asEdited(e, o.verdict.Args)...)
				}
				fmt.Fprintln(con.err, strings.Join(lines, "\n"))
			}
		}
		people, who, _, err := authenticate(con, cfg, o.fromStdin)
		if err != nil {
			return err
		}
		s, err := openSettling(ctx, con, cfg, store)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		var failed error
		for _, e := range entries {
			err := settleOne(ctx, con, s, people, who, e, o.verdict)
			switch {
			case errors.Is(err, approval.ErrKept) && failed == nil:
				failed = &exitError{exitKept}
			case err != nil && !errors.Is(err, approval.ErrKept):
				fmt.Fprintf(con.err, "%s: %v\n", e.ID, err)
				failed = &exitError{exitFailed}
			}
		}
		return failed
	})
}

// withIdentical adds the open requests that are about the very same call.
func withIdentical(ctx context.Context, store *sqlstore.Requests, entries []approval.Entry) ([]approval.Entry, error) {
	open, err := store.Entries(ctx, approval.Filter{Open: time.Now()})
	if err != nil {
		return nil, err
	}
	all := slices.Clone(entries)
	for _, o := range open {
		same := func(e approval.Entry) bool { return e.SameCalls(o.Request) }
		known := func(e approval.Entry) bool { return e.ID == o.ID }
		if slices.ContainsFunc(entries, same) && !slices.ContainsFunc(all, known) {
			all = append(all, o)
		}
	}
	return all, nil
}

// authenticate finds out which approver sits at the terminal, by their token:
// a terminal alone proves nothing.
func authenticate(con *console, cfg *config.Config, fromStdin bool) (people *approval.Approvers, who approval.Approver, token string, err error) {
	people, err = pending.Approvers(cfg, realmOf(cfg))
	if err != nil {
		return nil, who, "", err
	}
	if len(people.All()) == 0 {
		return nil, who, "", &configError{errors.New("there are no approvers"), "codemode-bridge approvers add NAME makes one; without, answer at the client, or on the page of codemode-bridge serve"}
	}
	token, err = readToken(con, fromStdin)
	if err != nil {
		return nil, who, "", err
	}
	var ok bool
	if who, ok = people.Authenticate(token); !ok {
		return nil, who, "", &usageError{errors.New("that is no approver's token")}
	}
	return people, who, token, nil
}

// readToken reads a token that nobody sees, not even one that is typed before
// the question stands there: that is thrown away.
func readToken(con *console, fromStdin bool) (string, error) {
	if fromStdin {
		line, err := bufio.NewReader(io.LimitReader(con.in, 4096)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("reading the token: %w", err)
		}
		return strings.TrimSpace(line), nil
	}
	file, ok := con.in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return "", &usageError{errors.New("there is no terminal to ask for your token; give it with --token-stdin")}
	}
	shown, err := term.MakeRaw(int(file.Fd())) // from here on nothing is echoed, and a return is one
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	text := ""
	if err = drain(file); err == nil {
		text, err = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{file, con.err}, "").ReadPassword("your approver's token: ")
	}
	err = errors.Join(err, term.Restore(int(file.Fd()), shown))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	return strings.TrimSpace(text), nil
}

// grantsCommand shows and ends what was allowed for longer.
func grantsCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "grants", Short: "What was allowed for a session"}
	list := &cobra.Command{
		Use: "list", Short: "List what was allowed for a session", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return readRequests(c.Context(), con, func(broker *approval.Broker, own string) error {
				all, err := broker.Grants(c.Context())
				if err != nil {
					return err
				}
				if con.json {
					return con.printJSON(append([]approval.Grant{}, all...))
				}
				if len(all) == 0 {
					fmt.Fprintln(con.err, "nothing is allowed for longer than one call")
					return nil
				}
				table := [][]string{{"id", "tool", "covers", "client", "session", "by", "until", "uses left", "configuration"}}
				for _, g := range all {
					of := ""
					if g.Key.Configuration != own {
						of = canon.Visible(cmp.Or(g.Configuration, "another"))
					}
					table = append(table, []string{g.ID, g.Script, g.Covers, canon.Visible(orNobody(g.Client)), g.Key.Session, canon.Visible(g.By), g.Until.Local().Format("15:04:05"), strconv.Itoa(g.Left), of})
				}
				return con.table(withoutEmpty(table))
			})
		},
	}
	var fromStdin bool
	revoke := &cobra.Command{
		Use: "revoke id...", Short: "End what was allowed: the next call is asked again", Args: minArgs(1),
		Long: "Ends what was allowed for longer: the next call is asked again. Where there are approvers, the token of one with\nthe role admin is asked for, so that the record says who it was.",
		RunE: func(c *cobra.Command, ids []string) error {
			return withRequests(c.Context(), con, func(cfg *config.Config, store *sqlstore.Requests) (err error) {
				var who string
				if len(cfg.Approvals.Approvers) > 0 {
					_, one, _, err := authenticate(con, cfg, fromStdin)
					if err != nil {
						return err
					}
					if !one.May(approval.Revoke) {
						return fmt.Errorf("%s may not revoke a grant: that takes the role admin", one.Name)
					}
					who = one.Name
				}
				s, err := openSettling(c.Context(), con, cfg, store)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, s.Close()) }()
				for _, id := range ids {
					found, err := s.desk.Broker.Revoke(c.Context(), id)
					switch {
					case err != nil:
						return err
					case !found:
						return &usageError{fmt.Errorf("there is no grant %q", id)}
					}
					rec := ledger.Record{Event: ledger.Revoked, Time: time.Now(), Approver: who, Channel: "terminal", Durable: true, Detail: ledger.Detail(map[string]string{"grant": id})}
					if err := s.recorder.Record(c.Context(), rec); err != nil {
						return err
					}
					fmt.Fprintf(con.out, "%s is revoked\n", id)
				}
				return nil
			})
		},
	}
	con.jsonFlag(list)
	revoke.Flags().BoolVar(&fromStdin, "token-stdin", false, "read your token from standard input")
	group.AddCommand(list, revoke)
	return group
}
