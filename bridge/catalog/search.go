package catalog

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"

	"codemode-bridge/bridge/meant"
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
	inSummary     = 1.5 // the first sentence of a description
	inParameter   = 1.0
	inDescription = 0.5
)

// How much of its meaning for a tool a word has where it stands: a tool is what
// its name and first sentence say, and only mentions the rest.
const (
	namesIt    = 1.0
	ofServer   = 0.95
	sumsItUp   = 0.9
	takesIt    = 0.5
	mentionsIt = 0.4
)

// Weights of a word that stands for a word of the query.
const (
	asPrefix  = 0.55
	asSynonym = 0.7
	asTypo    = 0.5
)

// What a tool must reach to be listed, as measured by TestJudged.
const (
	fits      = 0.7  // part of the best score
	athome    = 1.15 // times the score of a tool whose server is named after what the query is about
	covers    = 0.53 // part of the query's meaning,
	allNamed  = 0.4  // so much less of that if the query has the tool's whole name
	otherVerb = 0.5  // what is left of the score of a tool that does something else with the thing
)

// An index finds tools by words. Tools are known by their place in the list
// that the index was made of.
//
// Scores are BM25 over the fields of a tool (Robertson and Zaragoza, "The
// Probabilistic Relevance Framework", 3.6): the weighted counts of a word in all
// fields are added up first and saturated once. They order what fits. Whether a tool
// fits at all is judged by how much of the query it covers: a query that names Slack
// is not answered by whatever else has messages.
type index struct {
	tools      []*Tool
	nameWords  []int32  // of each tool, without those of its server
	verbs      []string // of each tool: the stem of the verb in its name, "" for none
	postings   map[string][]posting
	vocabulary []string // the words, sorted
	keys       []key    // for names that resemble one another
}

type posting struct {
	tool   int32
	weight float32 // count over fields, saturated: 0 to 1
	means  float32 // the best place where the word stands: namesIt and so on
}

// A standing is how a word stands in one tool.
type standing struct{ count, means float64 }

func newIndex(tools []*Tool) *index {
	x := &index{tools: tools, nameWords: make([]int32, len(tools)), verbs: make([]string, len(tools)), postings: map[string][]posting{}, keys: make([]key, len(tools))}

	type document struct {
		words  map[string]standing
		length float64
	}
	docs := make([]document, len(tools))
	total := 0.0
	for i, t := range tools {
		d := document{words: map[string]standing{}}
		put := func(text string, weight, means float64) (n int) {
			words(text, func(stem string) {
				s := d.words[stem]
				d.words[stem] = standing{s.count + weight, max(s.means, means)}
				n++
			})
			return n
		}
		put(t.Server, inServer, ofServer)
		words(t.Name, func(stem string) {
			if x.verbs[i] == "" && verbs[stem] {
				x.verbs[i] = stem
			}
			if s, ok := d.words[stem]; ok || stopwords[stem] {
				d.words[stem] = standing{s.count + inName, s.means}
				return
			}
			d.words[stem] = standing{inName, namesIt}
			x.nameWords[i]++
		})
		put(parameters(t.Input), inParameter, takesIt)
		if t.Unread == "" { // else it is not to be found by what it says of itself
			put(t.Title, inTitle, namesIt)
			first, rest := firstSentence(t.Description)
			d.length = float64(put(first, inSummary, sumsItUp) + put(rest, inDescription, mentionsIt))
		}
		docs[i] = d
		total += d.length
		x.keys[i] = newKey(t)
	}
	average := math.Max(1, total/float64(max(1, len(tools))))
	for i, d := range docs {
		// k1 = 1.2, b = 0.75: the usual values. Few tools have long
		// descriptions; those that do should be found all the same.
		norm := 1.2 * (0.25 + 0.75*math.Min(2.5, (d.length+10)/(average+10)))
		for word, s := range d.words {
			x.postings[word] = append(x.postings[word], posting{int32(i), float32(s.count / (s.count + norm)), float32(s.means)})
		}
	}
	x.vocabulary = make([]string, 0, len(x.postings))
	for word := range x.postings {
		x.vocabulary = append(x.vocabulary, word)
	}
	slices.Sort(x.vocabulary)
	return x
}

