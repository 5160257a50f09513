package setup

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
)

// An Installation is a change of a client's file that is being prepared: the bridge
// goes in and, in a take-over, servers of the client move out, into the bridge's own
// configuration.
type Installation struct {
	Place clients.Place
	// Moving are the servers that a take-over moves.
	Moving []*Server
	// Before and After are the bridge's configuration, which changes if servers
	// move, or questions are queued; nil if neither is wanted.
	Before, After []byte

	// Choose is asked before a take-over gives other clients what they did not have, or
	// has one server twice; nil moves all of it.
	Choose Choice

	records clients.Records
	file    *clients.File
	servers []clients.Server // that the file has
	staying map[string]string
	found   *Import // those of a take-over
	text    []byte  // of the file after the change
	record  *clients.Record
	earlier *clients.Record
}

// Install begins an installation into a client's file: it reads the file, and the
// record of an earlier installation.
func Install(place clients.Place, records clients.Records) (*Installation, error) {
	in := &Installation{Place: place, records: records, staying: map[string]string{}}
	var err error
	if in.file, in.servers, err = place.Read(); err != nil {
		return nil, err
	}
	if in.earlier, err = records.Load(place); err != nil {
		return nil, err
	}
	return in, nil
}

// TakeOver finds which servers of the client can move into the bridge's
// configuration, and adds them to its text. Parse reads such a text. Accept is given
// those servers of which the person can accept what is known, and how to ask; it marks
// those that are Accepted. Boxes is whether they are confined, too.
func (in *Installation) TakeOver(system clients.System, boxes bool, text []byte, parse func(text []byte) (*config.Config, error), accept func(some []*Server, question string) error) error {
	cfg, err := parse(text)
	if err != nil {
		return err
	}
	i := NewImport(system)
	if boxes {
		i.Boxes = NewBoxes(system, cfg.Evaluation.Workspace...)
	}
	if err := i.Configured(text, cfg); err != nil {
		return err
	}
	in.Before, in.After, in.found = text, text, i
	var moving []*Server
	for _, s := range in.servers {
		if s.Name == EntryName {
			continue
		}
		one := i.Add(s, in.Place)
		switch {
		case s.Problem != "":
			in.staying[s.Name] = s.Problem
		case len(one.Unset) > 0 && !s.Disabled:
			in.staying[s.Name] = "set " + one.unset() + " first"
		case one.There && !s.Disabled && cfg.Servers[one.As] != nil && cfg.Servers[one.As].Disabled:
			in.staying[s.Name] = "the bridge has it disabled; first: codemode-bridge servers enable " + one.As
		default:
			moving = append(moving, one)
		}
	}
	if in.Choose != nil {
		if twins := Twins(moving); len(twins) > 0 {
			keep, err := in.Choose(TwinsQuestion(twins), twins)
			if err != nil {
				return err
			}
			if !keep {
				moving = in.leave(moving, twins, "the bridge has it with other arguments or variables")
			}
		}
		if moving, err = in.shares(system, moving, in.Choose); err != nil {
			return err
		}
	}
	if some, question := Acceptable(moving); len(some) > 0 {
		if err := accept(some, question); err != nil {
			return err
		}
	}
	for _, one := range moving {
		if !one.There {
			next, err := in.with(one, cfg, parse)
			if err != nil && one.Accepted && one.Unboxed == "" {
				one.Unboxed = firstProblem(err)
				next, err = in.with(one, cfg, parse)
			}
			if err != nil {
				in.staying[one.Name] = firstProblem(err)
				continue
			}
			in.After = next
		}
		in.Moving = append(in.Moving, one)
	}
	return nil
}

// with is our configuration with one more server.
func (in *Installation) with(one *Server, cfg *config.Config, parse func(text []byte) (*config.Config, error)) ([]byte, error) {
	next, err := jsonc.Insert(in.After, ServersKey(cfg)+"/"+one.As, one.Text())
	if err == nil {
		_, err = parse(next)
	}
	return next, err
}

// Prepare works out the client's file, so that it starts the bridge by command.
// Nothing is true if the file needs no change.
func (in *Installation) Prepare(command []string) (nothing bool, err error) {
	_, same, err := in.Place.Installed(in.file.Text, EntryName, command)
	same = same && len(in.Moving) == 0 && !in.moves()
	if err != nil || same {
		return same, err
	}
	var out []string
	for _, s := range in.Moving {
		out = append(out, s.Name)
	}
	in.text, in.record, err = in.Place.Install(in.file.Text, in.file.Existed, EntryName, command, out, in.earlier)
	if err == nil && in.Place.Scope == clients.Managed {
		in.record.Making(in.file, in.earlier)
	}
	return false, err
}

// Diffs are how the bridge's configuration and the client's file change.
func (in *Installation) Diffs(configName, fileName string) (configuration, file []string) {
	var secrets []string
	for _, s := range in.servers {
		secrets = append(secrets, s.Secrets...)
	}
	if in.moves() {
		configuration = Diff(configName, in.Before, in.After, append(Secrets(in.Before, in.After), secrets...))
	}
	return configuration, Diff(fileName, in.file.Text, in.text, secrets)
}

