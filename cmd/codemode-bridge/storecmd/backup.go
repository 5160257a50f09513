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

	"codemode-bridge/bridge/backup"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/pgstore"
	"codemode-bridge/bridge/sqlstore"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The names of a backup's files. What is below stateIn was in the state folder, below
// besideIn beside the audit log, and below configIn in the folder of the configuration.
const (
	logIn      = "store/audit.db"
	keyIn      = "store/audit.db.key"
	requestsIn = "store/audit-requests.db"
	sharedIn   = "store/documents.json"
	laptopsIn  = "store/laptops.db"
	stateIn    = "state"
	besideIn   = "beside"
	configIn   = "config"
)

// besideLog are the files and folders that are kept beside the audit log.
var besideLog = []string{"accounts.key", "store.key", "documents", "centre"}

// Backup is the command that writes all that a bridge keeps into one file.
func (g *Group) Backup() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write all that a bridge keeps into one file, while it runs", Args: cli.OneArg,
		Long: "Writes records, journals, questions and grants, accepted tools, confirmed configurations, logins, keys\nand the configuration into one file, for restore; - writes to standard output. Bridges may go on meanwhile.\n" +
			"Whoever has the file can read all of it: keep it as you keep a private key.",
		RunE: func(c *cobra.Command, args []string) error { return g.backup(c.Context(), args[0]) },
	}
}

func (g *Group) backup(ctx context.Context, to string) (err error) {
	places, cfg, err := g.places()
	if err != nil {
		return err
	}
	if to == "-" {
		if f, ok := g.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return &cli.UsageError{Err: errors.New("a backup is no text for a terminal: codemode-bridge backup - > FILE")}
		}
	} else if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return &cli.SetupError{Err: fmt.Errorf("%s is there already, and a backup replaces nothing", to), Do: "name another file, such as codemode-bridge-$(date +%F).backup"}
	}
	if Missing(cfg.Audit) {
		return fmt.Errorf("there is no audit log at %s, and so nothing to keep", cfg.Audit.Where())
	}
	// The copies are as large as the store: they belong on its disk, not in a /tmp in memory.
	staging, err := os.MkdirTemp(filepath.Dir(cfg.Audit.Path), ".backup-*")
	if err != nil {
		return &cli.SetupError{Err: fmt.Errorf("making a folder for copies of the store: %w", err), Do: "audit.path of the configuration says where the store is; a backup needs room beside it"}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	m := backup.Manifest{Version: g.Version, Time: time.Now().UTC(), ConfigFile: cfg.File, Database: InDatabase(cfg.Audit), Wrapped: InDatabase(cfg.Audit) && !cfg.Audit.StoreKey.IsZero()}
	sources, err := g.stage(ctx, cfg, staging)
	if err != nil {
		return err
	}
	rest, left, err := kept(places, cfg)
	if err != nil {
		return err
	}
	sources = append(sources, rest...)
	if to == "-" {
		err = backup.Write(g.Out, m, sources)
	} else {
		err = writeWhole(to, func(w io.Writer) error { return backup.Write(w, m, sources) })
	}
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	fmt.Fprintf(g.Err, "the log is whole, and the backup has all of it, with %s\n", cli.Count(len(sources), "file"))
	for _, one := range left {
		fmt.Fprintf(g.Err, "not in it: %s\n", one)
	}
	return nil
}

// places says where everything is, and what the configuration says.
func (g *Group) places() (config.Locations, *config.Config, error) {
	places, err := config.Paths(g.Env)
	if err != nil {
		return places, nil, &cli.SetupError{Err: err, Do: "set HOME, or XDG_CONFIG_HOME, XDG_STATE_HOME and XDG_CACHE_HOME"}
	}
	cfg, err := g.InForce()
	return places, cfg, err
}

// stage copies the store into a folder, as it is at one instant, and verifies the copy.
func (g *Group) stage(ctx context.Context, cfg *config.Config, staging string) ([]backup.Source, error) {
	place := cfg.Audit
	at := func(name string) string { return filepath.Join(staging, filepath.FromSlash(name)) }
	if err := os.MkdirAll(at("store"), 0o700); err != nil {
		return nil, err
	}
	var sources []backup.Source
	if InDatabase(place) {
		shared, err := stageDatabase(ctx, place, at)
		if err != nil {
			return nil, err
		}
		sources = append(sources, backup.Source{Name: sharedIn, Data: shared})
	} else if err := stageFiles(ctx, place, at); err != nil {
		return nil, err
	}
	copied := config.Audit{Enabled: true, Path: at(logIn), Durability: config.DurabilityDefault}
	if _, err := g.verified(ctx, copied); err != nil {
		return nil, err
	}
	key := backup.Source{Name: keyIn, Path: at(keyIn)}
	if InDatabase(place) && !place.StoreKey.IsZero() {
		wrapped, err := os.ReadFile(at("wrapped"))
		if err != nil {
			return nil, err
		}
		key = backup.Source{Name: keyIn, Data: wrapped}
	}
	sources = append(sources, backup.Source{Name: logIn, Path: at(logIn)}, key)
	for _, name := range []string{requestsIn, laptopsIn} {
		if !gone(at(name)) {
			sources = append(sources, backup.Source{Name: name, Path: at(name)})
		}
	}
	return sources, nil
}

