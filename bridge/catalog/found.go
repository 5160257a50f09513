package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/tsdecl"
)

// A SearchQuery is what View.Search looks for.
type SearchQuery struct {
	Query  string // words, in any order
	Server string // "" means all
	// Limit is how many tools to give, at most MaxLimit. 0 means DefaultLimit, and
	// no more of them than fit into maxAnswer.
	Limit int
}

// A SearchResult is the answer of View.Search.
type SearchResult struct {
	Tools     []Item   // best first, what is deprecated last; never nil
	Unmatched []string // words of the query that no visible tool has
	More      int      // tools that fit but are not given
	Absent    []Absent // servers whose tools could not be searched, if not one was asked for
}

// maxAnswer bounds the answer to a search without a limit, in bytes of JSON: some 400
// tokens of a model (o200k), where a letter is a byte. maxBrief bounds one declaration
// in it.
const (
	maxAnswer = 1280
	maxBrief  = 700
)

// Search finds tools by words of their names, descriptions, parameters and
// servers. English endings, common synonyms, beginnings of words and, where
// nothing else is found, single typing errors are allowed for. Nothing is found
// where no tool covers most of what the query says.
func (v *View) Search(q SearchQuery) SearchResult {
	x, seen := v.catalog.index(), v.seen()
	query := x.parse(q.Query)
	limit, brief := q.Limit, q.Limit <= 0
	if brief {
		limit = DefaultLimit
	}
	hits, total, unmatched := x.search(query, q.Query, min(limit, MaxLimit), func(tool int32) bool {
		return seen.let[tool] && (q.Server == "" || x.tools[tool].Server == q.Server)
	})
	r := SearchResult{Tools: []Item{}, Unmatched: unmatched}
	if q.Server == "" {
		r.Absent = seen.absent
	}
	room := maxAnswer
	for i, h := range hits {
		t := x.tools[h.tool]
		e := v.catalog.entry(t, i < maxDeclared && !brief)
		for bit, w := range query {
			if h.words&(1<<bit) == 0 {
				e.Unmatched = append(e.Unmatched, tsdecl.Plain(w.text, 40))
			}
		}
		if brief {
			if i < maxDeclared && !t.broken() {
				e.Declaration = v.catalog.show(t, tsdecl.Options{MaxBytes: maxBrief})
			}
			if size(e) > room && i > 0 {
				e.Declaration = ""
			}
			if room -= size(e); room < 0 && i > 0 {
				break
			}
		}
		r.Tools = append(r.Tools, e)
	}
	r.More = total - len(r.Tools)
	return r
}

// size is that of e in a list, as JSON.
func size(e Item) int {
	text, err := encode(e)
	if err != nil {
		return maxAnswer // cannot happen: it is plain text
	}
	return len(text) + len(",")
}

// Note says in a line what the list of tools does not: why there are none, whether
// there are more, and what could not be searched. It is empty where there is nothing
// to say.
func (r SearchResult) Note(q SearchQuery) string {
	var parts []string
	switch {
	case len(r.Tools) == 0 && len(r.Unmatched) > 0:
		parts = append(parts, fmt.Sprintf("search_tools found nothing for %q: no tool has %s", tsdecl.Plain(q.Query, 80), listWords(r.Unmatched)))
	case len(r.Tools) == 0:
		parts = append(parts, fmt.Sprintf("search_tools found nothing for %q: no tool has enough of these words", tsdecl.Plain(q.Query, 80)))
	case r.More > 0 && q.Limit <= 0:
		parts = append(parts, fmt.Sprintf("search_tools found %d more for %q: give a limit to see them", r.More, tsdecl.Plain(q.Query, 80)))
	}
	if absent := ListAbsent(r.Absent, 300); absent != "" {
		parts = append(parts, "not searched: "+absent)
	}
	return strings.Join(parts, "; ")
}

// listWords quotes the first few words.
func listWords(all []string) string {
	var quoted []string
	for _, w := range all[:min(len(all), 6)] {
		quoted = append(quoted, fmt.Sprintf("%q", tsdecl.Plain(w, 40)))
	}
	return strings.Join(quoted, ", ")
}

// An Absent server is configured, but its tools are not in the catalogue.
type Absent struct {
	Server string `json:"server"`
	Why    string `json:"why"` // such as "connecting" or "needs a login", for a model: without a server's words
}

// Absent are the servers whose tools are not known, by name.
func (c *Catalog) Absent() []Absent { return c.absent }

// Absent are the servers whose tools are not known, and why, by name. A view shows
// those of which its profile might see a tool. Not to be modified.
func (v *View) Absent() []Absent { return v.seen().absent }

// ListAbsent writes servers and why each is absent, on one line of at most limit bytes:
//
//	github (connecting), linear (needs a login) and 2 more
//
// It is empty if there are none.
func ListAbsent(all []Absent, limit int) string {
	for n := len(all); n > 0; n-- {
		var b strings.Builder
		for i, a := range all[:n] {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(tsdecl.Plain(a.Server, 64))
			if a.Why != "" {
				fmt.Fprintf(&b, " (%s)", tsdecl.Plain(a.Why, 80))
			}
		}
		if n < len(all) {
			fmt.Fprintf(&b, " and %d more", len(all)-n)
		}
		if b.Len() <= limit {
			return b.String()
		}
	}
	if len(all) > 0 {
		return fmt.Sprintf("%d servers", len(all))
	}
	return ""
}

// writeAnswer writes v as JSON for a model: Promise<string> reads better than
// Promise\u003cstring\u003e.
func writeAnswer(function string, v any) (json.RawMessage, error) {
	text, err := encode(v)
	if err != nil {
		return nil, fmt.Errorf("writing the answer of %s: %w", function, err)
	}
	return text, nil
}

func sortAbsent(all []Absent) []Absent {
	return slices.SortedFunc(slices.Values(all), func(a, b Absent) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Why, b.Why))
	})
}
