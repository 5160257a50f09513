// Package canon gives the arguments of a call one frozen form.
//
// A call's arguments come from a script as JSON text, and everything that
// happens to the call afterwards must be about the same bytes: policy decides
// on them, a person is shown them, the verdict is bound to them, the audit
// log records them and the upstream server gets them. Parse reads the text
// once, strictly, and writes it in a canonical form; an Args never changes
// after that.
//
// # The canonical form
//
// It is RFC 8785 (JSON Canonicalization Scheme) with one difference:
//
//   - no white space between tokens;
//   - members of an object in the order of their names' UTF-16 code units;
//   - strings with the shortest escapes: \" \\ \b \t \n \f \r, \u00xx in lower
//     case for the other control characters, and nothing else escaped;
//   - numbers as ECMAScript prints a double (1e+21, 0.000001, 1e-7, 0 for -0),
//     except that an integer written without fraction and exponent keeps its
//     exact digits. RFC 8785 would round 9007199254740993; identifiers of that
//     size are common, so we do not.
//
// A number written with a fraction or an exponent is a double, as it is in
// JavaScript: digits beyond its precision are lost when it is frozen, before
// anyone decides. Text is never Unicode-normalised.
//
// # What is refused
//
// JSON readers differ on some texts, and a text that two programs read
// differently must not be approved by one and executed by the other. Parse
// refuses, with the place and the reason: a name that occurs twice in one
// object (after decoding escapes), the name "__proto__", lone surrogates,
// invalid UTF-8, a byte order mark, numbers that no double can hold (1e400),
// NaN and Infinity, nesting deeper than MaxDepth, anything after the value,
// and a value that is not an object. An empty input stands for {}, a call
// without arguments.
//
// # What people see
//
// Display renders an Args for people and for the log: secrets hidden, long
// parts cut with counts, and characters that are invisible or that rearrange
// text written out by number. See Display, Escape and Redact.
package canon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// MaxDepth is how deep the arrays and objects of a call's arguments may nest,
// the outermost object included.
const MaxDepth = 128

// Args are the frozen arguments of one call. The zero Args is {}.
type Args struct {
	text   []byte // canonical
	digest Digest
}

// Parse freezes the arguments in raw. An empty raw stands for {}. An error is
// an *Error. Args holds no reference to raw.
func Parse(raw []byte) (Args, error) {
	if len(raw) == 0 {
		return Args{}, nil
	}
	text, err := canonical(raw)
	if err != nil {
		return Args{}, err
	}
	return Args{text: text, digest: sha256.Sum256(text)}, nil
}

// emptyObject is what the zero Args stands for.
var (
	emptyObject = []byte("{}")
	emptyDigest = Digest(sha256.Sum256(emptyObject))
)

// Bytes returns the canonical JSON text. It is shared: callers must not
// modify it.
func (a Args) Bytes() []byte {
	if a.text == nil {
		return emptyObject
	}
	return a.text
}

// Value returns the arguments as a tree of string, bool, nil, json.Number,
// []any and map[string]any. Each call makes a new tree, which is the caller's
// to change.
func (a Args) Value() map[string]any {
	c := cursor{text: a.Bytes()}
	return c.value().(map[string]any)
}

// Digest returns the SHA-256 of the canonical text.
func (a Args) Digest() Digest {
	if a.text == nil {
		return emptyDigest
	}
	return a.digest
}

// A Digest identifies arguments: equal digests mean the same canonical bytes.
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// String returns "sha256:" and 64 lower-case hexadecimal digits.
func (d Digest) String() string {
	return digestPrefix + hex.EncodeToString(d[:])
}

// MarshalText returns what String returns.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// ParseDigest reads what String writes, and nothing else: upper-case digits
// and missing prefixes are refused, so that a digest has one spelling.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	digits, ok := strings.CutPrefix(s, digestPrefix)
	if !ok || len(digits) != 2*len(d) || strings.ToLower(digits) != digits {
		return Digest{}, fmt.Errorf("reading digest %q: want %q and %d lower-case hexadecimal digits", CutBytes(s, 80), digestPrefix, 2*len(d))
	}
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil {
		return Digest{}, fmt.Errorf("reading digest %q: %w", s, err)
	}
	return d, nil
}

// An Error says why arguments were refused, and where.
type Error struct {
	// Path is a JSON pointer (RFC 6901) to the offending value or name; empty
	// for the whole text. It is raw: it may hold anything that a name may.
	Path string
	// Reason is a short text that is safe to show.
	Reason string
	// Offset is the byte offset in the text given to Parse at which reading
	// stopped.
	Offset int
}

// Error is safe to show: Path is cut, made visible and redacted.
func (e *Error) Error() string {
	if e.Path == "" {
		return "reading arguments: " + e.Reason
	}
	return "reading arguments at " + Escape(CutBytes(Redact(e.Path), 200)) + ": " + e.Reason
}
