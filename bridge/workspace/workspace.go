// Package workspace says where a path leads on this machine, and whether that is
// inside the folders that a script works on.
//
// The answer is a fact for policy: "writing inside the workspace" is a rule about
// where a path leads, not about how it is written. So it follows links, and where
// two programs could read a path in two ways (~, backslashes, percent signs, ".."
// after a link) it does not guess: such a path is doubtful, and never inside.
//
// Between the moment of looking and the moment in which a server opens the file,
// somebody else may change a link. Nothing here can prevent that; the gate looks
// before it asks and again before it sends, which leaves what is shorter than that.
package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A Workspace is the folders that a script works on. The zero value has none, so
// that no path is inside.
type Workspace struct {
	folders []string         // absolute, links followed
	own     []string         // the bridge's own files, as they are named and where they lead
	later   func() Workspace // of Later: the workspace, of which the rest is not known
}

// Later returns the workspace that find finds. It is found once, when it is first
// needed: whoever never names a path needs none.
func Later(find func() Workspace) Workspace {
	return Workspace{later: sync.OnceValue(func() Workspace { return find().found() })}
}

// found returns the workspace with all that is known of it.
func (w Workspace) found() Workspace {
	if w.later != nil {
		return w.later()
	}
	return w
}

// New makes a workspace of folders. It refuses folders that are too wide for one:
// the root, a home folder or one above it, and those that have the bridge's own
// files.
func New(folders, own []string) (Workspace, error) {
	var w Workspace
	seen := make(sight)
	for _, file := range own {
		w.own = append(w.own, file)
		if real, err := seen.follow(file); err == nil {
			w.own = append(w.own, real)
		}
	}
	home, _ := os.UserHomeDir() // none: nothing to compare with
	homes := []string{home}
	if real, err := seen.follow(home); home != "" && err == nil {
		homes = append(homes, real)
	}
	for _, folder := range folders {
		if !filepath.IsAbs(folder) {
			return Workspace{}, fmt.Errorf("workspace %s: not an absolute path", folder)
		}
		real, err := seen.follow(folder)
		if err != nil {
			return Workspace{}, fmt.Errorf("workspace %s: %w", folder, err)
		}
		if filepath.Dir(real) == real {
			return Workspace{}, fmt.Errorf("workspace %s: a whole disk is no workspace", folder)
		}
		for _, home := range homes {
			if home != "" && within(home, real) {
				return Workspace{}, fmt.Errorf("workspace %s: a home folder is no workspace; name the folders below that scripts work on", folder)
			}
		}
		for _, file := range w.own {
			if within(file, real) {
				return Workspace{}, fmt.Errorf("workspace %s: the bridge's own file %s is in it", folder, file)
			}
		}
		w.folders = append(w.folders, real)
	}
	return w, nil
}

// A kept is the JSON form of a workspace, which leads where it led then.
type kept struct {
	Folders []string `json:"folders,omitempty"`
	Own     []string `json:"own,omitempty"`
}

// MarshalJSON writes the folders and the bridge's own files.
func (w Workspace) MarshalJSON() ([]byte, error) {
	w = w.found()
	return json.Marshal(kept{w.folders, w.own})
}

// UnmarshalJSON reads what MarshalJSON wrote. Nothing is followed again: if a folder
// has become a link since, what it leads to is outside.
func (w *Workspace) UnmarshalJSON(text []byte) error {
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	*w = Workspace{folders: k.Folders, own: k.Own}
	return nil
}

// IsZero reports whether the workspace has no folders and no own files.
func (w Workspace) IsZero() bool {
	w = w.found()
	return len(w.folders) == 0 && len(w.own) == 0
}

// Folders returns the folders of the workspace, where they lead.
func (w Workspace) Folders() []string { return slices.Clone(w.found().folders) }

// Narrow returns the part of the workspace that is also in one of the folders:
// nothing becomes inside that was not.
func (w Workspace) Narrow(folders []string) Workspace {
	w = w.found()
	narrow := Workspace{own: w.own}
	seen := make(sight)
	for _, folder := range folders {
		real, err := seen.follow(folder)
		if err != nil {
			continue
		}
		for _, mine := range w.folders {
			switch {
			case within(real, mine):
				narrow.folders = append(narrow.folders, real)
			case within(mine, real):
				narrow.folders = append(narrow.folders, mine)
			}
		}
	}
	return narrow
}

// A Location is where a path leads.
type Location struct {
	// Path is absolute, with all links followed; the path as it was given if that
	// is not known.
	Path string
	// Inside reports whether it is in the workspace.
	Inside bool
	// Folder is the folder of the workspace that it is in.
	Folder string
	// Secret and RunsLater say what kind of file it is by its name, in words for
	// people; empty if it is neither.
	Secret, RunsLater string
	// Doubt says why programs could take the path for another one; empty if there
	// is no doubt.
	Doubt string
}

