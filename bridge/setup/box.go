package setup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/profiles/known"
)

// Boxes writes the boxes that known files propose into servers. Nil proposes none.
type Boxes struct {
	// Workspace are the folders that the configuration names, and Home is the person's.
	Workspace []string
	Home      string
	// Path is the list of folders that browsers are looked for in.
	Path string
}

// NewBoxes returns Boxes for a system that can enforce them; nil if it cannot.
func NewBoxes(system clients.System, workspace ...string) *Boxes {
	if system.OS != "linux" { // boxes of other systems were never tried
		return nil
	}
	home, _ := system.Env("HOME")
	path, _ := system.Env("PATH")
	return &Boxes{slices.DeleteFunc(workspace, func(folder string) bool { return folder == "" }), home, path}
}

// A Proposal is a box for a server of the configuration.
type Proposal struct {
	Box   jsonc.Text // as "confine" has it; empty if there is none
	Flags []string   // to add to the server's args along with it
	Words string     // what it allows: "writes workspace, no network"
	Why   string     // why a server that could have one has none
	Do    string     // what the person could do about it; empty for trying one
}

// Unconfined says of a server of that name why it has no box, and what to do about it.
func (p Proposal) Unconfined(name string) string {
	do := fmt.Sprintf("codemode-bridge servers test --confined %s tries a box", name)
	if p.Do != "" {
		do = fmt.Sprintf("%s, then: codemode-bridge servers accept %s", p.Do, name)
	}
	return fmt.Sprintf("%s is not confined: %s; %s", name, canon.Escape(p.Why), do)
}

// unset is the error of a server that keeps things where a variable says, which is not
// set.
type unset string

func (name unset) Error() string {
	return fmt.Sprintf("%s is not set in its env, and without it what it keeps is in a folder of the package", string(name))
}

// Propose returns the box that is proposed for a server: that of the file that it is
// verified by, unless it has one.
func (b *Boxes) Propose(text jsonc.Text) Proposal {
	r, args := recognize(text)
	plain, err := text.MarshalJSON()
	var s started
	if b == nil || r.Box == nil || !r.Verified || err != nil || json.Unmarshal(plain, &s) != nil || s.Confine != nil {
		return Proposal{}
	}
	box := *r.Box
	if why, do := box.Fits(args, slices.Concat(slices.Collect(maps.Keys(s.Env)), s.PassEnv)); why != "" {
		return Proposal{Why: why, Do: do}
	}
	if box.Write, err = b.places(box.Write, r, s); err == nil {
		box.Read, err = b.places(box.Read, r, s)
	}
	if name, ok := errors.AsType[unset](err); ok {
		return Proposal{Why: err.Error(), Do: fmt.Sprintf("set %s to a file in a folder that it has to itself", string(name))}
	}
	if err != nil {
		return Proposal{Why: err.Error()}
	}
	if box.Browser == nil {
		return Proposal{Box: boxText(box), Words: box.String()}
	}
	return b.withBrowser(box)
}

// withBrowser returns the box of a server that starts a browser, with the flags that make
// it start in there.
func (b *Boxes) withBrowser(box known.Box) Proposal {
	program, folder := b.browser()
	if program == "" {
		return Proposal{Why: "no Chrome or Chromium was found that starts in a box, in which a snap does not", Do: "install one as a package of the system, or with npx playwright install chromium"}
	}
	if folder != "" {
		box.Read = append(slices.Clone(box.Read), folder)
	}
	flags := box.Browser.Flags(program)
	adds := strings.Join(box.Browser.Adds, " ")
	box.Browser = nil // the words below say more
	return Proposal{Box: boxText(box, "require"), Flags: flags,
		Words: fmt.Sprintf("%s; its browser is %s and has no sandbox of its own (%s): the box takes its place, and it does not start where that does not hold", box, program, adds)}
}

// started is what of a server's text decides where its box is.
type started struct {
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	PassEnv []string          `json:"passEnv"`
	Cwd     string            `json:"cwd"`
	Confine json.RawMessage   `json:"confine"`
}

// places puts paths in the place of words.
func (b *Boxes) places(all []string, r known.Recognition, s started) (paths []string, err error) {
	add := func(path string) error {
		path, err := b.place(path, s.Cwd)
		if err == nil && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		return err
	}
	for _, word := range all {
		name, variable := strings.CutPrefix(word, known.BoxEnv)
		flag, flagged := strings.CutPrefix(word, known.BoxFlag)
		switch {
		case word == known.BoxWorkspace:
			paths = append(paths, word)
		case word == known.BoxArgs:
			for _, path := range r.Paths {
				if err := add(path); err != nil {
					return nil, err
				}
			}
		case variable && s.Env[name] == "":
			return nil, unset(name)
		case variable:
			if err := add(filepath.Dir(s.Env[name])); err != nil {
				return nil, err
			}
		case flagged:
			file, err := fileOf(known.FlagValues(s.Args, flag))
			if err == nil && file != "" {
				err = add(filepath.Dir(file))
			}
			if err != nil {
				return nil, err
			}
		default: // below the home folder: it is not in the box if it is not there
			if _, err := os.Stat(filepath.Join(b.Home, strings.TrimPrefix(word, "~/"))); err == nil {
				paths = append(paths, word)
			}
		}
	}
	return paths, nil
}

