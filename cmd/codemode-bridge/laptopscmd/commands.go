package laptopscmd

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/centre"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

type centreKey = ed25519.PrivateKey

// A Centre has the commands of a centre.
type Centre struct {
	*cli.Console
	Version string

	// Load reads the configuration in force, with the secrets that the store and the centre
	// name.
	Load func(ctx context.Context) (*config.Config, error)
	Open func(ctx context.Context, place config.Audit, readOnly bool) (ledger.Book, error)
	SQL  Database
}

// Pointer is where a configuration has the centre's key.
const Pointer = "/centre"

// Command is the command group "laptops".
func (c *Centre) Command() *cobra.Command {
	group := &cobra.Command{Use: "laptops", Short: "The laptops of this centre: their enrolment and records"}
	group.AddCommand(c.invite(), c.list(), c.show(), c.verify(), c.export(), c.revoke())
	return group
}

// A view is the centre's stores, opened for one command.
type view struct {
	cfg   *config.Config
	key   centreKey
	book  ledger.Book
	store *centre.Store
}

func (c *Centre) with(ctx context.Context, writes bool, do func(context.Context, *view) error) (err error) {
	cfg, err := c.Load(ctx)
	if err != nil {
		return err
	}
	v := &view{cfg: cfg}
	if v.key, err = signingKey(cfg); err != nil {
		return err
	}
	if v.book, err = c.Open(ctx, cfg.Audit, !writes); err != nil {
		if errors.Is(err, ledger.ErrNoStore) {
			err = &cli.SetupError{Err: errors.New("the centre has no store yet"), Do: "start it once: codemode-bridge serve"}
		}
		return err
	}
	defer func() { err = errors.Join(err, v.book.Close()) }()
	if v.store, err = open(ctx, cfg.Audit, c.SQL); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.store.Close()) }()
	return do(ctx, v)
}

