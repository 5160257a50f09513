package catalog

import (
	"cmp"
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"
)

const (
	// DefaultLimit is how many tools a search gives unless asked otherwise.
	DefaultLimit = 10
	// MaxLimit is how many it gives at most.
	MaxLimit = 50

	maxDeclared   = 5  // entries that come with a declaration
	maxQueryWords = 24 // words of a query that count
)

// Weights of a word by where it stands.
const (
	inName        = 4.0
	inServer      = 2.5
	inTitle       = 2.0
	inParameter   = 1.0
	inDescription = 1.0
)

// Weights of a word that stands for a word of the query.
const (
	asPrefix  = 0.7
	asSynonym = 0.6
	asTypo    = 0.4
)

// fits is the part of the best score that a tool must reach to be listed.
const fits = 0.3

// An index finds tools by words. Tools are known by their place in the list
// that the index was made of.
//
// Scores are BM25 over the fields of a tool (Robertson and Zaragoza, "The
// Probabilistic Relevance Framework", 3.6): the weighted counts of a word in all
// fields are added up first and saturated once.
type index struct {
	tools      []*Tool
	postings   map[string][]posting
	vocabulary []string // the words, sorted
	keys       []key    // for names that resemble one another
}

type posting struct {
	tool   int32
	weight float32 // count over fields, saturated: 0 to 1
}

func newIndex(tools []*Tool) *index {
	x := &index{tools: tools, postings: map[string][]posting{}, keys: make([]key, len(tools))}

	type document struct {
		counts map[string]float64
		length float64
	}
	docs := make([]document, len(tools))
	total := 0.0
	for i, t := range tools {
		counts := map[string]float64{}
		count := func(text string, weight float64) {
			words(text, func(stem string) { counts[stem] += weight })
		}
		count(t.Name, inName)
		count(t.Server, inServer)
		count(parameters(t.Input), inParameter)
		title, description := t.Title, t.Description
		if t.Unread != "" { // it is not to be found by what it says of itself
			title, description = "", ""
		}
		count(title, inTitle)
		length := 0.0
		words(description, func(stem string) {
			counts[stem] += inDescription
			length++
		})
		docs[i] = document{counts, length}
		total += length
		x.keys[i] = newKey(t)
	}
	average := math.Max(1, total/float64(max(1, len(tools))))
	for i, d := range docs {
		// k1 = 1.2, b = 0.75: the usual values. Few tools have long
		// descriptions; those that do should be found all the same.
		norm := 1.2 * (0.25 + 0.75*math.Min(2.5, (d.length+10)/(average+10)))
		for word, count := range d.counts {
			x.postings[word] = append(x.postings[word], posting{int32(i), float32(count / (count + norm))})
		}
	}
	x.vocabulary = make([]string, 0, len(x.postings))
	for word := range x.postings {
		x.vocabulary = append(x.vocabulary, word)
	}
	slices.Sort(x.vocabulary)
	return x
}

// parameters are the names of a tool's arguments.
func parameters(schema json.RawMessage) string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	// A schema that can't be read has no names to search.
	_ = json.Unmarshal(schema, &s)
	var b strings.Builder
	for name := range s.Properties {
		b.WriteString(name)
		b.WriteByte(' ')
	}
	return b.String()
}

// rarity is the weight of a word that n tools have.
func (x *index) rarity(n int) float64 {
	all := float64(len(x.tools))
	return math.Log(1 + (all-float64(n)+0.5)/(float64(n)+0.5))
}

// A term is a word of the index that stands for a word of the query.
type term struct {
	word   string
	weight float64
}

// terms are the words of the index that word may mean.
func (x *index) terms(word string) []term {
	var out []term
	add := func(w string, weight float64) {
		if len(x.postings[w]) > 0 {
			out = append(out, term{w, weight})
		}
	}
	key := stem(word)
	add(key, 1)
	for _, s := range synonyms[key] {
		add(s, asSynonym)
	}
	if len(word) >= 3 {
		from, _ := slices.BinarySearch(x.vocabulary, word)
		for _, w := range x.vocabulary[from:] {
			if !strings.HasPrefix(w, word) || len(out) > 40 {
				break
			}
			if w != key {
				add(w, asPrefix)
			}
		}
	}
	if len(out) == 0 && len(key) >= 5 {
		for _, w := range x.vocabulary {
			if abs(len(w)-len(key)) <= 1 && distance(key, w, 1) <= 1 {
				add(w, asTypo)
			}
		}
	}
	return out
}

// A queryWord is one word of a query, as it was written, and what it may mean.
type queryWord struct {
	text   string
	action bool
	terms  []term
}

