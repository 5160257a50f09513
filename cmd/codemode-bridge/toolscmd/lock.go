package toolscmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/lockfile"
	"codemode-bridge/bridge/pins"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// lock is the command that writes, checks and accepts the lock file.
func (con *Bridge) lock() *cobra.Command {
	var check, accept bool
	c := &cobra.Command{
		Use: "lock", Short: "Write the accepted tools into codemode.lock, check that, or accept it", Args: cli.NoArgs,
		Long: "Writes codemode.lock beside the configuration file (NAME.codemode.lock beside NAME.json): the servers, and which\n" +
			"definitions of their tools are accepted here. Keep it in version control. Elsewhere, or after the configuration was\n" +
			"moved, --accept shows what it would accept, with the descriptions, and asks once, at a terminal; where there are\n" +
			"approvers, that takes one with the role admin. --check connects to the servers, prints where they differ from the\n" +
			"file and how many tools that is, and exits with 1 if they differ or one could not be asked. What the file has of a\n" +
			"server that cannot be asked stays; if none can be asked, nothing is written, and the exit code is 1.",
		RunE: func(c *cobra.Command, _ []string) error {
			if check && accept {
				return &cli.UsageError{Err: errors.New("--check and --accept exclude each other")}
			}
			if accept && !con.HasPerson() {
				return &cli.UsageError{Err: fmt.Errorf("there is no terminal here, and what is accepted must have been seen: run %s at one", con.Typed("tools lock --accept"))}
			}
			cfg, err := con.Load()
			if err != nil {
				return err
			}
			switch {
			case check:
				return checkLock(c.Context(), con, cfg)
			case accept:
				return acceptLock(c.Context(), con, cfg)
			}
			return writeLock(c.Context(), con, cfg)
		},
	}
	c.Flags().BoolVar(&check, "check", false, "change nothing; print how the servers differ from the file")
	c.Flags().BoolVar(&accept, "accept", false, "accept what the file proposes")
	con.JSONFlag(c)
	return c
}

// A Listing is what a server lists, or why it could not be asked.
type Listing struct {
	Tools  []catalog.Definition
	Failed string
}

// lockable returns the names of the servers that a lock file is about: those that are on,
// without the built-in ones, whose tools change with the program.
func lockable(cfg *config.Config) []string {
	return slices.DeleteFunc(cfg.ServerNames(), func(name string) bool {
		s := cfg.Servers[name]
		return s.Disabled || s.Type == config.KindBuiltin
	})
}

// readLock reads the lock file.
func readLock(store *pins.Store) (lock *lockfile.Lock, path string, err error) {
	if lock, path, err = store.Lock(); err != nil {
		err = fmt.Errorf("%w (put it right, or take the last good version out of version control)", err)
	}
	return lock, path, err
}

