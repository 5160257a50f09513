package main

import (
	"bufio"
	"cmp"
	"codemode-bridge/cmd/codemode-bridge/storecmd"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/approvalview"
	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/bridge/wording"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/pagecmd"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// approvalsCommand answers the questions of every bridge with the same audit
// log, whether it serves a page or not.
func approvalsCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "approvals", Short: "The calls that wait for a person, and their answers"}
	group.AddCommand(approvalsList(con), approvalsShow(con), approvalsApprove(con), approvalsAlways(con), approvalsDeny(con), approvalsWatch(con), (&pagecmd.Bridge{
		Console: &con.Console,
		Load:    func(ctx context.Context) (*config.Config, error) { return loadInForce(ctx, con) },
		Elsewhere: func(cfg *config.Config) string {
			return pageElsewhere(storecmd.Bridges(cfg.Audit), realmOf(cfg).Configuration)
		},
		Token: func(cfg *config.Config, fromStdin bool) (string, error) {
			_, _, token, err := authenticate(con, cfg, fromStdin)
			return token, err
		},
	}).Open())
	return group
}

// loadInForce reads the configuration that bridges have in force.
func loadInForce(ctx context.Context, con *console) (*config.Config, error) {
	cfg, err := con.load()
	if err != nil {
		return nil, err
	}
	return inForce(ctx, con, cfg)
}

// openRequestStore opens the file in which the configuration's bridges keep their
// requests. The error is errNeverAsked if there is none yet.
func openRequestStore(ctx context.Context, con *console) (*config.Config, storecmd.Requests, error) {
	cfg, err := loadInForce(ctx, con)
	if err != nil {
		return nil, nil, err
	}
	if !cfg.Audit.Enabled {
		return nil, nil, &configError{errors.New("the requests are in the bridge's memory: audit.enabled is false"), "answer them at the client or on the bridge's page"}
	}
	if err := mustHavePath(cfg.Audit); err != nil {
		return nil, nil, err
	}
	if storecmd.NeverAsked(cfg.Audit) {
		return nil, nil, &configError{errNeverAsked, "a bridge that runs with this configuration puts its questions into " + cfg.Audit.Requests()}
	}
	store, err := storecmd.OpenRequests(ctx, cfg.Audit)
	if err != nil {
		return nil, nil, err
	}
	return cfg, store, nil
}

// errNeverAsked says that no bridge of this configuration has asked anything yet.
var errNeverAsked = errors.New("nothing was ever asked here")

// readRequests is withRequests for commands that list: if nothing was ever asked,
// the list is empty. Own is the id of the configuration.
func readRequests(ctx context.Context, con *console, do func(broker *approval.Broker, own string) error) error {
	err := withRequests(ctx, con, func(cfg *config.Config, store storecmd.Requests) error {
		return storecmd.WithOthers(cfg.Audit, func(gone func(string) bool) error {
			return do(approval.New(approval.Options{Store: store, Gone: gone}), realmOf(cfg).Configuration)
		})
	})
	if errors.Is(err, errNeverAsked) {
		return do(approval.New(approval.Options{}), "")
	}
	return err
}

// withRequests opens the requests, does something with them, and closes them.
func withRequests(ctx context.Context, con *console, do func(*config.Config, storecmd.Requests) error) (err error) {
	cfg, store, err := openRequestStore(ctx, con)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(cfg, store)
}

