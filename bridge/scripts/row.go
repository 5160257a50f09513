package scripts

import (
	"encoding/json"
	"slices"
	"strconv"

	"codemode-bridge/bridge/tsdecl"
)

// A Row is what is printed of a saved script. Its keys are promised in
// docs/reference/cli.md.
type Row struct {
	Name        string          `json:"name,omitempty"`
	File        string          `json:"file"`
	Description string          `json:"description,omitempty"`
	Declaration string          `json:"declaration,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	Hash        string          `json:"hash,omitempty"`
	Problem     string          `json:"problem,omitempty"`
	Line        int             `json:"line,omitempty"`
	Column      int             `json:"column,omitempty"`
	Source      string          `json:"source,omitempty"`
}

// NewRow returns the row of a script, without its source.
func NewRow(s Script) Row {
	row := Row{Name: s.Name, File: s.File, Description: tsdecl.Plain(s.Description, 0), Input: s.Input, Hash: s.Digest}
	if s.Problem != nil {
		row.Problem, row.Line, row.Column = s.Problem.Error(), s.Problem.Line, s.Problem.Column
	} else {
		row.Declaration = tsdecl.Saved(s.Name, s.Input, s.Output, tsdecl.Options{})
	}
	return row
}

// Summary is what a list says of the script, on one line.
func (r Row) Summary() string {
	if r.Problem != "" {
		return "broken: " + tsdecl.Plain(r.Problem, 120)
	}
	return tsdecl.Plain(r.Description, 80)
}

// Find finds a script by its name, or the name of its file.
func Find(all []Script, name string) (Script, bool) {
	i := slices.IndexFunc(all, func(s Script) bool { return s.Name == name || s.File == name })
	if i < 0 {
		return Script{}, false
	}
	return all[i], true
}

// Place is where the problem is, to be put behind the file's name: ":3:7"; empty if
// that is not known.
func (p *Problem) Place() string {
	at := ""
	for _, n := range []int{p.Line, p.Column} {
		if n > 0 {
			at += ":" + strconv.Itoa(n)
		}
	}
	return at
}

// Call returns a script that runs a saved one and hands its own input on.
func Call(name string) string {
	quoted, err := json.Marshal(name)
	if err != nil {
		quoted = []byte(`""`) // a string has a JSON form
	}
	return "return await codemode.run(" + string(quoted) + ", input)"
}
