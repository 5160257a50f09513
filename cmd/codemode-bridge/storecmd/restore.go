package storecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codemode-bridge/bridge/alive"
	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/backup"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/pgstore"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A restoring is a backup that is being put where the configuration wants it.
type restoring struct {
	*Group
	places   config.Locations
	manifest backup.Manifest
	dir      string         // where it is unpacked
	cfg      *config.Config // of the machine, or of the backup if the machine has none
	moves    []move
	replace  bool
}

// A move is a file that goes to its place.
type move struct{ from, to string }

// Restore is the command that puts what backup wrote in place.
func (g *Group) Restore() *cobra.Command {
	var replace, continues bool
	var key string
	c := &cobra.Command{
		Use: "restore FILE", Short: "Put what backup wrote in place, and verify it", Args: cli.OneArg,
		Long: "Puts the content of a backup where the configuration wants it; - reads standard input. The\nconfiguration itself is restored only where there is none. Nothing is changed if the backup is\n" +
			"damaged, if a bridge runs, or if there is something in the place of what it has.\n\nNobody knows what was done between the backup and now. So paused runs, open questions and grants end,\nor calls that were made would be made again, and grants that were revoked would be back.",
		RunE: func(c *cobra.Command, args []string) (err error) {
			r := &restoring{Group: g, replace: replace}
			if r.places, err = config.Paths(g.Env); err != nil {
				return &cli.SetupError{Err: err, Do: "set HOME, or XDG_CONFIG_HOME, XDG_STATE_HOME and XDG_CACHE_HOME"}
			}
			from := g.In
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return &cli.SetupError{Err: fmt.Errorf("opening the backup: %w; nothing was changed", err), Do: "name a file that codemode-bridge backup wrote, or - for standard input"}
				}
				defer f.Close()
				from = f
			}
			return r.restore(c.Context(), from, key, continues)
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "set aside what is there, in a folder that it names")
	c.Flags().BoolVar(&continues, "continue", false, "let paused runs, questions and grants go on: only if no bridge ran since the backup")
	c.Flags().StringVar(&key, "key", "", "the `variable` with the key of the database that the backup is of, such as '${STORE_KEY}' (default: storeKey of the configuration)")
	return c
}

func (r *restoring) restore(ctx context.Context, from io.Reader, key string, continues bool) (err error) {
	if err := os.MkdirAll(r.places.StateDir, 0o700); err != nil {
		return fmt.Errorf("making the state folder: %w", err)
	}
	if r.dir, err = os.MkdirTemp(r.places.StateDir, ".restore-*"); err != nil {
		return fmt.Errorf("unpacking the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	switch r.manifest, err = backup.Read(from, r.dir); {
	case errors.Is(err, backup.ErrDamaged):
		return &cli.SetupError{Err: fmt.Errorf("%w; nothing was changed", err), Do: "fetch the file again, or take an older one; one that was encrypted is to be decrypted first"}
	case err != nil:
		return fmt.Errorf("%w; nothing was changed", err)
	}
	if err := r.configuration(); err != nil {
		return err
	}
	if err := r.nobodyRuns(ctx); err != nil {
		return err
	}
	if err := r.unwrap(ctx, key); err != nil {
		return err
	}
	staged := config.Audit{Enabled: true, Path: r.at(logIn), Durability: config.DurabilityDefault}
	checked := staged
	checked.Checkpoint = r.cfg.Audit.Checkpoint
	if _, err := r.verified(ctx, checked); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	ended := ""
	if !continues {
		if ended, err = endAll(ctx, staged); err != nil {
			return err
		}
	}
	r.plan()
	aside, err := r.clear()
	if err != nil {
		return err
	}
	if InDatabase(r.cfg.Audit) {
		if err := r.intoDatabase(ctx, staged, continues); err != nil {
			return err
		}
	}
	for _, m := range r.moves {
		if err := carryFile(m.from, m.to); err != nil {
			return fmt.Errorf("putting %s in its place: %w", m.to, err)
		}
	}
	report, err := r.verified(ctx, r.cfg.Audit)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "restored the backup of %s to %s\n", r.manifest.Time.Local().Format("2006-01-02 15:04:05"), r.cfg.Audit.Where())
	fmt.Fprintf(r.Out, "the log is whole: last row %d, hash %s\n", report.Last, report.Hash)
	for _, line := range []string{ended, aside} {
		if line != "" {
			fmt.Fprintln(r.Out, line)
		}
	}
	return nil
}