// callStates reads from the audit log what became of a settled request's calls;
// nil if there is no log. Their errors are escaped for display.
func callStates(ctx context.Context, con *console, cfg *config.Config, e approval.StoredRequest) (states map[int]ledger.CallState, err error) {
	if e.Verdict == nil || storecmd.Missing(cfg.Audit) {
		return nil, nil
	}
	log, err := openStore(ctx, cfg.Audit, true, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	states, err = ledger.CallStates(ctx, log, e.Run)
	for call, is := range states {
		is.Error = audit.Shown(is.Error)
		states[call] = is
	}
	return states, err
}

func approvalsList(con *console) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "list", Short: "List the calls that wait for a person", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return readRequests(c.Context(), con, func(broker *approval.Broker, own string) error {
				f := approval.Filter{Open: time.Now()}
				if all {
					f = approval.Filter{Newest: 200}
				}
				entries, err := broker.Requests(c.Context(), f)
				if err != nil {
					return err
				}
				rows := []approvalview.Row{}
				for _, e := range entries {
					rows = append(rows, approvalview.NewRow(e, nil))
				}
				if con.JSON {
					return con.PrintJSON(rows)
				}
				if len(rows) == 0 {
					fmt.Fprintln(con.Err, "nothing waits for a person")
					return nil
				}
				table := [][]string{{"id", "risk", "what", "client", "answer by", "configuration"}}
				for i, r := range rows {
					state := r.Until
					if v := entries[i].Verdict; v != nil {
						state = approvalview.VerdictWords(entries[i].Request, *v)
					}
					table = append(table, []string{r.ID, r.Risk, r.Summary, r.Client, state, approvalview.Elsewhere(entries[i].Request, own)})
				}
				return con.Table(withoutEmpty(table))
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "include the newest 200 that were answered")
	con.JSONFlag(c)
	return c
}

// withoutEmpty drops the last column of a table if all its cells are empty.
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
		Use: "show id", Short: "Print one request: everything that would be sent, and why it is asked", Args: cli.MinArgs(1), ValidArgsFunction: con.completeRequest,
		RunE: func(c *cobra.Command, ids []string) error {
			return withRequests(c.Context(), con, func(cfg *config.Config, store storecmd.Requests) error {
				for _, id := range ids {
					e, err := find(c.Context(), store, id)
					if err != nil {
						return err
					}
					known, err := callStates(c.Context(), con, cfg, e)
					if err != nil {
						return err
					}
					if con.JSON {
						if err := con.PrintJSON(approvalview.NewRow(e, known)); err != nil {
							return err
						}
						continue
					}
					lines := approvalview.Lines(e, realmOf(cfg).Configuration, time.Now())
					if e.Verdict != nil {
						for _, o := range approvalview.Outcomes(e, known) {
							lines = append(lines, approvalview.OutcomeLine(o))
						}
					}
					fmt.Fprintln(con.Out, strings.Join(lines, "\n"))
				}
				return nil
			})
		},
	}
	con.JSONFlag(c)
	return c
}

// find finds a request by its id or the beginning of it.
func find(ctx context.Context, store storecmd.Requests, id string) (approval.StoredRequest, error) {
	e, err := approvalview.Find(ctx, store, id)
	if unknown := (*approvalview.FindError)(nil); errors.As(err, &unknown) {
		err = &cli.UsageError{Err: err}
	}
	return e, err
}

