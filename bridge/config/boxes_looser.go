package config

import (
	"cmp"
	"slices"
	"strings"
)

// Looser says how a box lets its program do more than another one did, which it had
// before; nil stands for no box. Of two that can't be compared, as a folder and the
// word "workspace" can't, the new one counts as looser.
func (b *Confine) Looser(was *Confine) (why []string) {
	switch {
	case was == nil:
		return nil
	case b == nil:
		return []string{"it is not confined any more"}
	}
	list := func(what string, more []string) {
		if slices.Sort(more); len(more) > 0 {
			why = append(why, what+" "+strings.Join(slices.Compact(more), ", "))
		}
	}
	list("its box lets it write", slices.Concat(
		slices.DeleteFunc(slices.Clone([]string(b.Write)), was.Writes),
		slices.DeleteFunc(slices.Clone([]string(was.Read)), b.keepsReadOnly)))
	list("its box lets it read", slices.DeleteFunc(slices.Clone([]string(b.Read)), was.Reads))
	var hosts []string
	for _, h := range b.Net.Hosts {
		if !was.Net.Covers(h) {
			hosts = append(hosts, h.String())
		}
	}
	if list("its box lets it reach", hosts); b.Net.Any && !was.Net.Any {
		why = append(why, "its box lets it reach any host")
	}
	if list("its box lets it start", slices.DeleteFunc(slices.Clone([]string(b.Run)), was.Starts)); b.Run == nil && was.Run != nil {
		why = append(why, "its box lets it start any program")
	}
	if was.Require && !b.Require {
		why = append(why, "it starts even where its box can't be enforced")
	}
	return why
}

// sorted returns the box in an order that does not depend on how it is written.
func (b *Confine) sorted() Confine {
	box := *b
	box.Write, box.Read = slices.Sorted(slices.Values(b.Write)), slices.Sorted(slices.Values(b.Read))
	box.Net.Hosts = slices.SortedFunc(slices.Values(b.Net.Hosts), func(a, b NetHost) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	return box
}

// Writes reports whether the box lets its program change a path with all below it, but
// for what is read-only within.
func (b *Confine) Writes(path string) bool {
	folder := nearest(b.Write, path, false)
	if path == WorkspaceWord {
		return slices.Contains(b.Write, path)
	}
	return folder != "" && len(folder) >= len(nearest(b.Read, path, false)) && covers(folder, path)
}

// Covers reports whether the box lets its program reach a host.
func (n Net) Covers(h NetHost) bool {
	return n.Any || slices.ContainsFunc(n.Hosts, func(had NetHost) bool { return had.Covers(h) })
}

// Starts reports whether the box lets its program start another one.
func (b *Confine) Starts(program string) bool {
	return b.Run == nil || slices.Contains(b.Run, program)
}

// Reads reports whether the box lets its program read a path with all below it.
func (b *Confine) Reads(path string) bool {
	return slices.ContainsFunc(slices.Concat(b.Read, b.Write), func(folder string) bool { return covers(folder, path) })
}

// keepsReadOnly reports whether a path, which a box only let its program read, is not
// writable in this one. Where the folders of the workspace are is not known here.
func (b *Confine) keepsReadOnly(path string) bool {
	unknown := slices.Contains(b.Write, WorkspaceWord) || path == WorkspaceWord && len(b.Write) > 0
	return !b.Writes(path) && (!unknown || slices.Contains(b.Read, path))
}

// covers reports whether a folder of a box brings a path along: it is below the folder,
// and no link leads out of that.
func covers(folder, path string) bool {
	if folder == WorkspaceWord || path == WorkspaceWord {
		return folder == path
	}
	return inFolder(path, folder) && inFolder(leads(path), leads(folder))
}
