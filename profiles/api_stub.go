package profiles

import (
	"encoding/json"
	"strings"
	"time"
)

type Problem struct {
	Path    string
	Message string
	Hint    string
	Offset  int
}

type Options struct{ OwnFiles []string }

func Parse(spec Spec, options ...Options) (*Set, []Problem) { return &Set{}, nil }

type Set struct{}

func (s *Set) Profile(name string) (*Profile, bool)       { return nil, false }
func (s *Set) Names() []string                            { return nil }
func (s *Set) Default() *Profile                          { return &Profile{} }
func (s *Set) Revision() string                           { return "" }
func (s *Set) Enabled() bool                              { return true }
func (s *Set) PausedFor() time.Duration                   { return 0 }
func (s *Set) ClientPatience(client string) time.Duration { return 0 }
func (s *Set) Check(tools []ToolFacts) []Warning          { return nil }

type ToolFacts struct {
	Server, Tool, Title, Description string
	Annotations                      Annotations
	TrustAnnotations                 bool
	Input                            json.RawMessage
}

type Warning struct{ Path, Message, Hint string }

type Profile struct{}

func (p *Profile) Name() string                    { return "" }
func (p *Profile) Decide(call Call) Decision       { return Decision{} }
func (p *Profile) Explain(call Call) Explanation   { return Explanation{} }
func (p *Profile) Checks(call Call) []CheckResult  { return nil }
func (p *Profile) Sees(server, tool string) bool   { return true }
func (p *Profile) ReadOnly(tools []ToolFacts) bool { return false }
func (p *Profile) Limits() Limits                  { return Limits{} }
func (p *Profile) Effective() ProfileSpec          { return ProfileSpec{} }

type Explanation struct {
	Decision Decision
	Tried    []Trial
}

type Trial struct {
	Kind     Kind
	Profile  string
	Rule     string
	Patterns []string
	Action   Action
	Matched  bool
	Outcome  string
}

type CheckResult struct {
	Rule, Expr string
	Passed     bool
	Detail     string
}

func Stricter(a, b Decision) Decision { return a }

func oneOf(words []string) string { return strings.Join(words, ", ") }