// Locate says where a path leads for a server that works in folder. A path that
// cannot be followed is doubtful.
func (w Workspace) Locate(path, folder string) Location {
	l := Location{Path: path}
	l.Secret, l.RunsLater = secret(path), runsLater(path)
	if l.Doubt = doubt(path); l.Doubt != "" {
		return l
	}
	absolute := path
	if !filepath.IsAbs(path) {
		if !filepath.IsAbs(folder) {
			l.Doubt = "it is relative to a folder that is not known"
			return l
		}
		absolute = folder + string(filepath.Separator) + path // not cleaned: see below
	}
	seen := make(sight)
	real, err := seen.follow(absolute)
	if err != nil {
		l.Doubt = err.Error()
		return l
	}
	// Some programs take ".." away before they follow links, others after.
	if cleaned, err := seen.follow(filepath.Clean(absolute)); err != nil || cleaned != real {
		l.Doubt = `".." follows a link in it`
		return l
	}
	l.Path = real
	if l.Secret == "" {
		l.Secret = secret(real)
	}
	if l.RunsLater == "" {
		l.RunsLater = runsLater(real)
	}
	w = w.found()
	for _, own := range w.own {
		if within(real, own) {
			l.Secret = "the bridge's own files"
		}
	}
	for _, mine := range w.folders {
		if within(real, mine) {
			l.Inside, l.Folder = true, mine
			break
		}
	}
	return l
}

// within reports whether path is folder or below it. Both are clean.
func within(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(folder, string(filepath.Separator)))
}

// encoded is a character in percent-encoding.
var encoded = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// taken reports whether programs take a character away from the ends of a path.
func taken(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`", r) }

// doubt says why a path could be another one for a server than for us.
func doubt(path string) string {
	switch {
	case path == "":
		return "it is empty"
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "it has a control character"
	case strings.TrimFunc(path, taken) != path:
		return "it begins or ends with a space or a quote, which some programs take away"
	case strings.HasPrefix(path, "~"):
		return "~ is a home folder to some programs and a name to others"
	case encoded.MatchString(path):
		return "it has an encoded character, which some programs decode"
	case strings.HasPrefix(path, "$"):
		return "it begins with a dollar sign, which some programs replace"
	case strings.Contains(path, "://"), strings.HasPrefix(strings.ToLower(path), "file:"):
		return "it is an address"
	case runtime.GOOS != "windows" && strings.Contains(path, `\`):
		return "it has a backslash, which some programs take for a separator"
	case runtime.GOOS == "windows":
		return doubtOnWindows(path)
	}
	for _, moving := range []string{"/proc", "/dev"} { // what is there depends on who looks
		if within(filepath.Clean(path), moving) {
			return "what is in " + moving + " depends on who looks"
		}
	}
	return ""
}

// doubtOnWindows names what Windows reads in a path besides folders and names.
func doubtOnWindows(path string) string {
	rest := strings.TrimPrefix(path, filepath.VolumeName(path))
	switch {
	case strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, "//"):
		return "it is on another machine, or a device"
	case strings.Contains(rest, ":"):
		return "it names a stream of a file"
	case strings.Contains(path, "~"):
		return "it may be a short name"
	}
	for name := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == '/' || r == '\\' }) {
		if name != "." && name != ".." && name != strings.TrimRight(name, ". ") {
			return "a name in it ends in a dot or a space, which Windows takes away"
		}
	}
	return ""
}

// maxLinks bounds the links on one way, as systems do.
const maxLinks = 40

// A sight is what was seen of files in one look, by their paths. Paths that have
// folders in common are followed with one, which asks the system once for each folder.
type sight map[string]entry

// An entry is what was seen at one path: a link, an error, or neither.
type entry struct {
	link   bool
	target string // of a link
	err    error
}

// at looks at a file, once.
func (s sight) at(path string) entry {
	if e, ok := s[path]; ok {
		return e
	}
	var e entry
	info, err := os.Lstat(path)
	if e.err = err; err == nil && info.Mode()&(os.ModeSymlink|os.ModeIrregular) != 0 {
		e.link = true
		e.target, e.err = os.Readlink(path)
	}
	s[path] = e
	return e
}

// follow returns where an absolute path leads, with all links on the way followed.
// What does not exist yet leads to itself, below what exists.
func (s sight) follow(path string) (string, error) {
	volume := filepath.VolumeName(path)
	at := volume + string(filepath.Separator)
	todo := split(path[len(volume):])
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := at + name
		if at[len(at)-1] != filepath.Separator {
			next = at + string(filepath.Separator) + name
		}
		is := s.at(next)
		switch {
		case is.link:
		case errors.Is(is.err, os.ErrNotExist):
			if slices.Contains(todo, "..") {
				return "", errors.New(`".." follows a folder in it that does not exist`)
			}
			return filepath.Join(append([]string{next}, todo...)...), nil
		case is.err == nil:
			at = next
			continue
		}
		if is.err != nil {
			return "", fmt.Errorf("it cannot be followed: %w", is.err)
		}
		if links++; links > maxLinks {
			return "", errors.New("it has too many links")
		}
		target := is.target
		if filepath.IsAbs(target) {
			volume = filepath.VolumeName(target)
			at, target = volume+string(filepath.Separator), target[len(volume):]
		}
		todo = append(split(target), todo...)
	}
	return at, nil
}

// split returns the names in a path.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator || r == '/' })
}
