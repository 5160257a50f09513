package provenance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
)

// Bounds of one search. What lies beyond is not compared, and Found.Partly
// says so.
const (
	maxSent  = 1 << 20 // bytes of arguments
	maxSteps = 1 << 26 // bytes compared after a hash came up: a few tenths of a second
	maxSpans = 4096    // noted of one argument in one answer
	maxFrom  = 16      // answers weighed against each other, of one argument
	maxRuns  = 3       // reported of one argument
	maxSaid  = 6       // reported in all
	maxPlace = 8       // spans of one run that are named
)

// block is the length of the pieces that arguments are cut into. A run of
// MinRun bytes holds a whole piece wherever it begins, as it is longer than
// two of them less one.
const block = MinRun / 2

// minLetters is how many different bytes a run must hold to say anything.
const minLetters = 6

// Find reports which parts of args the run has read.
func (m *Memory) Find(args canon.Args) Found {
	m.mu.Lock()
	answers, partly := slices.Clone(m.answers), m.partly
	m.mu.Unlock()
	s := newSearch(args)
	s.partly = s.partly || partly && len(s.blocks) > 0
	if len(s.blocks) == 0 {
		return Found{Partly: s.partly}
	}
	hits := make([]map[int][]span, len(answers)) // by answer, by argument
	for i, a := range answers {
		hits[i] = map[int][]span{}
		for _, text := range a.strings() {
			s.roll(text, hits[i])
		}
	}
	found := Found{Partly: s.partly}
	for n := range s.sent {
		found.Runs = append(found.Runs, s.largest(n, answers, hits)...)
	}
	slices.SortStableFunc(found.Runs, func(a, b Run) int { return b.Characters - a.Characters })
	found.Runs = found.Runs[:min(len(found.Runs), maxSaid)]
	return found
}

// A sent is one string among the arguments.
type sent struct {
	path string
	text string
	at   int // of its first byte in search.all
}

// A span is a part of a sent text, [start, end) in bytes.
type span struct{ start, end int }

// A search looks for the strings of one call's arguments.
type search struct {
	sent   []sent
	all    []byte           // the texts one after another, a zero byte between
	blocks map[uint64][]int // hash of a block to where it stands in all, the first few
	filter []uint64         // a bit for each hash there may be: most windows end here
	partly bool
	steps  int  // still to spend
	short  bool // short strings count, too
}

// sameBlock bounds how many places of one block are looked at: more of them
// only where a text repeats itself.
const sameBlock = 8

// filterBits is the size of the filter: some bits for each block there may be.
const filterBits = 19

func newSearch(args canon.Args) *search {
	s := &search{blocks: map[uint64][]int{}, filter: make([]uint64, 1<<(filterBits-6)), steps: maxSteps}
	s.collect("", args.Value())
	for _, t := range s.sent {
		for i := t.at; i+block <= t.at+len(t.text); i += block {
			h := hashOf(s.all[i : i+block])
			if places := s.blocks[h]; len(places) < sameBlock {
				s.blocks[h] = append(places, i)
				word, bit := slot(h)
				s.filter[word] |= bit
			}
		}
	}
	return s
}

// collect gathers the strings of a value that are long enough.
func (s *search) collect(path string, value any) {
	switch v := value.(type) {
	case string:
		s.add(path, v)
	case []any:
		for i, element := range v {
			s.collect(path+"["+strconv.Itoa(i)+"]", element)
		}
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			s.add("a name in "+cmp.Or(path, "the arguments"), name)
			s.collect(strings.TrimPrefix(path+"."+name, "."), v[name])
		}
	}
}

func (s *search) add(path, text string) {
	if len(text) < MinRun && !s.short {
		return
	}
	if room := max(0, maxSent-len(s.all)); len(text) > room {
		text, s.partly = text[:room], true
	}
	s.sent = append(s.sent, sent{path, text, len(s.all)})
	s.all = append(append(s.all, text...), 0)
}

// The rolling hash: a polynomial over the block's bytes, modulo 2^64. Nothing
// is believed for its hash: the bytes are compared.
const base = 0x9E3779B97F4A7C15

var lastPower = func() uint64 {
	p := uint64(1)
	for range block - 1 {
		p *= base
	}
	return p
}()

// slot is where a hash stands in the filter.
func slot(h uint64) (word int, bit uint64) {
	top := h * base >> (64 - filterBits)
	return int(top >> 6), 1 << (top & 63)
}

func hashOf(b []byte) uint64 {
	h := uint64(0)
	for _, c := range b {
		h = h*base + uint64(c) + 1
	}
	return h
}

// roll finds the runs that a text has in common with what is sent.
func (s *search) roll(text []byte, hits map[int][]span) {
	if len(text) < MinRun {
		return
	}
	h := hashOf(text[:block])
	for i := 0; ; {
		next := i + 1
		if word, bit := slot(h); s.filter[word]&bit != 0 {
			if end := s.compare(text, i, s.blocks[h], hits); end > next {
				next = end // what is found already is not looked at again
			}
		}
		if next+block > len(text) || s.steps < 0 {
			s.partly = s.partly || s.steps < 0
			return
		}
		if next == i+1 {
			h = (h-(uint64(text[i])+1)*lastPower)*base + uint64(text[i+block]) + 1
		} else {
			h = hashOf(text[next : next+block])
		}
		i = next
	}
}