func (con *console) completeRequest(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	_ = withRequests(c.Context(), con, func(_ *config.Config, store storecmd.Requests) error {
		open, err := store.Requests(c.Context(), approval.Filter{Open: time.Now()})
		for _, e := range open {
			ids = append(ids, e.ID+"\t"+wording.Summary(e.Request))
		}
		return err
	}) // on an error there is nothing to complete with
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// An answering holds the flags of approve and deny.
type answering struct {
	verdict   approval.Verdict
	rows      []string
	args      string
	fromStdin bool
	identical bool
}

// scopeWords are what a yes may cover, as a person writes it.
var scopeWords = []string{string(approval.Once), string(approval.RunScope), string(approval.SessionScope)}

func approvalsApprove(con *console) *cobra.Command {
	var o answering
	var scope string
	c := &cobra.Command{
		Use: "approve id...", Short: "Allow calls, as an approver", Args: cli.MinArgs(1), ValidArgsFunction: con.completeRequest,
		Long: "Allows calls. Asks for your approver's token on the terminal without showing it; programs use the\nHTTP API or --token-stdin. The calls are printed first; exactly what is printed is sent.",
		RunE: func(c *cobra.Command, ids []string) error {
			if err := cli.OneOf("scope", scope, scopeWords...); err != nil {
				return err
			}
			o.verdict.Approve, o.verdict.Scope = true, approval.Scope(scope)
			if (o.verdict.Scope == approval.RunScope) != (o.verdict.Count > 0) {
				return &cli.UsageError{Err: errors.New("--scope run and --count N belong together: for how many calls the yes holds, with these")}
			}
			return answerRequests(c.Context(), con, ids, o)
		},
	}
	f := c.Flags()
	f.StringVar(&scope, "scope", "once", "how much the yes covers: `once`, run (calls like these in this run, see --count) or session (calls like these in this session)")
	f.IntVar(&o.verdict.Count, "count", 0, "with --scope run: for how many `calls`, with these")
	f.BoolVar(&o.verdict.Forget, "forget", false, "what was read before is no reason any more to ask about later calls, where these are asked about because of it")
	f.StringVar(&o.verdict.Text, "reason", "", "why; critical calls need it")
	f.StringVar(&o.verdict.Typed, "typed", "", "the tool's `name`, for calls that need it typed")
	f.StringSliceVar(&o.rows, "rows", nil, "only these `calls`, by number, of a request about several")
	f.StringVar(&o.args, "args", "", "send this `JSON` object instead; it is checked and judged like any call")
	f.BoolVar(&o.identical, "identical", false, "also every other request that waits for the same call")
	answerFlags(con, c, &o)
	cli.Complete(c, "scope", scopeWords)
	return c
}

func approvalsDeny(con *console) *cobra.Command {
	var o answering
	c := &cobra.Command{
		Use: "deny id...", Short: "Refuse calls, as an approver", Args: cli.MinArgs(1), ValidArgsFunction: con.completeRequest,
		RunE: func(c *cobra.Command, ids []string) error { return answerRequests(c.Context(), con, ids, o) },
	}
	c.Flags().StringVar(&o.verdict.Text, "reason", "", "why; the script can read it")
	c.Flags().BoolVar(&o.verdict.Stop, "stop", false, "stop the script as well")
	c.Flags().BoolVar(&o.verdict.NoMore, "no-more", false, "refuse the script's further calls of the tool as well")
	answerFlags(con, c, &o)
	return c
}

func answerFlags(con *console, c *cobra.Command, o *answering) {
	c.Flags().BoolVar(&o.fromStdin, "token-stdin", false, "read your token from standard input")
	con.JSONFlag(c)
}

// answerRequests answers requests with the verdict of an approver.
func answerRequests(ctx context.Context, con *console, ids []string, o answering) error {
	return withRequests(ctx, con, func(cfg *config.Config, store storecmd.Requests) (err error) {
		for _, row := range o.rows {
			n, err := strconv.Atoi(row)
			if err != nil {
				return &cli.UsageError{Err: fmt.Errorf("--rows takes numbers of calls, not %q", row)}
			}
			o.verdict.Rows = append(o.verdict.Rows, n)
		}
		if o.args != "" {
			if _, err := canon.Parse([]byte(o.args)); err != nil {
				return &cli.UsageError{Err: fmt.Errorf("--args is not what a tool takes: %w", err)}
			}
			o.verdict.Args = json.RawMessage(o.args)
		}
		var entries []approval.StoredRequest
		for _, id := range ids {
			e, err := find(ctx, store, id)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		if o.identical {
			if entries, err = approvalview.WithIdentical(ctx, store, entries); err != nil {
				return err
			}
		}
		if o.verdict.Approve { // the approval is bound to the digest of what is shown here
			for _, e := range entries {
				lines := approvalview.Lines(e, realmOf(cfg).Configuration, time.Now())
				if o.verdict.Args != nil {
					lines = append(lines, approvalview.AsEdited(e, o.verdict.Args)...)
				}
				fmt.Fprintln(con.Err, strings.Join(lines, "\n"))
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
			case errors.Is(err, approval.ErrUnjudged) && failed == nil:
				failed = &cli.ExitError{Code: cli.ExitKept}
			case err != nil && !errors.Is(err, approval.ErrUnjudged):
				fmt.Fprintf(con.Err, "%s: %v\n", e.ID, err)
				failed = &cli.ExitError{Code: cli.ExitFailed}
			}
		}
		return failed
	})
}

// authenticate identifies the approver at the terminal by their token: having a
// terminal proves nothing.
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
		return nil, who, "", &cli.UsageError{Err: errors.New("that is no approver's token")}
	}
	return people, who, token, nil
}

