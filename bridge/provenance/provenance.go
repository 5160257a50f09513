// Package provenance tells where the bytes of a call's arguments come from: it
// remembers what a run has read and finds it in what the run sends.
//
//	1,204 characters of body were read in call 3 from filesystem__read_file ~/.aws/credentials
//
// A [Memory] belongs to one run. [Memory.Read] adds each answer of a tool to it,
// and only keeps the text. The search happens when a person is about to be
// asked: [Memory.Find] cuts the arguments into blocks, hashes them, and passes a
// rolling hash over everything that was read, once, comparing bytes wherever a
// block's hash matches.
//
// # What is found
//
// Every run of at least [MinRun] characters that a string among the arguments
// shares, byte for byte, with something that was read: the text of an answer,
// or any string of JSON in an answer, even if that JSON is itself inside a text.
// White space at the ends makes no difference, nor does text added before,
// after or in between. Runs of only a few different characters, such as rules
// and indentation, mean nothing and are left out.
//
// [Memory.Names] finds shorter ones, if they are proper names: it is for what nobody
// is asked about otherwise.
//
// Finding is the business of package flow, which says what is found and what is not. Here are the names of what was
// read, for people. A run's memory is bounded: Found.Partly says that the search was
// incomplete.
package provenance

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
	"codemode-bridge/profiles/flow"
)

// MinRun is the least number of characters in common that is reported.
const MinRun = flow.MinRun

// MaxKept is the most that a memory keeps of one run, in bytes.
const MaxKept = flow.MaxLimit

// A Memory is what one run has read. Its zero value is empty; its methods may
// be called by any number of goroutines.
type Memory struct {
	flow    flow.Memory
	mu      sync.Mutex
	sources []Source       // by the number that flow knows them by
	classes map[string]int // of sources that are the same to rules
	stored  map[string][]profiles.FlowFact
	written map[int]bool    // the calls that counted as written
	left    map[string]bool // the servers at which something was left that was not written
}

// A Source is the call that an answer belongs to.
type Source struct {
	Call   int    // its number in the run
	Server string // the configured name
	Tool   string // the raw name
	Args   canon.Args
	// Hidden are the members of Args that are hidden on display, as
	// canon.DisplayOptions has them.
	Hidden map[string]string
	// Labels are what rules about flows call what it read.
	Labels []string
	// Unlabelled reports that nobody has said which labels it has.
	Unlabelled bool
}

// Keep raises how many bytes of answers are remembered.
func (m *Memory) Keep(bytes int) { m.flow.Keep(bytes) }

// Prepare makes the next search as fast as those after it.
func (m *Memory) Prepare() { m.flow.Prepare() }

// Read remembers the answer of a call: the whole CallToolResult, which is
// copied. It is cheap: the answer is parsed when Find first needs it.
func (m *Memory) Read(from Source, reply json.RawMessage) {
	m.mu.Lock()
	m.sources = append(m.sources, from)
	n := len(m.sources) - 1
	if m.classes == nil {
		m.classes = map[string]int{}
	}
	is := strconv.Quote(from.Server) + strconv.FormatBool(from.Unlabelled) + strings.Join(from.Labels, " ")
	class, ok := m.classes[is]
	if !ok {
		class = len(m.classes)
		m.classes[is] = class
	}
	m.mu.Unlock()
	m.flow.ReadAs(n, class, reply)
}

// Send notes what a call that is over has sent to a server, for what is sent there in parts.
func (m *Memory) Send(server string, args canon.Args) { m.flow.Send(server, args.Value()) }

// Sent and Drop say what became of a call that was taken.
func (m *Memory) Sent(call int) { m.flow.Sent(call) }

// Drop says that a call that was taken is not sent.
func (m *Memory) Drop(call int) { m.flow.Drop(call) }

// source returns a source by its number.
func (m *Memory) source(n int) Source {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sources[n]
}

// Found is what a call sends of what its run has read.
type Found struct {
	Runs []Run // the largest first, at most a few
	// Values are short ones that identify.
	Values []Run
	// Also are more of both, which nobody is shown: what those explain, too, or leave no room for.
	Also []Run
	// Partly reports that not all that was read could be compared. Lost are the sources of
	// which something is not remembered.
	Partly bool
	Lost   []Source
}

