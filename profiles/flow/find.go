package flow

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of one search. What lies beyond is not compared, and Found.Partly says so.
const (
	maxSent   = 1 << 20  // bytes of arguments
	maxSteps  = 1 << 24  // bytes compared after a hash came up: some tens of milliseconds
	maxChain  = 32       // blocks of one hash that are compared
	maxSpans  = 4096     // noted of one argument
	maxFrom   = 16       // sources weighed against each other, of one argument
	maxFinds  = 3        // reported of one argument
	maxSaid   = 6        // runs reported in all, and as many values
	maxPlace  = 8        // spans of one find that are named
	maxPart   = 256      // bytes of a part that is looked at together with those before
	maxJoined = 16 << 20 // bytes of tails that are looked at again with a part
	minPart   = 3        // folded bytes of a run that must be in the last part
)

// minLetters is how many different bytes a run must hold to say anything.
const minLetters = 6

// Found is what a call sends of what was read.
type Found struct {
	Finds []Find // the largest first, at most a few; values last
	// Also are finds beside those: what larger ones explain, too, and what there was no room for.
	// Each source has one of a kind at most.
	Also []Find
	// Partly reports that not all that is sent could be compared.
	Partly bool
}

// A Find is a part of one argument that one answer held.
type Find struct {
	Source     int
	Argument   string // dotted path
	Characters int
	Whole      bool   // they are the whole argument
	Spans      []Span // where they stand in it, the first ones
	Line       int    // of the answer's text where the first begins; 0 if it has only one
	How        string // the encoding in which they are sent, empty for none
	Value      string // the kind of a short value, empty for a run
	Parts      bool   // it is the end of what was sent in parts
}

// A Span is a part of a text, in bytes.
type Span struct{ Offset, Length int }

// A Sent is one string among arguments.
type Sent struct{ Path, Text string }

// Strings returns the strings and long numbers in decoded JSON, in a fixed order, with
// the names of members.
func Strings(arguments any) (all []Sent) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case string:
			all = append(all, Sent{path, v})
		case json.Number:
			if len(v) >= minNumber {
				all = append(all, Sent{path, v.String()})
			}
		case []any:
			for i, element := range v {
				walk(path+"["+strconv.Itoa(i)+"]", element)
			}
		case map[string]any:
			names := make([]string, 0, len(v))
			for name := range v {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				all = append(all, Sent{"a name in " + cmp.Or(path, "the arguments"), name})
				walk(strings.TrimPrefix(path+"."+name, "."), v[name])
			}
		}
	}
	walk("", arguments)
	return all
}

// Find reports which parts of the arguments of a call were read. What other calls have sent to the same
// sink before, or are about to, counts as what stands before them.
func (m *Memory) Find(call int, sink string, arguments any) Found {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(call, sink, arguments)
}

func (m *Memory) find(call int, sink string, arguments any) Found {
	s := &search{m: m, steps: maxSteps, joined: maxJoined, noted: map[noted]bool{}, partly: m.forgot}
	if len(m.answers) == 0 {
		return Found{}
	}
	m.prepare()
	var found Found
	var values []Find
	places := map[string]*ends{}
	left := maxSent
	for _, sent := range Strings(arguments) {
		text := sent.Text
		if len(text) > left {
			text, s.partly = text[:left], true
		}
		left -= len(text)
		at := placeOf(sink, sent.Path)
		near := places[at]
		if near == nil {
			near = new(ends)
			near.before, near.behind = m.sent[at].around(call)
			places[at] = near
		}
		views := viewsOf(text)
		runs := s.runs(sent.Path, text, views)
		if s.joined -= near.size(); near.size() > 0 && s.joined < 0 {
			s.partly = true
		} else if near.size() > 0 {
			if begun := s.parts(sent.Path, near.before, text, near.behind); len(runs) == 0 && len(text) <= maxPart {
				runs = begun
			} else {
				for _, f := range begun {
					s.note(f)
				}
			}
		}
		found.Finds = append(found.Finds, runs...)
		for _, f := range s.values(sent.Path, text, runs, views) {
			if len(values) < maxSaid {
				values = append(values, f)
			} else {
				s.note(f)
			}
		}
		near.before = extended(near.before, text)
	}
	slices.SortStableFunc(found.Finds, func(a, b Find) int { return b.Characters - a.Characters })
	for _, f := range found.Finds[min(len(found.Finds), maxSaid):] {
		s.note(f)
	}
	found.Finds = slices.Concat(found.Finds[:min(len(found.Finds), maxSaid)], values)
	found.Also, found.Partly = s.also, s.partly
	return found
}