// parse reads a query.
func (x *index) parse(query string) []queryWord {
	var out, stops []queryWord
	seen := map[string]bool{}
	add := func(text string, terms []term) {
		key := stem(text)
		if seen[key] {
			return
		}
		seen[key] = true
		w := queryWord{text: text, action: actions[key], terms: terms}
		if stopwords[key] {
			w.terms = nil
			stops = append(stops, w)
		} else if len(out) < maxQueryWords {
			out = append(out, w)
		}
	}
	for _, f := range fields(query) {
		// "GitHub" is one word if the index has it as one; "createIssue" is two.
		whole := strings.ToLower(f)
		parts := camel(f)
		if len(parts) == 1 || len(x.postings[stem(whole)]) > 0 {
			add(whole, x.terms(whole))
			continue
		}
		for _, p := range parts {
			add(p, x.terms(p))
		}
	}
	if len(out) == 0 {
		// "the" is in every other description, and finds none of them.
		return stops[:min(len(stops), maxQueryWords)]
	}
	return out
}

// A hit is a tool that fits a query.
type hit struct {
	tool  int32
	score float64
	words uint32 // the words of the query that it has, as bits
}

// search finds the tools that fit among those that let lets through. It returns
// the best limit of them, best first, how many there are in all, and the words that
// no tool has.
func (x *index) search(query []queryWord, limit int, let func(tool int32) bool) (hits []hit, total int, unmatched []string) {
	scores := make([]float64, len(x.tools))
	best := make([]float64, len(x.tools)) // of the word at hand
	matched := make([]uint32, len(x.tools))
	var found, touched []int32
	var topics, common uint32
	for i, w := range query {
		bit := uint32(1) << i
		if !w.action {
			topics |= bit
		}
		touched = touched[:0]
		for _, t := range w.terms {
			list := x.postings[t.word]
			weight := t.weight * x.rarity(len(list))
			for _, p := range list {
				// A word counts once, by the best of what it may mean.
				if s := weight * float64(p.weight); s > best[p.tool] {
					if best[p.tool] == 0 {
						touched = append(touched, p.tool)
					}
					best[p.tool] = s
				}
			}
		}
		any := false
		for _, t := range touched {
			if let(t) {
				any = true
				if matched[t] == 0 {
					found = append(found, t)
				}
				matched[t] |= bit
				scores[t] += best[t]
			}
			best[t] = 0
		}
		if !any {
			unmatched = append(unmatched, w.text)
			continue
		}
		common |= bit
	}

	// Having more of the query's words is worth more than having one of them
	// often. And a query that names things is not answered by a verb.
	top := 0.0
	for _, t := range found {
		if topics != 0 && matched[t]&topics == 0 {
			scores[t] = -1
			continue
		}
		scores[t] *= 0.4 + 0.6*float64(bits.OnesCount32(matched[t]))/float64(bits.OnesCount32(common))
		top = max(top, scores[t])
	}
	// Of thousands that fit only the best few are put in order.
	for _, t := range found {
		if scores[t] < fits*top {
			continue
		}
		total++
		h := hit{t, scores[t], matched[t]}
		if len(hits) == limit && hits[limit-1].compare(h) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(hits, h, hit.compare)
		hits = slices.Insert(hits, at, h)[:min(len(hits)+1, limit)]
	}
	return hits, total, unmatched
}

// compare says which hit comes first. The place in the list settles ties, so
// the order is always the same.
func (h hit) compare(other hit) int {
	return cmp.Or(cmp.Compare(other.score, h.score), cmp.Compare(h.tool, other.tool))
}

func abs(n int) int { return max(n, -n) }

// A key is what names are compared by.
type key struct {
	plain string   // letters and digits of the script name, lower case
	tool  string   // the same of the raw name
	parts []string // stems of its words
}

func newKey(t *Tool) key {
	k := key{plain: plain(t.path), tool: plain(t.Name)}
	words(t.path, func(stem string) { k.parts = append(k.parts, stem) })
	return k
}

// plain keeps letters and digits, in lower case.
func plain(name string) string {
	if len(name) > 2*MaxName {
		name = name[:2*MaxName]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// alike says how much a name resembles k, 0 to 1.
func (k key) alike(name string, parts []string) float64 {
	switch {
	case name == "":
		return 0
	case name == k.plain:
		return 1 // github.create_issue, githubCreateIssue, github__createIssue
	case name == k.tool:
		return 0.95 // create_issue: the server is missing
	}
	score := 0.0
	// Typing errors, in the whole name or in the tool's.
	for _, s := range []string{k.plain, k.tool} {
		longest := max(len(s), len(name))
		if d := distance(name, s, longest/4); d <= longest/4 {
			score = max(score, 0.9*(1-float64(d)/float64(longest)))
		}
	}
	// Words in common, in any order.
	common := 0
	for _, p := range parts {
		if slices.Contains(k.parts, p) {
			common++
		}
	}
	if common > 0 {
		score = max(score, 0.85*2*float64(common)/float64(len(parts)+len(k.parts)))
	}
	return score
}

// distance is the number of letters to insert, delete, replace or swap with
// their neighbour to make b of a, or limit+1 if that is more than limit.
func distance(a, b string, limit int) int {
	if abs(len(a)-len(b)) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
