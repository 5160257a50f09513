package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A place is a path of a box, where it leads: no part of it is a link.
type place struct {
	Path  string `json:"path"`
	Write bool   `json:"write"`
}

// A link is on the way to a place.
type link struct {
	At     string `json:"at"`
	Target string `json:"target"`
}

// places returns what the box holds, those above before those below them, and the links
// that lead there. A folder to read stays as it is inside one to write: those between the
// two become places, too, and a place can't be renamed.
//
// A server may make links in the folders that it may write, and one of them may be on
// the way to a place of this box when it starts the next time. Such a link is followed to
// what the box allows anyway and nowhere else.
func (b Box) places() (places []place, links []link, err error) {
	type lead struct {
		named, path string
		links       []link
		write       bool
	}
	var leads []lead
	for _, path := range slices.Concat(b.Write, b.Read) {
		write := len(leads) < len(b.Write)
		if err := named(path); err != nil {
			return nil, nil, err
		}
		to, on, err := follow("", path)
		if err == nil {
			_, err = os.Lstat(to)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist) && write:
			return nil, nil, fmt.Errorf("its box may write %s, which does not exist", path)
		case errors.Is(err, fs.ErrNotExist):
			to = "" // what the machine does not have, the box does not have
		case err != nil:
			return nil, nil, fmt.Errorf("its box names %s: %w", path, err)
		}
		if to == "/" || within(to, "/proc") {
			return nil, nil, fmt.Errorf("its box names %s, which leads to %s: no box holds that", path, to)
		}
		leads = append(leads, lead{path, to, on, write})
	}
	var others []string
	for _, path := range b.Others {
		to, _, err := follow("", path)
		if err != nil {
			return nil, nil, fmt.Errorf("another box may write %s: %w", path, err)
		}
		others = append(others, to)
	}
	// lured reports whether a server could have made one of the links.
	lured := func(l lead) bool {
		return slices.ContainsFunc(l.links, func(on link) bool {
			return slices.ContainsFunc(others, func(folder string) bool { return on.At != folder && within(on.At, folder) }) || slices.ContainsFunc(leads, func(w lead) bool { return w.write && w.path != "" && on.At != w.path && within(on.At, w.path) })
		})
	}
	for _, l := range leads {
		if !lured(l) {
			links = append(links, l.links...)
			if l.path != "" && !(OfSystem(l.path) && !l.write) {
				places = append(places, place{l.path, l.write})
			}
		}
	}
	sure := slices.Clone(places)
	for _, l := range leads {
		if l.path == "" || !lured(l) {
			continue
		}
		inside := slices.ContainsFunc(sure, func(p place) bool { return within(l.path, p.Path) && (p.Write || !l.write) })
		if !inside && (l.write || !OfSystem(l.path)) {
			return nil, nil, fmt.Errorf("its box names %s, a link in a folder that a server may write, which leads to %s: name that instead", l.named, l.path)
		}
		if !l.write && !OfSystem(l.path) {
			places = append(places, place{l.path, false})
		}
	}
	return ordered(places), links, nil
}

// named tells what no box can name.
func named(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("its box names %q, which is no plain absolute path", path)
	}
	return nil
}

// ordered sorts places, joins equal ones, and adds those between one to read and the one
// to write above it.
func ordered(places []place) []place {
	write := make(map[string]bool)
	for _, p := range places {
		write[p.Path] = write[p.Path] || p.Write
	}
	for _, p := range places {
		if write[p.Path] {
			continue
		}
		for _, w := range places {
			if !w.Write || !within(p.Path, w.Path) {
				continue
			}
			for between := filepath.Dir(p.Path); between != w.Path; between = filepath.Dir(between) {
				if _, has := write[between]; !has {
					write[between] = !slices.ContainsFunc(places, func(r place) bool {
						return !r.Write && within(between, r.Path) && within(r.Path, w.Path)
					})
				}
			}
		}
	}
	var all []place
	for path, may := range write {
		all = append(all, place{path, may})
	}
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// kept returns a folder to read that lies inside one to write, or nothing.
func kept(places []place) (read, write string) {
	for _, r := range places {
		for _, w := range places {
			if !r.Write && w.Write && within(r.Path, w.Path) {
				return r.Path, w.Path
			}
		}
	}
	return "", ""
}

// within reports whether a path is another or below it.
func within(path, above string) bool {
	return path == above || above == "/" || strings.HasPrefix(path, above+"/")
}

// follow returns where a path below a root leads, and the links on the way. There need be
// nothing.
func follow(root, path string) (to string, links []link, err error) {
	const most = 40 // as the kernel does
	for range most {
		on, rest := firstLink(root, path)
		if on.At == "" {
			return path, links, nil
		}
		links = append(links, on)
		target := on.Target
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(on.At), target)
		}
		path = filepath.Join(target, rest)
	}
	return "", nil, errors.New("too many links")
}

// firstLink finds the first link on the way to a path below a root.
func firstLink(root, path string) (on link, rest string) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i := range parts {
		at := "/" + filepath.Join(parts[:i+1]...)
		if target, err := os.Readlink(root + at); err == nil {
			return link{at, target}, filepath.Join(parts[i+1:]...)
		}
	}
	return link{}, ""
}