// ask asks the servers for their tools, and says which could not be asked; what follows
// from that is added to the sentence.
func ask(ctx context.Context, con *Bridge, cfg *config.Config, follows func(server string) string) (map[string]Listing, error) {
	if names := lockable(cfg); !con.JSON && len(names) > 0 {
		con.Step("connecting to " + cli.Count(len(names), "server"))
	}
	all, err := con.List(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, name := range lockable(cfg) {
		if why := all[name].Failed; why != "" {
			con.Told("server %s could not be asked: %s%s", name, canon.Escape(why), follows(name))
		}
	}
	return all, nil
}

// writeLock writes what is accepted here.
func writeLock(ctx context.Context, con *Bridge, cfg *config.Config) error {
	store := con.Pins(cfg)
	was, path, err := readLock(store)
	if err != nil {
		return err
	}
	listed, err := ask(ctx, con, cfg, func(name string) string {
		if old := was.Server(name); old != nil {
			return "; the file keeps the " + cli.Count(len(old.Tools), "tool") + " that it has of it"
		}
		return "; the file has nothing of it"
	})
	if err != nil {
		return err
	}
	failed := failures(cfg, listed)
	if all := lockable(cfg); len(all) > 0 && len(failed) == len(all) {
		return fmt.Errorf("%s is not written: %s", con.HomeShort(path), noneAsked(failed))
	}
	err = con.Record(ctx, cfg, func(rec pins.Recorder) error { // as a bridge that meets them
		for _, name := range lockable(cfg) {
			if l := listed[name]; l.Failed == "" {
				_, events, err := store.Observe(name, l.Tools, Rules(cfg.Servers[name]), time.Now())
				for _, r := range pins.Records(events) {
					rec.Enqueue(ctx, r)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	next := &lockfile.Lock{Servers: map[string]*lockfile.Server{}}
	out := 0
	for _, name := range cfg.ServerNames() {
		old := was.Server(name)
		l, asked := listed[name]
		if !slices.Contains(lockable(cfg), name) || !asked || l.Failed != "" {
			if old != nil && cfg.Servers[name].Type != config.KindBuiltin {
				next.Servers[name] = old
			}
			continue
		}
		accepted, err := store.Of(name, l.Tools, Rules(cfg.Servers[name]))
		if err != nil {
			return err
		}
		s := &lockfile.Server{Identity: con.Identities(cfg)[name], Tools: map[string]lockfile.Tool{}}
		for _, d := range l.Tools {
			line, has := was.Tool(name, d.Name)
			switch digest := accepted[d.Name]; {
			case digest != "":
				s.Tools[d.Name] = lockfile.Tool{Digest: digest}
			case has:
				s.Tools[d.Name] = line
				out++
			default:
				out++
			}
		}
		next.Servers[name] = s
	}
	giveNames(cfg, next, store.Kept())
	if err := saveLock(con, path, was, next, failed); err != nil {
		return err
	}
	if out > 0 {
		con.Told("%s not accepted as listed: the file has no new line for them; %s shows them", isOrAre(out, "tool"), con.Typed("tools review"))
	}
	return nil
}

func isOrAre(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return cli.Count(n, thing) + " are"
}

// giveNames gives the tools of a lock the names that scripts call them by.
func giveNames(cfg *config.Config, lock *lockfile.Lock, kept map[catalog.ToolRef]string) {
	from := catalog.Sources{Order: cfg.ServerOrder(), Kept: kept}
	for name, s := range lock.Servers {
		server := catalog.Server{Name: name}
		for tool := range s.Tools {
			server.Tools = append(server.Tools, catalog.Definition{Name: tool})
		}
		from.Servers = append(from.Servers, server)
	}
	for _, t := range from.Build().Tools() {
		if t.Server != "" {
			line := lock.Servers[t.Server].Tools[t.Name]
			line.Script = t.Script
			lock.Servers[t.Server].Tools[t.Name] = line
		}
	}
}

// A failure is a server that could not be asked, and why.
type failure struct {
	Server string `json:"server"`
	Error  string `json:"error"`
}

// failures returns the servers that could not be asked, in the order of [lockable].
func failures(cfg *config.Config, listed map[string]Listing) []failure {
	all := []failure{}
	for _, name := range lockable(cfg) {
		if why := listed[name].Failed; why != "" {
			all = append(all, failure{name, why})
		}
	}
	return all
}

// noneAsked says that all servers failed; why each did has been said.
func noneAsked(failed []failure) string {
	if len(failed) == 1 {
		return "its only server, " + failed[0].Server + ", could not be asked"
	}
	return "none of the " + cli.Count(len(failed), "server") + " could be asked: " + names(failed)
}

func names(failed []failure) string {
	var all []string
	for _, f := range failed {
		all = append(all, f.Server)
	}
	return strings.Join(all, ", ")
}

// saveLock writes a lock file, and prints what has changed.
func saveLock(con *Bridge, path string, was, next *lockfile.Lock, failed []failure) error {
	changes := lockfile.Compare(was, next)
	if was == nil || len(changes) > 0 {
		if err := atomicfile.Replace(path, next.Text(), atomicfile.Options{Mode: 0o644}); err != nil {
			return fmt.Errorf("writing the lock file: %w", err)
		}
	}
	if con.JSON {
		return con.PrintJSON(map[string]any{"file": path, "digest": next.Digest(), "servers": len(next.Servers), "tools": next.Count(), "changes": append([]lockfile.Change{}, changes...), "failed": failed})
	}
	if was != nil {
		for _, c := range changes {
			fmt.Fprintln(con.Out, changeText(c))
		}
	}
	said := "is as it was"
	if was == nil || len(changes) > 0 {
		said = "is written"
	}
	fmt.Fprintf(con.Out, "%s %s: %s, %s\n", con.HomeShort(path), said, cli.Count(len(next.Servers), "server"), cli.Count(next.Count(), "tool"))
	return nil
}

// changeText is a change for people.
func changeText(c lockfile.Change) string {
	name := canon.Escape(c.Server) // the file's, which may name what no server is called
	if c.Tool != "" {
		name += "__" + canon.Escape(c.Tool)
	}
	return fmt.Sprintf("%s %s: %s", c.Kind, name, c.Text)
}

// checkLock prints how what the servers list differs from the lock file.
func checkLock(ctx context.Context, con *Bridge, cfg *config.Config) error {
	was, path, err := lockfile.Load(cfg.File)
	switch {
	case err != nil:
		return err
	case was == nil:
		return fmt.Errorf("there is no %s: %s writes it", filepath.Base(path), con.Typed("tools lock"))
	}
	listed, err := ask(ctx, con, cfg, func(string) string { return "" })
	if err != nil {
		return err
	}
	is, failed := &lockfile.Lock{Servers: map[string]*lockfile.Server{}}, failures(cfg, listed)
	var apart []string // servers that are not compared
	for _, name := range cfg.ServerNames() {
		switch l := listed[name]; {
		case cfg.Servers[name].Type == config.KindBuiltin:
		case cfg.Servers[name].Disabled || l.Failed != "":
			apart = append(apart, name)
			if old := was.Server(name); old != nil { // its names are taken
				is.Servers[name] = old
			}
		default:
			s := &lockfile.Server{Identity: con.Identities(cfg)[name], Tools: map[string]lockfile.Tool{}}
			for _, d := range l.Tools {
				s.Tools[d.Name] = lockfile.Tool{Digest: d.Digest()}
			}
			is.Servers[name] = s
		}
	}
	giveNames(cfg, is, pins.KeptNames(was))
	was, is = was.Without(apart...), is.Without(apart...)
	changes, counts := lockfile.Compare(was, is), lockfile.Count(was, is)
	if con.JSON {
		if err := con.PrintJSON(map[string]any{"ok": len(changes)+len(failed) == 0, "changes": append([]lockfile.Change{}, changes...), "failed": failed,
			"servers": counts.Servers, "tools": counts.Tools, "differ": counts.Differ}); err != nil {
			return err
		}
	} else {
		for _, c := range changes {
			fmt.Fprintln(con.Out, changeText(c))
		}
		fmt.Fprintf(con.Out, "%s: %s\n", filepath.Base(path), checked(counts, changes, failed))
	}
	if len(changes)+len(failed) > 0 {
		return &cli.ExitError{Code: cli.ExitFailed}
	}
	return nil
}

// checked is a check in one line: "3 of 120 tools differ; 1 server could not be asked: web".
func checked(counts lockfile.Counts, changes []lockfile.Change, failed []failure) string {
	text := fmt.Sprintf("no difference: %s of %s", cli.Count(counts.Tools, "tool"), cli.Count(counts.Servers, "server"))
	switch {
	case len(changes) > 0:
		text = fmt.Sprintf("%d of %s differ", counts.Differ, cli.Count(counts.Tools, "tool"))
	case counts.Servers == 0 && len(failed) > 0:
		text = "nothing was compared"
	}
	others := 0
	for _, c := range changes {
		if c.Tool == "" {
			others++
		}
	}
	if others > 0 {
		text += fmt.Sprintf("; %s new, gone or another", isOrAre(others, "server"))
	}
	if len(failed) > 0 {
		text += fmt.Sprintf("; %s could not be asked: %s", cli.Count(len(failed), "server"), names(failed))
	}
	return text
}

// acceptLock shows what the lock file would accept here, and accepts it once the person
// agrees.
func acceptLock(ctx context.Context, con *Bridge, cfg *config.Config) error {
	store := con.Pins(cfg)
	lock, path, err := readLock(store)
	switch {
	case err != nil:
		return err
	case lock == nil:
		return fmt.Errorf("there is no %s: %s writes it, where the tools were accepted", con.HomeShort(path), con.Typed("tools lock"))
	}
	listed, err := ask(ctx, con, cfg, func(string) string { return "" })
	if err != nil {
		return err
	}
	p, err := propose(con, cfg, store, lock, listed)
	if err != nil {
		return err
	}
	secrets, err := con.Secrets(ctx, cfg)
	if err != nil {
		return err
	}
	if err := con.Pages(con.Err, p.lines(filepath.Base(path), secrets.Hide)); err != nil {
		return err
	}
	if p.offers == 0 {
		text := "nothing of it waits to be accepted"
		if failed := failures(cfg, listed); len(failed) > 0 {
			text += ", as far as the servers could be asked; without: " + names(failed)
		}
		fmt.Fprintln(con.Out, text)
		return nil
	}
	if err := con.Drain(); err != nil {
		return err
	}
	if err := con.Confirm(fmt.Sprintf("accept %s as you saw them?", cli.Count(p.offers, "tool")), false); err != nil {
		return err
	}
	by, err := con.Admin(ctx, cfg, false)
	if err != nil {
		return err
	}
	now, counts := time.Now(), map[string]int{}
	for name, one := range p.of {
		if n := len(one.Offers); n > 0 {
			counts[name] = n
		}
	}
	return con.Record(ctx, cfg, func(rec pins.Recorder) error {
		ctx := context.WithoutCancel(ctx)
		record := pins.LockAccepted(path, lock.Digest(), counts, by, now)
		if err := rec.Record(ctx, record); err != nil {
			return fmt.Errorf("recording what %s decided: %w", by, err)
		}
		for _, name := range p.names {
			var tools []catalog.Definition
			for _, o := range p.of[name].Offers {
				tools = append(tools, o.Tool)
			}
			if len(tools) == 0 {
				continue
			}
			if err := store.AcceptLocked(name, tools, by, now); err != nil {
				record.Outcome, record.Error = ledger.Failed, canon.Escape(err.Error())
				rec.Enqueue(ctx, record)
				return fmt.Errorf("server %s: %w", name, err)
			}
		}
		fmt.Fprintf(con.Out, "%s of %s accepted by %s\n", cli.Count(p.offers, "tool"), filepath.Base(path), canon.Escape(by))
		return nil
	})
}

// A proposed is what a lock file proposes of all servers.
type proposed struct {
	digest string
	names  []string // of the servers in the file that could be asked, sorted
	of     map[string]pins.Proposal
	absent []string // servers in the file that are not configured, are off, or did not answer
	offers int
}

func propose(con *Bridge, cfg *config.Config, store *pins.Store, lock *lockfile.Lock, listed map[string]Listing) (proposed, error) {
	p := proposed{digest: lock.Digest(), of: map[string]pins.Proposal{}}
	for name := range lock.Servers {
		l, asked := listed[name]
		if !asked || l.Failed != "" || !slices.Contains(lockable(cfg), name) {
			p.absent = append(p.absent, name)
			continue
		}
		one, err := store.Propose(name, l.Tools)
		if err != nil {
			return p, err
		}
		p.of[name], p.names, p.offers = one, append(p.names, name), p.offers+len(one.Offers)
	}
	slices.Sort(p.names)
	slices.Sort(p.absent)
	return p, nil
}

// lines is the proposal for people: the numbers first, then what would be accepted, by
// server, with all that a model would read of each tool.
func (p proposed) lines(file string, hide func(string) string) []string {
	first := fmt.Sprintf("%s (%s) would accept %s:", file, p.digest[:19], cli.Count(p.offers, "tool"))
	if p.offers == 0 {
		first = fmt.Sprintf("%s (%s) would accept nothing that is not accepted here:", file, p.digest[:19])
	}
	all := []string{first}
	for _, name := range p.names {
		one := p.of[name]
		if one.Other {
			all = append(all, fmt.Sprintf("  %s  is another server here than in the file (its program, arguments or address differ): none of its tools", name))
			continue
		}
		text := fmt.Sprintf("  %s  %d to accept, %d accepted already", name, len(one.Offers), one.Agreed)
		for _, more := range []struct {
			n    int
			what string
		}{{len(one.Differs), "that the server lists otherwise"}, {len(one.Extra), "that the file does not have"}, {len(one.Missing), "that the server does not list"}, {one.Blocked, "blocked here"}} {
			if more.n > 0 {
				text += fmt.Sprintf(", %d %s", more.n, more.what)
			}
		}
		all = append(all, text)
	}
	for _, name := range p.absent { // as the file names it
		all = append(all, fmt.Sprintf("  %s  is off, did not answer or is not configured here: none of its tools", canon.Escape(name)))
	}
	for _, name := range p.names {
		one := p.of[name]
		if len(one.Offers) == 0 || one.Other {
			continue
		}
		all = append(all, "", name)
		for _, o := range one.Offers {
			all = append(all, offerLines(name, o, hide)...)
		}
	}
	return all
}

// offerLines is one tool: of one that was accepted otherwise the difference, of a new one
// its texts whole.
func offerLines(server string, o pins.Offer, hide func(string) string) []string {
	all := []string{"  " + server + "__" + canon.Escape(o.Tool.Name)}
	for _, n := range o.Notices {
		all = append(all, "    ! "+hide(n))
	}
	if o.Was != "" {
		changed := partLines(o.Difference, "    ", hide)
		if all = append(all, changed...); !slices.ContainsFunc(changed, isCut) {
			return all
		}
		all = append(all, "    part of that is cut; whole it says")
	}
	return append(all, partLines(o.Texts, "    ", hide)...)
}

// isCut reports whether package pins has left something out of a line, or lines after it.
func isCut(line string) bool {
	return strings.HasSuffix(line, " characters more") || strings.HasSuffix(line, " more lines")
}

// partLines are the lines of a difference.
func partLines(parts []pins.Part, indent string, hide func(string) string) []string {
	var all []string
	for _, part := range parts {
		all = append(all, indent+"the server's "+part.What+":")
		for _, line := range part.Lines {
			all = append(all, indent+"  "+line[:1]+" "+hide(line[1:]))
		}
	}
	return all
}

// relock writes tools that were just accepted into the lock file, if there is one.
func relock(con *Bridge, cfg *config.Config, store *pins.Store, accepted []pins.UnreviewedTool) error {
	was, path, err := readLock(store)
	if was == nil || err != nil {
		return err
	}
	next, err := lockfile.Parse(path, was.Text())
	if err != nil {
		return err
	}
	for _, w := range accepted {
		s := next.Servers[w.Server]
		if s == nil {
			s = &lockfile.Server{Tools: map[string]lockfile.Tool{}}
			next.Servers[w.Server] = s
		}
		s.Identity = con.Identities(cfg)[w.Server]
		s.Tools[raw(w.Tool)] = lockfile.Tool{Digest: w.Digest}
	}
	giveNames(cfg, next, store.Kept())
	if len(lockfile.Compare(was, next)) == 0 {
		return nil
	}
	if err := atomicfile.Replace(path, next.Text(), atomicfile.Options{Mode: 0o644}); err != nil {
		return fmt.Errorf("writing the lock file: %w", err)
	}
	con.Told("%s has that too: commit it", con.HomeShort(path))
	return nil
}

// raw is the name of a tool as its server lists it; pins quote one that is not UTF-8.
func raw(name string) string {
	if strings.HasPrefix(name, `"`) {
		if is, err := strconv.Unquote(name); err == nil && !utf8.ValidString(is) {
			return is
		}
	}
	return name
}