// Ends are what stands before and behind a text of a call at one place.
type ends struct{ before, behind []byte }

func (e *ends) size() int { return len(e.before) + len(e.behind) }

// A search looks for the strings of one call's arguments.
type search struct {
	m      *Memory
	steps  int // still to spend
	partly bool
	joined int    // bytes still to be looked at together with what was sent before
	also   []Find // what is found and not said, of each source and kind once
	noted  map[noted]bool
}

// A noted names a kind of find of a source.
type noted struct {
	source int
	value  string
}

// note notes a find that is not said.
func (s *search) note(f Find) {
	if of := (noted{f.Source, f.Value}); !s.noted[of] {
		s.noted[of] = true
		s.also = append(s.also, f)
	}
}

// A hit is a run of folded bytes that stands in a text and in what is sent.
type hit struct {
	start, end int // in the string that is sent, in bytes
	from, to   int // in the folded view of it
	in         *text
	at         int // in the folded text
	how        string
}

// hits finds the runs that a view has in common with what was read.
func (s *search) hits(v view, length int) (all []hit) {
	x := &s.m.index
	if len(x.slots) == 0 || len(v.folded) < MinRun {
		return nil
	}
	done := map[*text]int{} // up to where runs in a text are found already
	for i := 0; i+block <= len(v.folded); i++ {
		sl := x.slot(hashOf(v.folded[i:]))
		tried := 0
		for n := sl.last; n != 0; n = x.next[n-1] {
			if tried++; tried > maxChain || s.steps <= 0 || len(all) >= maxSpans {
				s.partly = true
				break
			}
			t, at := x.block(n - 1)
			if i < done[t] {
				continue
			}
			h, ok := s.extend(v, i, t, at)
			if !ok {
				continue
			}
			done[t] = max(done[t], h.to-block+1)
			h.start, h.end = int(v.at[h.from]), length
			if h.to < len(v.at) {
				if h.end = int(v.at[h.to]); v.how == "" { // without the white space behind it
					h.end = len(strings.TrimRightFunc(v.plain[:h.end], unicode.IsSpace))
				}
			}
			h.how = v.how
			all = append(all, h)
		}
	}
	return all
}

// extend compares a view at i with a text at a block, and both ways from there.
func (s *search) extend(v view, i int, t *text, at int) (h hit, ok bool) {
	n, back := 0, 0
	for i+n < len(v.folded) && at+n < len(t.folded) && v.folded[i+n] == t.folded[at+n] {
		n++
	}
	if s.steps -= n + 1; n < block {
		return hit{}, false
	}
	for back < i && back < at && v.folded[i-back-1] == t.folded[at-back-1] {
		back++
	}
	s.steps -= back
	h = hit{from: i - back, to: i + n, in: t, at: at - back}
	return h, counts(v.folded[h.from:h.to])
}

// counts reports whether a run is long enough in characters, and not made of a few of them.
func counts(run []byte) bool {
	if len(run) < MinRun || utf8.RuneCount(run) < MinRun {
		return false
	}
	var seen [256]bool
	different := 0
	for _, c := range run[:min(len(run), 4096)] {
		if !seen[c] {
			seen[c] = true
			if different++; different == minLetters {
				return true
			}
		}
	}
	return false
}

// runs finds the runs in one string.
func (s *search) runs(path, text string, views []view) (finds []Find) {
	if len(text) < MinRun {
		return nil
	}
	var all []hit
	for _, v := range views {
		all = append(all, s.hits(v, len(text))...)
	}
	finds = largest(path, text, all)
	s.rest(path, text, all, finds, false)
	return finds
}

// rest notes the sources of hits that none of the finds is of.
func (s *search) rest(path, text string, hits []hit, finds []Find, parts bool) {
	for _, h := range hits {
		if !slices.ContainsFunc(finds, func(f Find) bool { return f.Source == h.in.source }) {
			f := Find{Source: h.in.source, Argument: path, Characters: utf8.RuneCountInString(text[h.start:h.end]),
				Spans: []Span{{h.start, h.end - h.start}}, Line: h.in.line(h.at), How: h.how, Parts: parts}
			s.note(f)
		}
	}
}