// at is where a file of the backup is unpacked.
func (r *restoring) at(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

// configuration finds the configuration that says where everything belongs.
func (r *restoring) configuration() error {
	path, err := r.ConfigFile()
	if err != nil {
		return err
	}
	text, there := os.ReadFile(r.at(configIn + "/" + filepath.Base(r.manifest.ConfigFile)))
	if !gone(path) || there != nil {
		r.cfg, err = r.Load() // what approvers confirmed is in the backup
	} else {
		r.cfg, err = config.Parse(path, text, r.Env)
	}
	if err == nil {
		r.cfg, err = r.WithSecrets(r.cfg)
	}
	return err
}

// nobodyRuns returns an error if a bridge has the store open.
func (r *restoring) nobodyRuns(ctx context.Context) error {
	running := alive.Members(Bridges(r.cfg.Audit))
	if InDatabase(r.cfg.Audit) {
		all, err := Replicas(ctx, r.cfg.Audit)
		if err != nil && !errors.Is(err, ledger.ErrNoStore) {
			return err
		}
		for _, one := range all {
			if !one.Gone {
				running = append(running, one.Name)
			}
		}
	}
	if len(running) > 0 {
		return &cli.SetupError{Err: fmt.Errorf("a bridge uses the store that would be restored (%s); nothing was changed", strings.Join(running, ", ")), Do: "end it first; codemode-bridge status shows it"}
	}
	return nil
}

// unwrap decrypts the key of the store.
func (r *restoring) unwrap(ctx context.Context, named string) error {
	if !r.manifest.Wrapped {
		return nil
	}
	secret := r.cfg.Audit.StoreKey
	if named != "" {
		place, err := r.place("postgres://none.invalid/none", named)
		if err != nil {
			return err
		}
		secret = place.StoreKey
	}
	if secret.IsZero() {
		return &cli.SetupError{Err: errors.New("the key in the backup is encrypted with the storeKey of the database that it is of; nothing was changed"), Do: "name that with storeKey, or with --key '${STORE_KEY}'"}
	}
	store, err := sqlstore.NameOf(ctx, r.at(logIn))
	if err != nil {
		return err
	}
	wrapped, err := os.ReadFile(r.at(keyIn))
	if err != nil {
		return err
	}
	key, err := pgstore.UnwrapKey([]byte(secret.Reveal()), store, string(wrapped))
	if err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return os.WriteFile(r.at(keyIn), key, 0o600)
}

// endAll ends the runs and questions of a store, and its grants.
func endAll(ctx context.Context, place config.Audit) (said string, err error) {
	db, err := sqlstore.Open(ctx, File(place))
	if err != nil {
		return "", err
	}
	runs, err := db.Runs(ctx)
	for _, k := range runs {
		if err == nil {
			err = db.Drop(ctx, k.Run)
		}
	}
	if err = errors.Join(err, db.Close()); err != nil || NeverAsked(place) {
		return "", err
	}
	requests, err := sqlstore.OpenRequests(ctx, place.Requests())
	if err != nil {
		return "", err
	}
	now := time.Now()
	open, err := requests.Requests(ctx, approval.Filter{Open: now})
	for _, one := range open {
		if err == nil {
			_, err = requests.Update(ctx, one.ID, func(e *approval.StoredRequest) error { e.Until = now; return nil })
		}
	}
	grants := 0
	if err == nil {
		err = requests.DropGrants(ctx, func(approval.Grant) bool { grants++; return true })
	}
	if err = errors.Join(err, requests.Close()); err != nil || len(runs)+len(open)+grants == 0 {
		return "", err
	}
	return fmt.Sprintf("ended, since nobody knows what was done after the backup: %s, %s, %s", cli.Count(len(runs), "paused run"), cli.Count(len(open), "question"), cli.Count(grants, "grant")), nil
}

// plan says where each file belongs.
func (r *restoring) plan() {
	place := r.cfg.Audit
	beside := filepath.Dir(place.Path)
	was, is := r.FileKey(r.manifest.ConfigFile), r.FileKey(r.cfg.File)
	for _, f := range r.manifest.Files {
		within, rest, _ := strings.Cut(f.Name, "/")
		to := ""
		switch {
		case f.Name == laptopsIn:
			to = filepath.Join(beside, "laptops.db")
		case InDatabase(place) && within == "store":
		case f.Name == logIn:
			to = place.Path
		case f.Name == keyIn:
			to = place.Path + ".key"
		case f.Name == requestsIn:
			to = place.Requests()
		case within == stateIn:
			// Folders of one configuration are named after its file.
			to = filepath.Join(r.places.StateDir, filepath.FromSlash(strings.Replace(rest, "-"+was, "-"+is, 1)))
		case within == besideIn:
			to = filepath.Join(beside, filepath.FromSlash(rest))
		case within == configIn && rest == filepath.Base(r.manifest.ConfigFile):
			to = r.cfg.File
		case within == configIn:
			to = filepath.Join(filepath.Dir(r.cfg.File), filepath.FromSlash(rest))
		}
		if to == "" || within == configIn && !gone(to) {
			continue // what a person has written is kept
		}
		r.moves = append(r.moves, move{r.at(f.Name), to})
	}
}

// clear makes sure that nothing is in the way: what is there is an error, or is set aside.
func (r *restoring) clear() (said string, err error) {
	var there []string
	for _, m := range r.moves {
		if same(m.from, m.to) {
			continue
		}
		for _, path := range []string{m.to, m.to + "-wal", m.to + "-shm", m.to + ".verified"} {
			if !gone(path) {
				there = append(there, path)
			}
		}
	}
	if len(there) == 0 {
		return "", nil
	}
	if !r.replace {
		return "", &cli.SetupError{Err: fmt.Errorf("%s is there already%s; nothing was changed", there[0], others(len(there)-1)), Do: "--replace sets it aside"}
	}
	aside := filepath.Join(r.places.StateDir, "replaced-"+time.Now().Format("20060102-150405"))
	for i, path := range there {
		to := filepath.Join(aside, fmt.Sprintf("%03d-%s", i, filepath.Base(path)))
		if err := os.MkdirAll(aside, 0o700); err != nil {
			return "", err
		}
		if err := carryFile(path, to); err != nil {
			return "", fmt.Errorf("setting %s aside: %w", path, err)
		}
	}
	return fmt.Sprintf("%s of before set aside in %s", cli.Count(len(there), "file"), aside), nil
}

func others(n int) string {
	if n == 0 {
		return ""
	}
	return ", and " + cli.Count(n, "more file")
}

// same reports whether two files have the same small content.
func same(a, b string) bool {
	one, err := os.ReadFile(a)
	if err != nil {
		return false
	}
	two, err := os.ReadFile(b)
	return err == nil && string(one) == string(two)
}

// carryFile moves a file into a folder that it makes, also to another disk.
func carryFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if os.Rename(from, to) == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	into, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(into, source)
	if err = errors.Join(err, into.Sync(), into.Close()); err != nil {
		return err
	}
	return os.Remove(from)
}

// restored returns the documents that are restored. Logins of the page are not: those that ended after the backup, by
// signing out, would be good again, and so would links that were used up.
func restored(all []pgstore.Document, continues bool) []pgstore.Document {
	return slices.DeleteFunc(all, func(d pgstore.Document) bool { return !continues && strings.HasPrefix(d.Kind, SignIns+"-") })
}

// intoDatabase copies the store into the database of the configuration, which has none yet.
func (r *restoring) intoDatabase(ctx context.Context, staged config.Audit, continues bool) error {
	source, err := sqlstore.Carry(ctx, File(staged))
	if err != nil {
		return err
	}
	all := pgstore.WithDocuments{Carried: source}
	text, err := os.ReadFile(r.at(sharedIn))
	if err == nil {
		err = json.Unmarshal(text, &all.Documents)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		all.Documents = restored(all.Documents, continues)
		err = pgstore.Receive(ctx, Database(r.cfg.Audit), all)
	}
	if err = errors.Join(err, source.Close()); err != nil {
		return err
	}
	_, _, err = carryRequests(ctx, staged, r.cfg.Audit)
	return err
}