// A Run is characters of one argument that one answer held.
type Run struct {
	Source     Source
	Argument   string // dotted path, in display form
	Characters int    // at least MinRun, but of a value
	Whole      bool   // they are the whole argument
	Spans      []Span // where they stand in it, the first ones
	Call       int    // that read them
	Server     string
	From       string // the tool and what it was asked for, in display form
	Line       int    // of the answer, where the first begins; 0 if it has only one
	How        string // the encoding in which they are sent; empty for none
	Value      string // the kind of a value
	Parts      bool   // they were sent in parts, of which this is the last
}

// A Span is a part of a text, in bytes.
type Span = flow.Span

// String is the run in words.
func (r Run) String() string {
	all := ""
	if r.Whole {
		all = "all "
	}
	return all + canon.Thousands(r.Characters) + " characters of " + r.Argument + " were read in call " + strconv.Itoa(r.Call) + " from " + r.From
}

// Find reports which parts of args the run has read. Server is the one that they are sent to by a call,
// which has no number if it is not made yet.
func (m *Memory) Find(call int, server string, args canon.Args) Found {
	return m.found(m.flow.Find(call, server, args.Value()), args)
}

// Take is Find for a call that is about to be decided: what it sends stands before what later calls send,
// even if they are decided before it is sent.
func (m *Memory) Take(call int, server string, args canon.Args) Found {
	return m.found(m.flow.Take(call, server, args.Value()), args)
}

func (m *Memory) found(found flow.Found, args canon.Args) Found {
	f := Found{Partly: found.Partly}
	for i, one := range slices.Concat(found.Finds, found.Also) {
		from := m.source(one.Source)
		r := Run{Source: from, Argument: canon.Escape(canon.Cut(one.Argument, maxPath)), Characters: one.Characters, Whole: one.Whole, Spans: one.Spans,
			Call: from.Call, Server: from.Server, From: from.from(), Line: one.Line, How: one.How, Value: one.Value, Parts: one.Parts}
		if i >= len(found.Finds) {
			f.Also = append(f.Also, r)
		} else if r.Value != "" {
			f.Values = append(f.Values, r)
		} else {
			f.Runs = append(f.Runs, r)
		}
	}
	if lost := m.flow.Lost(); len(lost) > 0 && len(flow.Strings(args.Value())) > 0 { // a short text may be a part, or a value
		for _, n := range lost {
			f.Lost = append(f.Lost, m.source(n))
		}
		f.Partly = f.Partly || long(args)
	}
	return f
}

// long reports whether arguments have a text that could hold a run.
func long(args canon.Args) bool {
	return slices.ContainsFunc(flow.Strings(args.Value()), func(s flow.Sent) bool { return len(s.Text) >= MinRun })
}

// maxPath bounds a path for display, in characters.
const maxPath = 60

// from names an answer's call for a person: its tool, and the argument that
// tells most of what was asked for.
func (a Source) from() string {
	name := canon.Escape(a.Tool)
	if a.Server != "" {
		name = canon.Escape(a.Server) + "__" + name
	}
	var shown map[string]any
	if json.Unmarshal(canon.Display(a.Args, canon.DisplayOptions{Hidden: a.Hidden, MaxString: maxNaming}).JSON, &shown) != nil {
		return name
	}
	naming, rank := "", len(namingArguments)+1
	for key, value := range shown {
		text, ok := value.(string)
		if !ok || text == "" || strings.ContainsAny(text, "\n\t") {
			continue
		}
		at := len(namingArguments)
		for i, n := range namingArguments {
			if strings.EqualFold(key, n) {
				at = i
			}
		}
		if at < rank || at == rank && (len(text) < len(naming) || len(text) == len(naming) && text < naming) {
			naming, rank = text, at
		}
	}
	if naming != "" {
		name += " " + naming
	}
	return name
}

// namingArguments are the names of arguments that say what a call reads, the
// more telling first. Where there is none of them, the shortest text does.
var namingArguments = []string{"path", "file", "filename", "uri", "url", "key", "name", "id", "query", "q", "title"}

const maxNaming = 200 // characters shown of it