// compare extends the block of text at i to both sides, at each place where
// the same is sent, and notes what is long enough. It returns where the
// longest ends in text, less what another may begin with.
func (s *search) compare(text []byte, i int, places []int, hits map[int][]span) (end int) {
	for _, at := range places {
		n, back := 0, 0
		for i+n < len(text) && text[i+n] == s.all[at+n] && s.all[at+n] != 0 {
			n++
		}
		if s.steps -= n + 1; n < block {
			continue
		}
		for back < i && back < at && text[i-back-1] == s.all[at-back-1] && s.all[at-back-1] != 0 {
			back++
		}
		s.steps -= back
		if run := (span{at - back, at + n}); s.counts(run) {
			which := s.argument(at)
			if len(hits[which]) == maxSpans {
				s.partly = true
				continue
			}
			hits[which] = append(hits[which], span{run.start - s.sent[which].at, run.end - s.sent[which].at})
			end = max(end, i+n-block+1)
		}
	}
	return end
}

// argument is the index of the text that holds a place.
func (s *search) argument(at int) int {
	i, _ := slices.BinarySearchFunc(s.sent, at, func(t sent, at int) int { return cmp.Compare(t.at, at+1) })
	return i - 1
}

// counts reports whether a run is long enough in characters, and not made of
// a few of them.
func (s *search) counts(run span) bool {
	b := s.all[run.start:run.end]
	if len(b) < MinRun || utf8.RuneCount(b) < MinRun {
		return false
	}
	var seen [256]bool
	different := 0
	for _, c := range b[:min(len(b), 4096)] {
		if !seen[c] {
			seen[c] = true
			if different++; different == minLetters {
				return true
			}
		}
	}
	return false
}

// largest picks, for one argument, the answers that explain most of it: each
// for what those before it do not explain.
func (s *search) largest(n int, answers []*answer, hits []map[int][]span) []Run {
	var from []int // the answers that may explain most, the earlier first where they are equal
	for i := range answers {
		if len(hits[i][n]) > 0 {
			from = append(from, i)
		}
	}
	slices.SortStableFunc(from, func(a, b int) int { return sum(hits[b][n]) - sum(hits[a][n]) })
	from = from[:min(len(from), maxFrom)]
	var runs []Run
	known := make([]bool, len(s.sent[n].text))
	for len(runs) < maxRuns {
		best, most := -1, 0
		for _, i := range from {
			if c := s.characters(n, hits[i][n], known); c > most {
				best, most = i, c
			}
		}
		if most < MinRun {
			break
		}
		for _, h := range hits[best][n] {
			for i := h.start; i < h.end; i++ {
				known[i] = true
			}
		}
		a := answers[best]
		runs = append(runs, Run{Argument: canon.Escape(canon.Cut(s.sent[n].path, maxPath)), Characters: most,
			Whole: most == utf8.RuneCountInString(s.sent[n].text), Spans: merged(hits[best][n]), Call: a.Call, Server: a.Server, From: a.from()})
	}
	return runs
}

// merged are spans without what they overlap, in order, as far as they are named.
func merged(spans []span) []Span {
	spans = slices.SortedFunc(slices.Values(spans), func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var all []Span
	for _, s := range spans {
		if n := len(all); n > 0 && s.start <= all[n-1].Offset+all[n-1].Length {
			all[n-1].Length = max(all[n-1].Length, s.end-all[n-1].Offset)
			continue
		}
		all = append(all, Span{s.start, s.end - s.start})
	}
	return all[:min(len(all), maxPlace)]
}

func sum(spans []span) int {
	n := 0
	for _, h := range spans {
		n += h.end - h.start
	}
	return n
}

// characters counts those of an argument that spans cover and known does not.
func (s *search) characters(n int, spans []span, known []bool) int {
	covered := make([]bool, len(known))
	for _, h := range spans {
		for i := h.start; i < h.end; i++ {
			covered[i] = !known[i]
		}
	}
	count, text := 0, s.sent[n].text
	for i, c := range covered {
		if c && utf8.RuneStart(text[i]) {
			count++
		}
	}
	return count
}

// maxPath bounds a path for display, in characters.
const maxPath = 60

// maxNested is how deep JSON that stands in a string of JSON is read.
const maxNested = 3

// eachString calls f with the strings of JSON that are long enough, and with
// those of JSON that stands in them. A text that is cut off yields those before its end.
func eachString(text []byte, f func([]byte), nested int) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		t, err := d.Token()
		s, ok := t.(string)
		if err != nil {
			s, ok = unfinished(text[d.InputOffset():])
			if !ok {
				return
			}
		}
		if ok && len(s) >= MinRun {
			f([]byte(s))
			if first := strings.TrimLeft(s, " \t\r\n"); nested > 0 && first != "" && strings.IndexByte(`{["`, first[0]) >= 0 {
				eachString([]byte(first), f, nested-1)
			}
		}
		if err != nil {
			return
		}
	}
}

// unfinished reads the string in which a text breaks off.
func unfinished(rest []byte) (s string, ok bool) {
	rest = bytes.TrimLeft(rest, " \t\r\n,:")
	if len(rest) == 0 || rest[0] != '"' {
		return "", false
	}
	const longestEscape = len(`\ud83d\ude0`)
	for cut := range min(len(rest), longestEscape+1) {
		whole := append(rest[:len(rest)-cut:len(rest)-cut], '"')
		if json.Unmarshal(whole, &s) == nil {
			return s, true
		}
	}
	return "", false
}