// fileOf is the file that the values of a flag name, as a path or as sqlite:///path; empty
// for a database in memory.
func fileOf(values []string) (string, error) {
	switch {
	case len(values) != 1:
		return "", errors.New("which file it works on is not told once")
	case strings.Contains(values[0], "${"):
		return "", errVariable
	}
	path, address := strings.CutPrefix(values[0], "sqlite:///")
	switch {
	case !address:
		return path, nil
	case path == ":memory:":
		return "", nil
	case path == "" || strings.ContainsAny(path[:1], "/.~:") || strings.ContainsAny(path, "%?#"):
		return "", fmt.Errorf("which file is %s cannot be told", canon.Escape(values[0]))
	}
	return "/" + path, nil
}

var errVariable = errors.New("a variable says which folder it works on")

// place is a folder as a box has it.
func (b *Boxes) place(path, cwd string) (string, error) {
	full := path
	switch below, home := strings.CutPrefix(path, "~/"); {
	case strings.Contains(path, "${"):
		return "", errVariable
	case home:
		full = filepath.Join(b.Home, below)
	case path == "~":
		full = b.Home
	case !filepath.IsAbs(path) && filepath.IsAbs(cwd):
		full = filepath.Join(cwd, path)
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("%s starts at whichever folder the bridge is started in", canon.Escape(path))
	}
	full = filepath.Clean(full)
	if rest, err := filepath.Rel(full, cmp.Or(b.Home, "/")); err == nil && rest != ".." && !strings.HasPrefix(rest, "../") {
		return "", fmt.Errorf("%s is more than a box may have", canon.Escape(path))
	}
	if slices.Equal(b.Workspace, []string{full}) {
		return known.BoxWorkspace, nil
	}
	return full, nil
}

// boxText is a box as a configuration has it, with more keys that are true.
func boxText(b known.Box, more ...string) jsonc.Text {
	text := `{ "write": ` + flatJSON(b.Write)
	if len(b.Read) > 0 {
		text += `, "read": ` + flatJSON(b.Read)
	}
	switch {
	case b.Net.Any:
		text += `, "net": "any"`
	case len(b.Net.Hosts) == 0:
		text += `, "net": "none"`
	default:
		text += `, "net": ` + flatJSON(b.Net.Hosts)
	}
	if b.Run != nil {
		text += `, "run": ` + flatJSON(b.Run)
	}
	for _, key := range more {
		text += fmt.Sprintf(", %q: true", key)
	}
	return jsonc.Text(text + " }")
}

// ConfineIn returns the text of a configuration with the box that is proposed for the
// server at a JSON pointer, with the flags that go with it, and what that allows. Without a box, the text is as it was.
// The pointer is empty for the text of a server alone.
func (b *Boxes) ConfineIn(text []byte, at string) (next []byte, p Proposal, err error) {
	server := text
	if at != "" {
		if server, err = jsonc.Section(text, at); err != nil {
			return nil, p, err
		}
	}
	if p = b.Propose(server); len(p.Box) == 0 {
		return text, p, nil
	}
	if next, err = jsonc.Insert(text, at+"/confine", p.Box); err != nil {
		return nil, p, err
	}
	if len(p.Flags) > 0 {
		next, err = extend(next, at+"/args", p.Flags)
	}
	return next, p, err
}

// TryIn returns the text of a configuration in which the server at a JSON pointer has a
// box to try it in, and where that comes from: its own, the one that is proposed for it,
// or else one without anything.
func (b *Boxes) TryIn(text []byte, at string) (next []byte, from string, err error) {
	own, err := jsonc.Section(text, at+"/confine")
	if err != nil || own != nil {
		return text, "its box", err
	}
	next, p, err := b.ConfineIn(text, at)
	if err != nil || len(p.Box) > 0 {
		return next, "the box that is proposed for it", err
	}
	next, err = jsonc.Insert(text, at+"/confine", boxText(known.Box{}))
	return next, "the tightest box", err
}

// BoxWords says how accepted servers are confined, a line for each; leave is the flag that
// leaves the boxes out.
func BoxWords(taken []*Server, leave string) (lines []string) {
	boxed := -1 // the last line of one that is confined
	for _, s := range taken {
		if !s.Accepted || s.There {
			continue
		}
		switch p := s.Boxes.Propose(s.written()); {
		case len(p.Box) > 0 && s.Unboxed == "":
			boxed = len(lines)
			lines = append(lines, fmt.Sprintf("%s is confined: %s", s.As, canon.Escape(p.Words)))
		case s.Unboxed != "":
			lines = append(lines, Proposal{Why: s.Unboxed}.Unconfined(s.As))
		case p.Why != "":
			lines = append(lines, p.Unconfined(s.As))
		}
	}
	if boxed >= 0 {
		lines[boxed] += " (" + leave + " leaves that out)"
	}
	return lines
}