// naming is what people and laptops may be called: the name is a header, and stands in tables.
var naming = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$`)

func named(name string) error {
	if !naming.MatchString(name) {
		return &cli.UsageError{Err: fmt.Errorf("%.120q is no name: it has letters, digits, and . _ @ + -, 100 at most", name)}
	}
	return nil
}

// known explains that there is no laptop of a name.
func known(name string, err error) error {
	if errors.Is(err, centre.ErrUnknown) {
		return &cli.UsageError{Err: fmt.Errorf("there is no laptop %q (codemode-bridge laptops list)", name)}
	}
	return err
}

func (c *Centre) invite() *cobra.Command {
	var laptop string
	var again bool
	cmd := &cobra.Command{
		Use: "invite person", Short: "Make a code with which a machine of somebody is enrolled", Args: cli.OneArg,
		Long: "Prints a code that enrols one machine, once, within ten minutes. With --again, the argument is a laptop that\nis enrolled already: its new machine, or its new key, takes its place, and the rows that are here stay.",
		Example: `  codemode-bridge laptops invite ann
  codemode-bridge laptops invite --again ann-2`,
		RunE: func(cmd *cobra.Command, args []string) error {
			code := centre.Code{Person: args[0], Laptop: laptop}
			if again {
				if laptop != "" {
					return &cli.UsageError{Err: errors.New("--again takes the laptop as its argument, without --laptop")}
				}
				code.Laptop = args[0]
			}
			for _, name := range []string{args[0], laptop} {
				if err := named(name); name != "" && err != nil {
					return err
				}
			}
			return c.with(cmd.Context(), true, func(ctx context.Context, v *view) error {
				text := wire.NewCode(v.key.Public().(ed25519.PublicKey))
				secret, _, err := wire.ParseCode(text)
				if err != nil {
					return err
				}
				now := time.Now()
				code.ID, code.Key, code.Until = wire.CodeID(secret), wire.CodeKey(secret), now.Add(centre.CodeTime)
				if code, err = v.store.Invite(ctx, code, again, now); err != nil {
					return known(args[0], err)
				}
				err = v.book.Record(ctx, centre.Note{Laptop: code.Laptop, Person: code.Person, What: "invited"}.Record(ledger.Done))
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(map[string]any{"code": text, "laptop": code.Laptop, "person": code.Person, "until": code.Until.UTC().Truncate(time.Second)})
				}
				fmt.Fprintf(c.Err, "the code of the laptop %s, good once, until %s:\n", code.Laptop, code.Until.Local().Format("15:04"))
				fmt.Fprintln(c.Out, text)
				c.Told("on the laptop: codemode-bridge enroll https://ADDRESS-OF-THIS-CENTRE, which asks for it")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&laptop, "laptop", "", "what the laptop is called (default: the person's name, with a number if that is taken)")
	cmd.Flags().BoolVar(&again, "again", false, "invite a laptop that is enrolled already, such as one with a new disk")
	c.JSONFlag(cmd)
	return cmd
}

// shown is a laptop as --json prints it.
type shown struct {
	Laptop   string         `json:"laptop"`
	Person   string         `json:"person"`
	State    string         `json:"state"`
	Why      string         `json:"why,omitempty"` // it is forked
	Enrolled time.Time      `json:"enrolled"`
	Seen     time.Time      `json:"seen"`
	Version  string         `json:"version"`
	Rows     int64          `json:"rows"`
	Waiting  int64          `json:"waiting"`
	Policy   int64          `json:"policy"` // the serial in force there
	Last     int64          `json:"last"`   // the number of the last row
	Logs     []centre.Chain `json:"logs"`
}

func show(l *centre.Laptop) shown {
	return shown{Laptop: l.Name, Person: l.Person, State: l.State(), Why: l.Forked, Enrolled: l.Enrolled, Seen: l.Seen, Version: l.Version,
		Rows: l.Rows(), Waiting: l.Waiting, Policy: l.Policy, Last: l.Chains[len(l.Chains)-1].Seq, Logs: l.Chains}
}

// serial writes the serial of a policy.
func serial(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func clock(t time.Time) string { return t.Local().Format(time.DateTime) }

func (c *Centre) list() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the laptops: whose they are, when they were seen, what is here of them", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), false, func(ctx context.Context, v *view) error {
				laptops, err := v.store.Laptops(ctx)
				if err != nil {
					return err
				}
				if c.JSON {
					all := []shown{}
					for _, l := range laptops {
						all = append(all, show(l))
					}
					return c.PrintJSON(all)
				}
				if len(laptops) == 0 {
					fmt.Fprintln(c.Err, "no laptop is enrolled; codemode-bridge laptops invite PERSON makes a code for one")
					return nil
				}
				table := [][]string{{"laptop", "person", "state", "last seen", "rows here", "last row", "waiting", "policy", "version"}}
				for _, l := range laptops {
					s := show(l)
					table = append(table, []string{s.Laptop, s.Person, s.State, clock(s.Seen), fmt.Sprint(s.Rows), fmt.Sprint(s.Last), fmt.Sprint(s.Waiting), serial(s.Policy), audit.Cell(s.Version)})
				}
				return c.Table(table)
			})
		},
	}
	c.JSONFlag(cmd)
	return cmd
}

func (c *Centre) show() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "show laptop", Short: "Show one laptop, and the newest of its records", Args: cli.OneArg, ValidArgsFunction: c.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), false, func(ctx context.Context, v *view) error {
				l, err := v.store.Laptop(ctx, args[0])
				if err != nil {
					return known(args[0], err)
				}
				var newest []ledger.Row
				for row, err := range centre.Newest(ctx, v.store, l, limit) {
					if err != nil {
						return err
					}
					newest = append(newest, row)
				}
				if c.JSON {
					rows := []audit.Row{}
					for _, r := range newest {
						rows = append(rows, audit.JSON(r))
					}
					return c.PrintJSON(map[string]any{"laptop": show(l), "newest": rows})
				}
				s := show(l)
				fmt.Fprintf(c.Out, "%s of %s: %s since %s, last seen %s, codemode-bridge %s\n", s.Laptop, s.Person, s.State, clock(s.Enrolled), clock(s.Seen), audit.Cell(s.Version))
				if s.Why != "" {
					fmt.Fprintf(c.Out, "forked on %s: %s\n", clock(l.ForkedAt), audit.Shown(s.Why))
				}
				for i, k := range l.Chains {
					fmt.Fprintf(c.Out, "log %d: %s, rows %d to %d, last hash %s\n", i+1, audit.Shown(k.Store), k.From+1, k.Seq, k.Hash)
				}
				if s.Policy > 0 {
					fmt.Fprintf(c.Out, "the policy with the serial %d was in force there\n", s.Policy)
				}
				fmt.Fprintf(c.Out, "%s waiting there when it was last seen\n", cli.Count(int(s.Waiting), "row"))
				for _, r := range newest {
					fmt.Fprintf(c.Out, "%d  %s  %s  %s\n", r.Seq, clock(r.Record.Time), audit.Cell(r.Record.Run), audit.Line(r.Record))
				}
				return nil
			})
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "so many of the newest `rows`")
	c.JSONFlag(cmd)
	return cmd
}

func (c *Centre) complete(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	_ = c.with(cmd.Context(), false, func(ctx context.Context, v *view) error {
		laptops, err := v.store.Laptops(ctx)
		for _, l := range laptops {
			names = append(names, l.Name+"\t"+l.Person)
		}
		return err
	}) // on an error there is nothing to complete with
	return names, cobra.ShellCompDirectiveNoFileComp
}

// verified is one log of a laptop, as --json prints it.
type verified struct {
	Laptop  string `json:"laptop"`
	Log     int    `json:"log"`
	Whole   bool   `json:"whole"`
	Rows    int64  `json:"rows"`
	Bad     int64  `json:"bad,omitempty"`
	Message string `json:"message,omitempty"`
	Against int    `json:"checkpoints"`
}

func (c *Centre) verify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify [laptop...]", Short: "Check that the rows of laptops are what they sent", ValidArgsFunction: c.complete,
		Long: "Reads all rows that are here of some or all laptops, and checks their hashes, the centre's seals, and the\ncheckpoints in the centre's own audit log. If one is not what was taken, the exit code is 5.",
		RunE: func(cmd *cobra.Command, names []string) error {
			return c.with(cmd.Context(), false, func(ctx context.Context, v *view) error {
				laptops, err := v.store.Laptops(ctx)
				if err != nil {
					return err
				}
				for _, name := range names {
					if !slices.ContainsFunc(laptops, func(l *centre.Laptop) bool { return l.Name == name }) {
						return known(name, centre.ErrUnknown)
					}
				}
				seal, err := v.book.Key(seals)
				if err != nil {
					return err
				}
				all, whole := []verified{}, true
				for _, l := range laptops {
					if len(names) > 0 && !slices.Contains(names, l.Name) {
						continue
					}
					for chain := 1; chain <= len(l.Chains); chain++ {
						noted, err := centre.Noted(ctx, v.book, l.Name, chain)
						if err != nil {
							return err
						}
						r, err := centre.Verify(ctx, v.store, l, chain, seal, noted)
						if err != nil {
							return err
						}
						all, whole = append(all, verified{l.Name, chain, r.Whole, r.Rows, r.Bad, r.Message, len(noted.Points)}), whole && r.Whole
					}
				}
				if c.JSON {
					err = c.PrintJSON(all)
				} else {
					c.report(all)
				}
				if err == nil && !whole {
					err = &cli.ExitError{Code: cli.ExitNotWhole}
				}
				return err
			})
		},
	}
	c.JSONFlag(cmd)
	return cmd
}

func (c *Centre) report(all []verified) {
	if len(all) == 0 {
		fmt.Fprintln(c.Err, "no laptop is enrolled")
	}
	for _, one := range all {
		if one.Whole {
			fmt.Fprintf(c.Out, "%s, log %d: whole, %s, compared with %s\n", one.Laptop, one.Log, cli.Count(int(one.Rows), "row"), cli.Count(one.Against, "checkpoint"))
		} else {
			fmt.Fprintf(c.Out, "%s, log %d: not what it sent: %s\n", one.Laptop, one.Log, audit.Shown(one.Message))
		}
	}
}

func (c *Centre) export() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "export laptop", Short: "Write all records of a laptop, for other programs", Args: cli.OneArg, ValidArgsFunction: c.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			formats := []string{}
			for _, f := range audit.Formats {
				formats = append(formats, string(f))
			}
			if err := cli.OneOf("format", format, formats...); err != nil {
				return err
			}
			return c.with(cmd.Context(), false, func(ctx context.Context, v *view) error {
				l, err := v.store.Laptop(ctx, args[0])
				if err != nil {
					return known(args[0], err)
				}
				_, err = audit.Export(c.Out, audit.Rows(centre.All(ctx, v.store, l)), audit.Format(format), c.Version)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", string(audit.JSONLines), "jsonl, csv or cef")
	return cmd
}

func (c *Centre) revoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke laptop", Short: "Take no more records of a laptop; those that are here stay", Args: cli.OneArg, ValidArgsFunction: c.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), true, func(ctx context.Context, v *view) error {
				now := time.Now().UTC()
				var l *centre.Laptop
				err := v.store.Change(ctx, args[0], func(at *centre.Laptop) ([]ledger.Link, error) {
					if at.Revoked != nil {
						return nil, fmt.Errorf("the laptop %s was revoked on %s", at.Name, clock(*at.Revoked))
					}
					at.Revoked, l = &now, at
					return nil, nil
				})
				if err != nil {
					return known(args[0], err)
				}
				if err := v.book.Record(ctx, centre.Note{Laptop: l.Name, Person: l.Person, What: "revoked"}.Record(ledger.Done)); err != nil {
					return err
				}
				fmt.Fprintf(c.Out, "%s is revoked; laptops invite --again %s lets it in again\n", l.Name, l.Name)
				return nil
			})
		},
	}
}
