package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// lowSpace and noSpace are how many bytes should and must be free on the store's
// disk.
const lowSpace, noSpace = 1 << 30, 64 << 20

// longUnverified is how long ago the log may have been verified whole: bridges that run
// do it once a day.
const longUnverified = 3 * 24 * time.Hour

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// store checks the audit log, and the folders and files that things are kept in.
func (up *Checkup) store(ctx context.Context) []Finding {
	if up.config == nil {
		return nil
	}
	var all []Finding
	if up.NoPlaces != nil {
		all = append(all, failing("", up.NoPlaces.Error(), "set HOME, or XDG_STATE_HOME and XDG_CACHE_HOME"))
	}
	audit := up.config.Audit
	loose := up.open() // before SQLite makes more of them
	folders := []string{up.State, up.Cache}
	if audit.Enabled && audit.Database != "" {
		all = append(all, up.log(ctx, audit))
	} else if audit.Enabled && audit.Path != "" {
		all = append(all, up.log(ctx, audit))
		if folder := filepath.Dir(audit.Path); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	} else if !audit.Enabled {
		all = append(all, warning("", "the audit log is off: no record is kept, and no run can go on after a restart", "remove audit.enabled from the configuration"))
	}
	if audit.Enabled && audit.Centre != nil {
		all = append(all, up.centre(ctx, audit)...)
	}
	if up.config.Reached != nil {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		for _, to := range up.config.Reached(ctx) {
			if to.Err != nil {
				all = append(all, failing(to.About, to.Err.Error(), to.Do))
			} else {
				all = append(all, fine(to.About, to.Text))
			}
		}
	}
	for _, folder := range folders {
		if folder != "" {
			all = append(all, up.folder(folder))
		}
	}
	return append(all, loose...)
}

// log checks the audit log.
func (up *Checkup) log(ctx context.Context, audit Audit) Finding {
	name, elsewhere := up.Short(audit.Path), "name another file with audit.path"
	if audit.Database != "" {
		name, elsewhere = audit.Database, "name another database with store"
	} else if _, err := os.Stat(audit.Path); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(audit.Path + ".key"); errors.Is(err, fs.ErrNotExist) {
			return fine(name, "there is no audit log yet")
		}
	}
	switch log, err := audit.Open(ctx); {
	case err == nil && log.Missing:
		return fine(name, "it answers, and there is no store in it yet")
	case err == nil:
		text := fmt.Sprintf("it opens, and its end is whole (last row %d); ", log.Last)
		if n := len(log.Bridges); n == 1 {
			text += "one bridge uses it (" + log.Bridges[0] + "); "
		} else if n > 1 {
			text += fmt.Sprintf("%d bridges share it (%s); ", n, strings.Join(log.Bridges, "; "))
		}
		switch age := time.Since(log.Whole); {
		case log.Whole.IsZero():
			return fine(name, text+"all of it was not verified yet, which a bridge does while it runs; audit verify does it now")
		case age > longUnverified:
			return warning(name, text+"all of it was last verified on "+day(log.Whole), "leave a bridge running for a while, which verifies it once a day, or use "+up.Typed("audit verify"))
		}
		return fine(name, text+"all of it was last verified on "+day(log.Whole))
	case !log.Opened:
		return failing(name, strings.TrimPrefix(err.Error(), "opening "+name+": "), "put that right, or "+elsewhere)
	case log.Damaged:
		return failing(name, err.Error(), up.Typed("audit verify")+" says more; "+up.Typed("audit repair")+" sets it aside and begins a new one: until then calls are refused")
	case audit.Database != "":
		return failing(name, err.Error(), "put that right: until then calls are refused")
	default:
		return failing(name, err.Error(), up.Typed("audit verify")+" says more")
	}
}

// centre says whether the rows reach the centre at which this machine is enrolled.
func (up *Checkup) centre(ctx context.Context, audit Audit) []Finding {
	is, err := audit.Centre(ctx)
	if err != nil {
		return []Finding{failing("centre", err.Error(), up.Typed("enroll --status")+" says more")}
	}
	text := fmt.Sprintf("it has the rows up to %d; %d wait", is.Last, is.Waiting)
	if !is.Reached.IsZero() {
		text += "; it answered last on " + day(is.Reached)
	}
	switch {
	case is.Centre == "":
		return nil
	case is.Problem != "" && is.Final:
		return []Finding{failing(is.Centre, is.Problem, "ask its administrator; what waits is kept here")}
	case is.Problem != "":
		return []Finding{warning(is.Centre, is.Problem+"; "+text, "nothing is lost: the rows are sent when it can be reached")}
	case is.Skew != 0:
		return []Finding{warning(is.Centre, fmt.Sprintf("%s; its clock is %v ahead of this machine's", text, is.Skew.Round(time.Second)), "set this machine's clock: the times in its records are wrong")}
	}
	return []Finding{fine(is.Centre, text)}
}

// folder checks whether files can be written to a folder, or to where it would be
// made, and how much space there is.
func (up *Checkup) folder(folder string) Finding {
	name := up.Short(folder)
	there := folder
	for {
		info, err := os.Stat(there)
		if err == nil && !info.IsDir() {
			return failing(name, there+" is a file, not a folder", "move it away")
		}
		if err == nil || filepath.Dir(there) == there {
			break
		}
		there = filepath.Dir(there)
	}
	f, err := os.CreateTemp(there, ".codemode-doctor-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	if err != nil {
		return failing(name, "nothing can be written there: "+err.Error(), "make it yours and writable, or set XDG_STATE_HOME and XDG_CACHE_HOME")
	}
	free, err := freeSpace(there)
	switch {
	case err != nil:
		return fine(name, "writable")
	case free < noSpace:
		return failing(name, size(free)+" are free on its disk; calls are refused once nothing can be recorded", "make room, or audit prune")
	case free < lowSpace:
		return warning(name, size(free)+" are free on its disk", "make room, or let audit.keep remove old records")
	}
	return fine(name, "writable, "+size(free)+" free")
}

func size(bytes uint64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MB", bytes>>20)
	}
	return fmt.Sprintf("%d GB", bytes>>30)
}

// open looks for files that others can read.
func (up *Checkup) open() []Finding {
	if runtime.GOOS == "windows" {
		return nil
	}
	var all []string
	loose := func(path string) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	if audit := up.config.Audit; audit.Path != "" {
		for _, end := range []string{"", "-wal", "-shm", ".key"} {
			loose(audit.Path + end)
		}
		loose(audit.Requests)
	}
	_ = filepath.WalkDir(up.State, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != up.State {
			if info, err := entry.Info(); err == nil && info.Mode().Perm()&0o077 == 0 {
				return filepath.SkipDir // nobody else gets to what is in it: packages, whose modes are their own
			}
		}
		if err == nil && entry.Type().IsRegular() {
			loose(path)
		}
		return nil // what cannot be read is not open to others either
	})
	if len(all) == 0 {
		return []Finding{fine("", "what is kept is for you alone")}
	}
	for i, path := range all {
		all[i] = up.Short(path)
	}
	const few = 4
	do := "chmod 600 " + strings.Join(all, " ")
	if len(all) > few {
		do = "chmod 600 what is in " + up.Short(up.State)
		all = append(all[:few], fmt.Sprintf("and %d more", len(all)-few))
	}
	return []Finding{warning("", "others can read "+strings.Join(all, ", "), do)}
}