// firstSentence cuts a description behind its first sentence, which says what the
// tool is; a long one ends where a summary would.
func firstSentence(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	end := min(len(text), maxSummary)
	for _, stop := range []string{". ", ".\n", "\n\n"} {
		if at := strings.Index(text[:end], stop); at >= 0 {
			end = at + 1
		}
	}
	return text[:end], text[end:]
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
			if abs(len(w)-len(key)) <= 1 && meant.Distance(key, w, 1) <= 1 {
				add(w, asTypo)
			}
		}
	}
	return out
}

// A queryWord is one word of a query, as it was written, and what it may mean.
type queryWord struct {
	text    string
	action  bool
	service bool // the name of a service: no other will do
	proper  bool // a name, by its capital
	terms   []term
}

// parse reads a query.
func (x *index) parse(query string) []queryWord {
	var out, stops []queryWord
	seen, proper := map[string]bool{}, false
	add := func(text string, terms []term) {
		key := stem(text)
		if seen[key] {
			return
		}
		seen[key] = true
		w := queryWord{text: text, action: actions[key], service: serviceNames[key], proper: proper, terms: terms}
		if stopwords[key] {
			w.terms = nil
			stops = append(stops, w)
		} else if len(out) < maxQueryWords {
			out = append(out, w)
		}
	}
	for i, f := range fields(query) {
		proper = i > 0 && unicode.IsUpper([]rune(f)[0]) && len(camel(f)) == 1 && strings.ToUpper(f) != f
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
	late  bool // deprecated: after all that are not
	score float64
	words uint32 // the words of the query that it has, as bits
}

// worth is how much of a query's meaning a word carries, by how many tools have
// it: what hardly any tool has says most.
func (x *index) worth(w queryWord, tools int) float64 {
	worth := min(x.rarity(tools), 4.5)
	switch {
	case w.action:
		worth *= 0.45 // many tools create; what they create tells them apart
	case w.proper && tools == 0:
		worth *= 0.4 // what the tool is to be used on
	}
	return worth
}

// A finding is what is known of one tool while a search goes on.
type finding struct {
	score   float64 // BM25 of the words so far
	covered float64 // the worth of those that it has
	topics  float64 // the same of those that are no verbs
	named   int32   // how many of them are in its name
	matched uint32  // which they are, as bits
	athome  bool    // the name of its server begins with one that is no verb

	// Of the word at hand.
	best   float64
	means  float64
	inName bool
}

// A lookup is one search under way.
type lookup struct {
	*index
	words     int       // of the query
	state     []finding // by tool
	found     []int32   // tools that have some word of the query
	meaning   float64   // worth of the whole query
	topic     float64   // the same of what are no verbs in it
	verbs     []string  // that would do
	services  uint32    // words that name a service which tools are for, as bits
	absent    bool      // a word names a service that no tool is for
	unmatched []string
}

// search finds the tools that fit among those that let lets through. It returns
// the best limit of them, best first, how many there are in all, and the words that
// no tool has. A tool whose name the query is comes first.
func (x *index) search(query []queryWord, text string, limit int, let func(tool int32) bool) (hits []hit, total int, unmatched []string) {
	l := &lookup{index: x, words: len(query), state: make([]finding, len(x.tools))}
	for i, w := range query {
		l.word(w, uint32(1)<<i, let)
	}
	name := ""
	if text = strings.TrimSpace(text); !strings.ContainsFunc(text, unicode.IsSpace) {
		name = plain(text)
	}
	least := l.judge(name)
	// Of thousands that fit only the best few are put in order.
	for _, t := range l.found {
		f := l.state[t]
		if f.score < least {
			continue
		}
		total++
		h := hit{t, x.tools[t].deprecated && f.score < byName, f.score, f.matched}
		if len(hits) == limit && hits[limit-1].compare(h) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(hits, h, hit.compare)
		hits = slices.Insert(hits, at, h)[:min(len(hits)+1, limit)]
	}
	return hits, total, l.unmatched
}

// byName is the score of a tool whose name is the query: more than words give.
const byName = 1000

// word adds what one word of the query finds.
func (l *lookup) word(w queryWord, bit uint32, let func(tool int32) bool) {
	if key := stem(w.text); verbs[key] {
		l.verbs = append(append(l.verbs, key), synonyms[key]...)
	}
	var touched []int32
	tools, about := 0, false
	for _, t := range w.terms {
		list := l.postings[t.word]
		weight := t.weight * l.rarity(len(list))
		for _, p := range list {
			f := &l.state[p.tool]
			if f.best == 0 {
				if !let(p.tool) {
					continue
				}
				touched = append(touched, p.tool)
				tools++
			}
			// A word counts once, by the best of what it may mean.
			if s := weight * float64(p.weight); s > f.best {
				f.best = s
				f.inName = f.inName || p.means == namesIt && t.weight >= asSynonym
			}
			f.means = max(f.means, t.weight*float64(p.means))
			f.athome = f.athome || !w.action && p.means == ofServer && strings.HasPrefix(t.word, stem(w.text))
			about = about || f.means >= asSynonym*sumsItUp
		}
	}
	worth := l.worth(w, tools)
	l.meaning += worth
	if !w.action {
		l.topic += worth
	}
	for _, t := range touched {
		f := &l.state[t]
		if f.matched == 0 {
			l.found = append(l.found, t)
		}
		f.matched |= bit
		f.score += f.best
		f.covered += worth * f.means
		if !w.action {
			f.topics += worth * f.means
		}
		if f.inName {
			f.named++
		}
		f.best, f.means, f.inName = 0, 0, false
	}
	if tools == 0 {
		l.unmatched = append(l.unmatched, w.text)
	}
	switch {
	case w.service && about:
		l.services |= bit
	case w.service:
		l.absent = true
	}
}

// judge gives every tool that was found its score, negative for those that do not fit,
// and returns the least score of those to be listed.
func (l *lookup) judge(name string) (least float64) {
	top, late := 0.0, 0.0 // the best, and the best of what is deprecated
	for _, t := range l.found {
		f := &l.state[t]
		if k := l.keys[t]; name != "" && (name == k.plain || name == k.tool) {
			f.score = byName
			continue
		}
		part := f.covered / l.meaning
		said := min(1, float64(f.named)/float64(max(1, l.nameWords[t]))) // of its name
		need := covers * (1 - allNamed*said)
		if l.words == 1 {
			need = 0 // there is no more to go by
		}
		// A query that names things is not answered by a verb, nor by another service.
		if part < need || f.topics < need*l.topic || l.absent || f.matched&l.services != l.services {
			f.score = -1
			continue
		}
		f.score *= part * (0.5 + 0.5*said) // what else a name says was not asked for
		if f.athome {
			f.score *= athome
		}
		if v := l.index.verbs[t]; v != "" && len(l.verbs) > 0 && !slices.Contains(l.verbs, v) {
			f.score *= otherVerb
		}
		if l.tools[t].deprecated {
			late = max(late, f.score)
		} else {
			top = max(top, f.score)
		}
	}
	if top < fits*late {
		top = late // what is not deprecated fits much worse
	}
	return fits * top
}

// compare says which hit comes first. The place in the list settles ties, so
// the order is always the same.
func (h hit) compare(other hit) int {
	if h.late != other.late {
		if h.late {
			return 1
		}
		return -1
	}
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
		if d := meant.Distance(name, s, longest/4); d <= longest/4 {
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
