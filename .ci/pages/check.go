package main

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	node "golang.org/x/net/html"
)

// broken are the links of the pages among files that lead nowhere, the anchors that are
// there twice, and what a page would load from elsewhere.
func broken(files map[string][]byte) (bad []string) {
	trees := map[string]*node.Node{}
	for name, text := range files {
		if path.Ext(name) == ".html" {
			tree, err := node.Parse(bytes.NewReader(text))
			if err != nil {
				bad = append(bad, fmt.Sprintf("%s: %v", name, err))
				continue
			}
			trees[name] = tree
		}
	}
	anchors := map[string]map[string]bool{}
	for name, tree := range trees {
		anchors[name] = map[string]bool{}
		for n := range tree.Descendants() {
			id := attribute(n, "id")
			if id != "" && anchors[name][id] {
				bad = append(bad, fmt.Sprintf("%s: two places are called #%s", name, id))
			}
			anchors[name][id] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		for n := range trees[name].Descendants() {
			for _, a := range n.Attr {
				if a.Key != "href" && a.Key != "src" {
					continue
				}
				if elsewhere(a.Val) {
					if n.Data != "a" {
						bad = append(bad, fmt.Sprintf("%s: a page loads nothing from elsewhere, and this one has %s", name, a.Val))
					}
					continue
				}
				file, anchor, found := strings.Cut(a.Val, "#")
				to := name
				if file != "" {
					to = path.Join(path.Dir(name), file)
				}
				if files[to] == nil {
					bad = append(bad, fmt.Sprintf("%s: %s: there is no such file", name, a.Val))
				} else if found && !anchors[to][anchor] {
					bad = append(bad, fmt.Sprintf("%s: %s: there is no such place", name, a.Val))
				}
			}
		}
	}
	slices.Sort(bad)
	return bad
}
