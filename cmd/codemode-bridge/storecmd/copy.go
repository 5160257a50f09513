package storecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pgstore"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Group has the commands about stores.
type Group struct {
	*cli.Console
	Version string
	Load    func() (*config.Config, error) // the present configuration
	// ConfigFile is where the configuration is, or would be; InForce is what bridges go by,
	// with the secrets of the store, which WithSecrets fills in.
	ConfigFile  func() (string, error)
	InForce     func() (*config.Config, error)
	WithSecrets func(*config.Config) (*config.Config, error)
	FileKey     func(file string) string // what the folders of a configuration are named after
	// Laptops copies those of a centre, and returns how many there are.
	Laptops func(ctx context.Context, from, to config.Audit) (int, error)
}

// Command is the command group "store".
func (g *Group) Command() *cobra.Command {
	group := &cobra.Command{Use: "store", Short: "Where records, runs and questions are kept"}
	group.AddCommand(g.copy())
	return group
}

func (g *Group) copy() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use: "copy FROM TO", Short: "Copy a store from a file into a database, or back", Args: cobra.ExactArgs(2),
		Long: "Copies records, journals, questions, grants and the laptops of a centre, with the store's name and key: what audit verify and\ncheckpoints say of the one holds for the other. FROM and TO are files such as audit.db, or databases such as\n" +
			"'postgres://bridge:${STORE_PASSWORD}@db.example.com/bridge', where variables are filled in. TO must not have\nanything yet. End the bridges that use FROM before, and let the configuration name TO after.",
		RunE: func(c *cobra.Command, args []string) error {
			from, err := g.place(args[0], key)
			if err != nil {
				return err
			}
			to, err := g.place(args[1], key)
			if err != nil {
				return err
			}
			return g.carry(c.Context(), from, to)
		},
	}
	c.Flags().StringVar(&key, "key", "", "the `variable` with the key of the database's store, such as '${STORE_KEY}' (default: storeKey of the configuration, or the file store.key)")
	return c
}

// place is the store that an argument names.
func (g *Group) place(arg, key string) (config.Audit, error) {
	if !strings.Contains(arg, "://") && !strings.HasPrefix(arg, "${") {
		path, err := filepath.Abs(arg)
		return config.Audit{Enabled: true, Path: path, Durability: config.DurabilityDefault}, err
	}
	says := map[string]string{"store": arg}
	if key != "" {
		says["storeKey"] = key
	}
	text, err := json.Marshal(says)
	if err != nil {
		return config.Audit{}, err
	}
	cfg, err := config.Parse("store.json", text, g.Env)
	if problems := (config.Problems{}); errors.As(err, &problems) {
		what := "the address of the store"
		if problems[0].Path == "/storeKey" {
			what = "--key"
		}
		return config.Audit{}, &cli.UsageError{Err: fmt.Errorf("%s: %s (%s)", what, problems[0].Message, problems[0].Hint)}
	}
	if err != nil {
		return config.Audit{}, err
	}
	place := cfg.Audit
	if present, err := g.Load(); err == nil {
		if place.Path = present.Audit.Path; key == "" {
			place.StoreKey = present.Audit.StoreKey
		}
	}
	return place, nil
}

// carry copies one store into another, and verifies both.
func (g *Group) carry(ctx context.Context, from, to config.Audit) error {
	if Missing(from) {
		return fmt.Errorf("there is no audit log at %s", from.Where())
	}
	if _, err := g.verified(ctx, from); err != nil {
		return err
	}
	if err := carryLog(ctx, from, to); err != nil {
		return err
	}
	requests, grants, err := carryRequests(ctx, from, to)
	if err != nil {
		return err
	}
	laptops, err := g.Laptops(ctx, from, to)
	if err != nil {
		return err
	}
	report, err := g.verified(ctx, to)
	if err != nil {
		return err
	}
	fmt.Fprintf(g.Out, "%s is a copy of %s: %s, %s, %s\n", to.Where(), from.Where(), cli.Count(int(report.Rows), "row"), cli.Count(requests, "request"), cli.Count(grants, "grant"))
	if laptops > 0 {
		fmt.Fprintf(g.Out, "with it, %s of a centre: codemode-bridge laptops verify\n", cli.Count(laptops, "laptop"))
	}
	fmt.Fprintf(g.Out, "the log is whole: last row %d, hash %s\n", report.Last, report.Hash)
	return nil
}

// verified verifies a store, whose damage is an error.
func (g *Group) verified(ctx context.Context, place config.Audit) (report ledger.Report, err error) {
	db, err := Open(ctx, place, true, nil)
	if err != nil {
		return report, err
	}
	defer db.Close()
	report, err = db.Verify(ctx, nil)
	if err == nil && !report.Whole {
		err = fmt.Errorf("the log in %s is not whole, and is not copied: %s", place.Where(), report.Message)
	}
	return report, err
}

func carryLog(ctx context.Context, from, to config.Audit) (err error) {
	var source ledger.Carried
	if InDatabase(from) {
		source, err = pgstore.Carry(ctx, Database(from))
	} else {
		source, err = sqlstore.Carry(ctx, File(from))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if InDatabase(to) {
		return pgstore.Receive(ctx, Database(to), source)
	}
	return sqlstore.Receive(ctx, File(to), source)
}

// A holder knows which configurations wait for an approver.
type holder interface {
	Held(ctx context.Context) (map[string]*approval.PendingConfig, error)
}

func carryRequests(ctx context.Context, from, to config.Audit) (requests, grants int, err error) {
	if NeverAsked(from) {
		return 0, 0, nil
	}
	source, err := OpenRequests(ctx, from)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	into, err := OpenRequests(ctx, to)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	return putRequests(ctx, stored{source}, into)
}

// An asked has requests, with what belongs to them, to be copied.
type asked interface {
	holder
	Requests(ctx context.Context) ([]approval.StoredRequest, error)
	Grants(ctx context.Context) ([]approval.Grant, error)
}

// stored reads all requests of a store.
type stored struct{ from Requests }

func (s stored) Requests(ctx context.Context) ([]approval.StoredRequest, error) {
	return s.from.Requests(ctx, approval.Filter{})
}

func (s stored) Grants(ctx context.Context) ([]approval.Grant, error) { return s.from.Grants(ctx) }

func (s stored) Held(ctx context.Context) (map[string]*approval.PendingConfig, error) {
	return s.from.(holder).Held(ctx)
}

// putRequests writes them into a store that has none.
func putRequests(ctx context.Context, source asked, into Requests) (requests, grants int, err error) {
	all, err := source.Requests(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range all {
		if err := into.Put(ctx, e); err != nil {
			return 0, 0, err
		}
	}
	allowed, err := source.Grants(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, one := range allowed {
		if err := into.AddGrant(ctx, one); err != nil {
			return 0, 0, err
		}
	}
	held, err := source.Held(ctx)
	for file, one := range held {
		if err == nil {
			_, err = into.ChangePendingConfig(ctx, file, func(*approval.PendingConfig) (*approval.PendingConfig, error) { return one, nil })
		}
	}
	return len(all), len(allowed), err
}