// parts finds the runs that a string has together with what is sent before and behind it.
func (s *search) parts(path string, tail []byte, text string, behind []byte) (finds []Find) {
	if len(text) > 2*maxPart { // its middle has nothing to do with either
		finds = s.parts(path, tail, text[:maxPart], nil)
		if len(behind) > 0 {
			finds = append(finds, s.parts(path, nil, text[len(text)-maxPart:], behind)...)
		}
		return finds
	}
	whole := string(tail) + text + string(behind)
	ends := len(tail) + len(text)
	var all []hit
	for _, v := range viewsOf(whole) {
		for _, h := range s.hits(v, len(whole)) {
			inside := 0
			for _, at := range v.at[h.from:h.to] {
				if int(at) >= len(tail) && int(at) < ends {
					inside++
				}
			}
			if inside >= minPart && (h.start < len(tail) || h.end > ends) {
				all = append(all, h)
			}
		}
	}
	finds = largest(path, whole, all)
	for i := range finds {
		finds[i].Parts, finds[i].Spans, finds[i].Whole = true, []Span{{0, len(text)}}, false
	}
	s.rest(path, whole, all, finds, true)
	return finds
}

// largest picks the sources that explain most of a string: each for what those before it
// do not explain.
func largest(path, text string, hits []hit) (finds []Find) {
	if len(hits) == 0 {
		return nil
	}
	by := map[int][]hit{}
	var from []int
	sum := map[int]int{}
	for _, h := range hits {
		n := h.in.source
		if by[n] == nil {
			from = append(from, n)
		}
		by[n] = append(by[n], h)
		sum[n] += h.end - h.start
	}
	slices.Sort(from) // the earlier first where they explain as much
	slices.SortStableFunc(from, func(a, b int) int { return sum[b] - sum[a] })
	from = from[:min(len(from), maxFrom)]
	known := make([]bool, len(text))
	for len(finds) < maxFinds {
		best, most := -1, 0
		for _, n := range from {
			if c := characters(text, by[n], known); c > most {
				best, most = n, c
			}
		}
		if most < MinRun {
			break
		}
		for _, h := range by[best] {
			for i := h.start; i < h.end; i++ {
				known[i] = true
			}
		}
		first := slices.MinFunc(by[best], func(a, b hit) int { return cmp.Compare(a.start, b.start) })
		finds = append(finds, Find{Source: best, Argument: path, Characters: most, Whole: most == utf8.RuneCountInString(text),
			Spans: merged(by[best]), Line: first.in.line(first.at), How: first.how})
	}
	return finds
}

// characters counts those of a text that hits cover and known does not.
func characters(text string, hits []hit, known []bool) (n int) {
	covered := make([]bool, len(known))
	for _, h := range hits {
		for i := h.start; i < h.end; i++ {
			covered[i] = !known[i]
		}
	}
	for i, c := range covered {
		if c && utf8.RuneStart(text[i]) {
			n++
		}
	}
	return n
}

// merged are the spans of hits without what they overlap, in order, as far as they are named.
func merged(hits []hit) (all []Span) {
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.start, b.start) })
	for _, h := range hits {
		if n := len(all); n > 0 && h.start <= all[n-1].Offset+all[n-1].Length {
			all[n-1].Length = max(all[n-1].Length, h.end-all[n-1].Offset)
			continue
		}
		all = append(all, Span{h.start, h.end - h.start})
	}
	return all[:min(len(all), maxPlace)]
}

// values finds the short values of one string that no run explains.
func (s *search) values(path, text string, runs []Find, views []view) (finds []Find) {
	for _, v := range views {
		for _, p := range placesIn(v.plain) {
			span := Span{p.start, p.end - p.start}
			if v.how != "" {
				span = Span{0, len(text)}
			}
			explained := slices.ContainsFunc(runs, func(r Find) bool {
				return slices.ContainsFunc(r.Spans, func(o Span) bool {
					return o.Offset <= span.Offset && span.Offset+span.Length <= o.Offset+o.Length
				})
			})
			for _, t := range s.m.index.values[p.value] {
				f := Find{Source: t.source, Argument: path, Characters: utf8.RuneCountInString(p.text), Whole: span.Length == len(text),
					Spans: []Span{span}, How: v.how, Value: p.kind}
				if explained || len(finds) >= maxSaid { // another source than that of the run may have it, too
					s.note(f)
				} else if !slices.ContainsFunc(finds, func(o Find) bool { return o.Source == f.Source && o.Value == f.Value && o.Spans[0] == f.Spans[0] }) {
					finds = append(finds, f)
				}
			}
		}
	}
	return finds
}