func stageFiles(ctx context.Context, place config.Audit, at func(string) string) error {
	copies := []sqlstore.Copy{{From: place.Path, To: at(logIn)}}
	if !NeverAsked(place) {
		copies = append(copies, sqlstore.Copy{From: place.Requests(), To: at(requestsIn)})
	}
	if laptops := filepath.Join(filepath.Dir(place.Path), "laptops.db"); !gone(laptops) {
		copies = append(copies, sqlstore.Copy{From: laptops, To: at(laptopsIn)})
	}
	if err := sqlstore.Snapshot(ctx, copies...); err != nil {
		return err
	}
	key, err := os.ReadFile(place.Path + ".key")
	if err != nil {
		return fmt.Errorf("reading the key of the store: %w", err)
	}
	return os.WriteFile(at(keyIn), key, 0o600)
}

// stageDatabase copies a database into files, and returns what machines share.
func stageDatabase(ctx context.Context, place config.Audit, at func(string) string) (shared []byte, err error) {
	source, err := pgstore.Snap(ctx, Database(place))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := sqlstore.Receive(ctx, sqlstore.Options{Path: at(logIn)}, source); err != nil {
		return nil, err
	}
	into, err := sqlstore.OpenRequests(ctx, at(requestsIn))
	if err != nil {
		return nil, err
	}
	_, _, err = putRequests(ctx, source, into)
	if err = errors.Join(err, into.Close()); err != nil {
		return nil, err
	}
	if !place.StoreKey.IsZero() {
		wrapped, err := source.WrappedKey()
		if err == nil {
			err = os.WriteFile(at("wrapped"), []byte(wrapped), 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	all, err := source.Documents(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// kept returns the files besides the store, and says what is left out that a person may
// look for.
func kept(places config.Locations, cfg *config.Config) (all []backup.Source, left []string, err error) {
	add := func(from, to string) {
		if err == nil {
			var some []backup.Source
			some, err = below(from, to)
			all = append(all, some...)
		}
	}
	for _, name := range besideLog {
		add(filepath.Join(filepath.Dir(cfg.Audit.Path), name), besideIn+"/"+name)
	}
	entries, unread := os.ReadDir(places.StateDir)
	if unread != nil && !errors.Is(unread, fs.ErrNotExist) {
		return nil, nil, unread
	}
	for _, e := range entries {
		ofStore := strings.HasPrefix(e.Name(), filepath.Base(cfg.Audit.Path)) || strings.HasPrefix(e.Name(), filepath.Base(cfg.Audit.Requests()))
		if !ofStore && !passing(e.Name()) && !slices.Contains(besideLog, e.Name()) {
			add(filepath.Join(places.StateDir, e.Name()), stateIn+"/"+e.Name())
		}
		if e.Name() == "secrets" {
			left = append(left, "the values of secrets in the system's keyring (codemode-bridge secrets list names them)")
		}
	}
	folder := filepath.Dir(cfg.File)
	base := strings.TrimSuffix(filepath.Base(cfg.File), filepath.Ext(cfg.File))
	overlays, _ := filepath.Glob(filepath.Join(folder, base+".*"+filepath.Ext(cfg.File))) // the pattern is no bad one, or there are none
	for _, path := range append([]string{cfg.File, filepath.Join(folder, "codemode.lock"), filepath.Join(folder, "secrets"), cfg.Scripts.Dir}, overlays...) {
		name, outside := filepath.Rel(folder, path)
		if path == "" || outside != nil || !filepath.IsLocal(name) || name == "." {
			if _, gone := os.Lstat(path); gone == nil {
				left = append(left, path)
			}
			continue
		}
		add(path, configIn+"/"+filepath.ToSlash(name))
	}
	if InDatabase(cfg.Audit) {
		left = append(left, "what a centre keeps of its laptops, if it is in the database (pg_dump has it)")
	}
	return all, left, err
}

// passing reports whether a file of the state folder is good only while a process runs, is
// made anew when it is missing, or is part of the store.
func passing(name string) bool {
	for _, begins := range []string{"audit.db", "audit-requests.db", "laptops.db", "boxes-", "serving", ".", "replaced-"} {
		if strings.HasPrefix(name, begins) {
			return true
		}
	}
	return name == "log" || name == "windows" || lock(name)
}

func lock(name string) bool { return name == "lock" || strings.HasSuffix(name, ".lock") }

// below returns a file, or all files of a folder; none if it is missing.
func below(path, name string) (all []backup.Source, err error) {
	err = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // also one that was removed meanwhile
		}
		if err != nil || !e.Type().IsRegular() || lock(e.Name()) {
			return err
		}
		within, err := filepath.Rel(path, at)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if within != "." {
			within = name + "/" + filepath.ToSlash(within)
		} else {
			within = name
		}
		all = append(all, backup.Source{Name: within, Data: data})
		return err
	})
	return all, err
}

// writeWhole writes a new file that only the user may read, and that appears when all of it
// is on the disk.
func writeWhole(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		if p := (*fs.PathError)(nil); errors.As(err, &p) {
			err = p.Err // the name is not the one that was asked for
		}
		return &cli.SetupError{Err: fmt.Errorf("the folder %s: %w", filepath.Dir(path), err), Do: "name a file in a folder that is there and that you can write in"}
	}
	err = write(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Link(f.Name(), path) // which replaces nothing
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return errors.Join(os.Rename(f.Name(), path)) // of a file system without links
		}
	}
	return errors.Join(err, os.Remove(f.Name()))
}
