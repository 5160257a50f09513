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
// # What is not found
//
// Text that the script has changed on the way: encoded, translated, rewritten,
// or cut into shorter pieces. And text that is no longer remembered: a run's
// memory is [MaxKept] bytes, and when it is full the largest answer is dropped
// first, so that nobody can flush a key file out with a large page. Found.Partly
// then says that the search was incomplete. So a match is a reason to look
// closer, but the lack of one is no reason not to.
package provenance

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"
)

const (
	// MinRun is the least number of characters in common that is reported.
	MinRun = 24
	// MaxKept bounds what is remembered of one run, in bytes.
	MaxKept = 4 << 20
	// maxAnswer bounds how much of one answer is remembered, from its beginning.
	maxAnswer = 1 << 20
)

// A Memory is what one run has read. Its zero value is empty; its methods may
// be called by any number of goroutines.
type Memory struct {
	mu      sync.Mutex
	answers []*answer // in the order they came
	kept    int       // bytes of them
	partly  bool      // something was left out
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
}

// An answer is what one call returned.
type answer struct {
	Source
	size  int
	read  sync.Once
	reply []byte   // JSON, perhaps without its end; nil once it was read
	texts [][]byte // the strings in it
}

// strings returns the strings of the answer, read when they are first wanted.
func (a *answer) strings() [][]byte {
	a.read.Do(func() {
		eachString(a.reply, func(text []byte) { a.texts = append(a.texts, text) }, maxNested)
		a.reply = nil
	})
	return a.texts
}

// Read remembers the answer of a call: the whole CallToolResult, which is
// copied. It is cheap: the answer is parsed when Find first needs it.
func (m *Memory) Read(from Source, reply json.RawMessage) {
	if len(reply) < MinRun {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(reply) > maxAnswer {
		reply, m.partly = reply[:maxAnswer], true
	}
	m.answers = append(m.answers, &answer{Source: from, size: len(reply), reply: bytes.Clone(reply)})
	for m.kept += len(reply); m.kept > MaxKept; m.partly = true {
		largest := 0
		for i, a := range m.answers {
			if a.size > m.answers[largest].size {
				largest = i
			}
		}
		m.kept -= m.answers[largest].size
		m.answers = slices.Delete(m.answers, largest, largest+1)
	}
}

// Found is what a call sends of what its run has read.
type Found struct {
	Runs []Run // the largest of each argument first, at most a few
	// Partly reports that not all that was read could be compared.
	Partly bool
}

// A Run is characters of one argument that one answer held.
type Run struct {
	Argument   string // dotted path, in display form
	Characters int    // at least MinRun
	Whole      bool   // they are the whole argument
	Spans      []Span // where they stand in it, the first ones
	Call       int    // that read them
	Server     string
	From       string // the tool and what it was asked for, in display form
}

// A Span is a part of a text, in bytes.
type Span struct{ Offset, Length int }

// String is the run in words.
func (r Run) String() string {
	all := ""
	if r.Whole {
		all = "all "
	}
	return all + canon.Thousands(r.Characters) + " characters of " + r.Argument + " were read in call " + strconv.Itoa(r.Call) + " from " + r.From
}

// from names an answer's call for a person: its tool, and the argument that
// tells most of what was asked for.
func (a *answer) from() string {
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
