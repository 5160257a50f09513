package learned

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/sandbox/confine"
)

// words are the headings under which the uses of a kind are shown.
var words = map[confine.UseKind]string{
	confine.Writes: "wrote", confine.Reads: "read", confine.Connects: "connected to", confine.Starts: "started", confine.Listens: "listened on",
}

// Lines says what was used, and what of it is not proposed. Short writes a path for
// people.
func (p Proposal) Lines(short func(path string) string) []string {
	var all []string
	last := confine.UseKind("")
	for _, u := range p.Used {
		if u.Kind != last {
			all, last = append(all, words[u.Kind]), u.Kind
		}
		line := fmt.Sprintf("  %s, %s", short(u.What), times(u.Count))
		if u.Example != "" {
			line += ", such as " + short(u.Example)
		}
		all = append(all, line)
	}
	if len(p.Used) == 0 {
		all = append(all, "it used nothing but what every box has")
	}
	if len(p.Not) > 0 {
		all = append(all, "not proposed")
	}
	for _, n := range p.Not {
		all = append(all, fmt.Sprintf("  %s: %s", short(n.What), n.Why))
	}
	return all
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Confine is the box as a configuration has it.
func (p Proposal) Confine(short func(path string) string, require bool) map[string]any {
	box := map[string]any{"net": "none"}
	for key, paths := range map[string][]string{"write": p.Write, "read": p.Read, "run": p.Run} {
		if len(paths) == 0 {
			continue
		}
		box[key] = shorten(paths, short)
	}
	if len(p.Net) > 0 {
		box["net"] = p.Net
	}
	if p.Limited && len(p.Run) == 0 {
		box["run"] = []string{}
	}
	if require {
		box["require"] = true
	}
	return box
}

func shorten(paths []string, short func(string) string) []string {
	paths = slices.Clone(paths)
	for i, path := range paths {
		paths[i] = short(path)
	}
	return paths
}

// Text is such a box on one line, with its keys in the usual order.
func Text(box map[string]any) (string, error) {
	var parts []string
	for _, key := range []string{"write", "read", "net", "run", "require"} {
		value, ok := box[key]
		if !ok {
			continue
		}
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil {
			return "", err
		}
		parts = append(parts, fmt.Sprintf("%q: %s", key, strings.ReplaceAll(strings.TrimSpace(text.String()), `","`, `", "`)))
	}
	return "{ " + strings.Join(parts, ", ") + " }", nil
}