// readToken reads a token without echoing it. What was typed before the prompt is
// discarded.
func readToken(con *console, fromStdin bool) (string, error) {
	if fromStdin {
		line, err := bufio.NewReader(io.LimitReader(con.In, 4096)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("reading the token: %w", err)
		}
		return strings.TrimSpace(line), nil
	}
	file, ok := con.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return "", &cli.UsageError{Err: errors.New("there is no terminal to ask for your token; give it with --token-stdin")}
	}
	shown, err := term.MakeRaw(int(file.Fd())) // no echo from here on, and Return arrives as \r
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	text := ""
	if err = cli.Drain(file); err == nil {
		text, err = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{file, con.Err}, "").ReadPassword("your approver's token: ")
	}
	err = errors.Join(err, term.Restore(int(file.Fd()), shown))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	return strings.TrimSpace(text), nil
}

// grantsCommand lists and revokes grants.
func grantsCommand(con *console) *cobra.Command {
	group := &cobra.Command{Use: "grants", Short: "What was allowed for longer"}
	list := &cobra.Command{
		Use: "list", Short: "List what was allowed for longer, with what each grant binds and leaves free", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return readRequests(c.Context(), con, func(broker *approval.Broker, own string) error {
				all, err := broker.Grants(c.Context())
				if err != nil {
					return err
				}
				if con.JSON {
					return con.PrintJSON(append([]approval.Grant{}, all...))
				}
				if len(all) == 0 {
					fmt.Fprintln(con.Err, "nothing is allowed for longer than one call")
					return nil
				}
				table := [][]string{{"id", "tool", "covers", "client", "run or session", "by", "until", "uses left", "configuration"}}
				for _, g := range all {
					of := ""
					if g.Key.Configuration != own {
						of = canon.Escape(cmp.Or(g.Configuration, "another"))
					}
					table = append(table, []string{g.ID, g.Script, g.Covers, canon.Escape(approvalview.OrUnnamed(g.Client)), cmp.Or(g.Run, g.Key.Session), canon.Escape(g.By), g.Until.Local().Format("15:04:05"), strconv.Itoa(g.Left), of})
				}
				return con.Table(withoutEmpty(table))
			})
		},
	}
	var fromStdin bool
	revoke := &cobra.Command{
		Use: "revoke id...", Short: "Revoke a grant: the next call asks again", Args: cli.MinArgs(1),
		Long: "Revokes what was allowed for a session: the next call asks again. If there are approvers, it asks for the\ntoken of one with the role admin, so that the record says who it was.",
		RunE: func(c *cobra.Command, ids []string) error {
			return withRequests(c.Context(), con, func(cfg *config.Config, store storecmd.Requests) (err error) {
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
						return &cli.UsageError{Err: fmt.Errorf("there is no grant %q", id)}
					}
					rec := ledger.Record{Event: ledger.Revoked, Time: time.Now(), Approver: who, Channel: "terminal", Durable: true, Detail: ledger.Detail(map[string]string{"grant": id})}
					if err := s.recorder.Record(c.Context(), rec); err != nil {
						return err
					}
					fmt.Fprintf(con.Out, "%s is revoked\n", id)
				}
				return nil
			})
		},
	}
	con.JSONFlag(list)
	revoke.Flags().BoolVar(&fromStdin, "token-stdin", false, "read your token from standard input")
	group.AddCommand(list, revoke)
	return group
}