// moves reports whether the bridge's configuration changes.
func (in *Installation) moves() bool { return string(in.After) != string(in.Before) }

// Write makes the change: it saves the record that undoes it, has rewrite change the
// bridge's configuration from Before to After, and writes the client's file, which
// stays as it was if any of that fails. Backup names the copy that was made of it; it
// may be empty.
func (in *Installation) Write(rewrite func() error) (backup string, err error) {
	if in.file.Existed && in.record.Backup == "" {
		if backup, err = in.file.Backup(); err != nil {
			return "", err
		}
		in.record.Backup = backup
	}
	if err := in.records.Save(in.Place, in.record); err != nil {
		return "", errors.Join(err, removeIf(backup))
	}
	if in.moves() {
		err = rewrite()
	}
	if err == nil {
		err = in.file.Write(in.text)
	}
	if err == nil {
		return backup, nil
	}
	restored := in.records.Drop(in.Place)
	if in.earlier != nil {
		restored = in.records.Save(in.Place, in.earlier)
	}
	return "", errors.Join(err, restored, removeIf(backup))
}

// removeIf removes the file at path, unless path is empty.
func removeIf(path string) error {
	if path == "" {
		return nil
	}
	return os.Remove(path)
}

// Staying says which servers the client keeps for itself: a line for each that could
// not move, with the reason, and the names of those that were not to move.
func (in *Installation) Staying() (why, own []string) {
	moved := map[string]bool{EntryName: true}
	for _, s := range in.Moving {
		moved[s.Name] = true
	}
	for _, s := range in.servers {
		if reason, ok := in.staying[s.Name]; ok {
			why = append(why, fmt.Sprintf("%s stays with %s: %s", canon.Escape(s.Name), in.Place.Client.Title, canon.Escape(reason)))
		} else if !moved[s.Name] && !s.Disabled && s.Problem == "" {
			own = append(own, canon.Escape(s.Name))
		}
	}
	return why, own
}

// Row is an installation as --json prints it.
func (in *Installation) Row(written bool, backup string) map[string]any {
	row := map[string]any{"client": in.Place.Client.Name, "scope": in.Place.Scope, "file": in.Place.File, "written": written}
	if backup != "" {
		row["backup"] = backup
	}
	if in.Before != nil {
		row["moved"], row["staying"] = Rows(in.Moving), in.staying
	}
	return row
}

// A Removal undoes an installation.
type Removal struct {
	Place clients.Place
	// Back are the client's own servers that it gets back.
	Back []string
	// Whole is set if the file becomes what it was before the installation. Backup
	// is the copy from before it, if there is one.
	Whole  bool
	Backup string

	records clients.Records
	record  *clients.Record
	file    *clients.File
	text    []byte // of the file after the change; nil if it is to be removed
}

// ErrNotInstalled is the error of removing the bridge from a client that does not
// have it.
var ErrNotInstalled = errors.New("has no " + EntryName)

// Uninstall prepares to undo the installation into a client's file. Other edits since
// then stay.
func Uninstall(place clients.Place, records clients.Records) (*Removal, error) {
	record, err := records.Load(place)
	if err != nil {
		return nil, err
	}
	file, servers, err := place.Read()
	if err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(servers, func(s clients.Server) bool { return s.Name == name })
	}
	if record == nil { // put in by hand, or by a bridge whose state is gone
		if !has(EntryName) {
			return nil, ErrNotInstalled
		}
		record = &clients.Record{Name: EntryName, Existed: true}
	}
	var backup []byte
	if record.Backup != "" {
		kept, err := clients.ReadFile(record.Backup)
		if err != nil {
			return nil, err
		}
		backup = kept.Text
	}
	r := &Removal{Place: place, Back: []string{}, Backup: record.Backup, records: records, record: record, file: file}
	if r.text, err = place.Uninstall(file.Text, backup, record); err != nil {
		return nil, err
	}
	for _, m := range record.Moved {
		if m.Name == EntryName || !has(m.Name) {
			r.Back = append(r.Back, m.Name)
		}
	}
	r.Whole = clients.SHA(r.text) == record.Before
	return r, nil
}

// Diff is how the client's file changes.
func (r *Removal) Diff(name string) []string {
	var secrets []string
	for _, text := range [][]byte{r.file.Text, r.text} {
		servers, err := r.Place.Servers(text)
		if err != nil {
			continue // what cannot be read was refused already
		}
		for _, s := range servers {
			secrets = append(secrets, s.Secrets...)
		}
	}
	slices.Sort(secrets)
	return Diff(name, r.file.Text, r.text, slices.Compact(secrets))
}

// Write makes the change, and forgets the installation.
func (r *Removal) Write() error {
	var err error
	if r.text == nil {
		err = r.file.Remove()
	} else {
		err = r.file.Write(r.text)
	}
	if err == nil {
		err = r.records.Drop(r.Place)
	}
	if err == nil && r.Whole && r.Backup != "" { // it holds nothing that the file does not
		if err = os.Remove(r.Backup); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err == nil && r.text == nil {
		r.record.Tidy()
	}
	return err
}
