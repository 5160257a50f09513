package profiles

import "fmt"

// A Disposition is what becomes of a call, ordered from the loosest to the
// strictest. The zero value is not a disposition and must be treated as Deny.
type Disposition int

// The dispositions.
const (
	Allow Disposition = iota + 1
	Ask
	Deny
)

// A Risk is how much harm a call may do, in ascending order. The zero value means
// that nothing sets it.
type Risk int

// The risks.
const (
	Low Risk = iota + 1
	Medium
	High
	Critical
)

// A Fallback is what becomes of a question that the client cannot ask. The zero
// value is FallbackDeny.
type Fallback int

// The fallbacks, from the strictest to the loosest.
const (
	FallbackDeny  Fallback = iota // refuse
	FallbackQueue                 // wait for page, terminal or API
	FallbackAllow                 // let it pass, and log it
)

// An Action is what a rule says of its calls. The zero value decides nothing.
type Action int

// The actions, from the loosest to the strictest.
const (
	ActionAllow Action = iota + 1
	ActionNotify
	ActionAsk
	ActionManual
	ActionDeny
)

// The written forms. The index is the value; an empty word has none.
var (
	dispositionWords = []string{"", "allow", "ask", "deny"}
	riskWords        = []string{"", "low", "medium", "high", "critical"}
	fallbackWords    = []string{"deny", "queue", "allow"}
	actionWords      = []string{"", "allow", "notify", "ask", "manual", "deny"}
)

// String is the word used everywhere: allow, ask, deny.
func (d Disposition) String() string { return word(dispositionWords, int(d)) }

// MarshalText writes the word.
func (d Disposition) MarshalText() ([]byte, error) { return marshalWord(dispositionWords, int(d)) }

// UnmarshalText reads the word.
func (d *Disposition) UnmarshalText(text []byte) error {
	return unmarshalWord(dispositionWords, text, d)
}

// String is the word used everywhere: low, medium, high, critical.
func (r Risk) String() string { return word(riskWords, int(r)) }

// MarshalText writes the word.
func (r Risk) MarshalText() ([]byte, error) { return marshalWord(riskWords, int(r)) }

// UnmarshalText reads the word.
func (r *Risk) UnmarshalText(text []byte) error { return unmarshalWord(riskWords, text, r) }

// String is the word used everywhere: deny, queue, allow.
func (f Fallback) String() string { return word(fallbackWords, int(f)) }

// MarshalText writes the word.
func (f Fallback) MarshalText() ([]byte, error) { return marshalWord(fallbackWords, int(f)) }

// UnmarshalText reads the word.
func (f *Fallback) UnmarshalText(text []byte) error { return unmarshalWord(fallbackWords, text, f) }

// String is the word used everywhere: allow, notify, ask, manual, deny.
func (a Action) String() string { return word(actionWords, int(a)) }

// MarshalText writes the word.
func (a Action) MarshalText() ([]byte, error) { return marshalWord(actionWords, int(a)) }

// UnmarshalText reads the word.
func (a *Action) UnmarshalText(text []byte) error { return unmarshalWord(actionWords, text, a) }

func word(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return fmt.Sprintf("invalid(%d)", i)
	}
	return words[i]
}

// marshalWord writes zero as the empty text, where zero has no word.
func marshalWord(words []string, i int) ([]byte, error) {
	if i < 0 || i >= len(words) {
		return nil, fmt.Errorf("writing a word for %d: there is none", i)
	}
	return []byte(words[i]), nil
}

func unmarshalWord[T ~int](words []string, text []byte, to *T) error {
	for i, w := range words {
		if w == string(text) {
			*to = T(i)
			return nil
		}
	}
	return fmt.Errorf("unknown word %q, want one of %s", text, oneOf(words))
}
