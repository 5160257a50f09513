// Package wire is what enrolled laptops and their centre say to each other.
//
// A laptop has an Ed25519 key, made when it is enrolled and known to the centre by name. It
// signs every request over method, path, body, its own name and a stamp: the time in
// microseconds, greater in each request than in any before, so that no request counts
// twice. The centre signs every answer over the request's method, path and headers, the status and the body.
//
//	GET  /laptops/v1/centre   the centre's key
//	POST /laptops/v1/enrol    an Enrolling: a code makes a key known
//	POST /laptops/v1/rows     a Batch of rows, which may be empty
//	POST /laptops/v1/questions  what waits for approvers, in the form of package questions
//	POST /laptops/v1/leave    the laptop has left
//	GET  /laptops/v1/policy   a document of policy, which anybody may read; beside it, at
//	                          .../policy.sig, who signed it
//
// A code is good once and has two halves: a secret, which never travels, and the beginning of the
// digest of the centre's key. The laptop talks to no centre with another key, and what it
// says of its own key is authenticated with the secret: whoever is in between learns
// nothing that enrols another key.
package wire

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Paths of the endpoints.
const (
	PathCentre = "/laptops/v1/centre"
	PathEnrol  = "/laptops/v1/enrol"
	PathRows   = "/laptops/v1/rows"
	PathLeave  = "/laptops/v1/leave"
	// PathQuestions is answered once there is a verdict, or after a while.
	PathQuestions = "/laptops/v1/questions"
	// PathPolicy has the document of policy for laptops, and PathPolicySig who signed it.
	PathPolicy    = "/laptops/v1/policy"
	PathPolicySig = PathPolicy + ".sig"
)

// Headers of requests and answers.
const (
	HeaderLaptop    = "Codemode-Laptop"    // its name
	HeaderStamp     = "Codemode-Stamp"     // of the request
	HeaderSignature = "Codemode-Signature" // base64, of the request or the answer
)

// Bounds of a batch.
const (
	MaxRows = 500
	MaxText = 1 << 20 // bytes of rows, after which no further one is added
	// MaxRow is what one row has at most, and MaxBody a request: MaxText and one more row, as JSON.
	MaxRow  = 4 << 20
	MaxBody = 2*(MaxText+MaxRow) + 1<<20
)

// MaxSkew is how far the clocks may be apart. A laptop whose clock is farther off learns the
// centre's time from a signed refusal, and goes by that.
const MaxSkew = 5 * time.Minute

// A Hash identifies a row and all rows before it, as in package ledger; as text it has 64
// hexadecimal digits.
type Hash [sha256.Size]byte

// MarshalText returns the digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Hash) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(h) {
		return fmt.Errorf("%.80q is no hash: want %d hexadecimal digits", text, 2*len(h))
	}
	copy(h[:], b)
	return nil
}

// A Head is the last row that somebody has of a log.
type Head struct {
	Store string `json:"store"` // the log's id
	Seq   int64  `json:"seq"`
	Hash  Hash   `json:"hash"`
}

// A Centre answers PathCentre.
type Centre struct {
	Key []byte `json:"key"`
}

// An Enrolling is a request to make a key known.
type Enrolling struct {
	Code    string `json:"code"` // CodeID
	Key     []byte `json:"key"`
	MAC     Hash   `json:"mac"` // of the key and From; see CodeMAC
	From    Head   `json:"from"`
	Version string `json:"version"` // of the program
}

// An Enrolled is the answer.
type Enrolled struct {
	Laptop string `json:"laptop"` // the name that the centre gives it
	Person string `json:"person"`
	// PolicyKey is the key that signs the document of policy, if there is one.
	PolicyKey string `json:"policyKey,omitempty"`
}

// A Batch is rows of a log, in order and without a gap, that follow the row After.
type Batch struct {
	Store   string `json:"store"`
	After   int64  `json:"after"`
	Prev    Hash   `json:"prev"` // the hash of the row After
	Rows    []Row  `json:"rows,omitempty"`
	Waiting int64  `json:"waiting"` // rows that come after these
	Version string `json:"version"`
	Policy  int64  `json:"policy,omitempty"` // the serial of the centre's policy that is in force there; 0: none is
}

// A Row is a row as it is kept: Body is the record's JSON text, byte for byte.
type Row struct {
	Seq  int64  `json:"seq"`
	Hash Hash   `json:"hash"`
	Body string `json:"body"`
}

// A Received answers a batch: what the centre has now.
type Received struct {
	Head Head `json:"head"`
}

// A Refusal is an answer that is an error.
type Refusal struct {
	Code    Reason `json:"code"`
	Message string `json:"message"`

	Time time.Time `json:"time,omitzero"`  // of the centre; with OffClock
	Last int64     `json:"last,omitempty"` // the greatest stamp; with Replayed
	Head *Head     `json:"head,omitempty"` // what the centre has; with Gap and Forked
}

func (r *Refusal) Error() string { return "the centre refuses: " + r.Message }

// A Reason is why a request is refused.
type Reason string

const (
	BadRequest   Reason = "request"
	BadCode      Reason = "code"      // there is no such code, or it is over
	UsedCode     Reason = "used"      // it enrolled another key
	TooMany      Reason = "too_many"  // wrong codes
	Unknown      Reason = "unknown"   // there is no laptop of that name
	BadSignature Reason = "signature" // it is not the laptop's
	OffClock     Reason = "clock"
	Replayed     Reason = "replayed" // a stamp that is not greater than the last
	Revoked      Reason = "revoked"
	Gap          Reason = "gap"    // the rows before are missing at the centre
	Broken       Reason = "broken" // the rows do not follow from each other
	Forked       Reason = "forked" // other rows than the ones that the centre has
	Failed       Reason = "failed" // the centre cannot keep them now
)

// Final reports whether trying again is of no use until a person has done something.
func (r *Refusal) Final() bool {
	switch r.Code {
	case Unknown, BadSignature, Revoked, Broken, Forked:
		return true
	}
	return false
}

// Fingerprint returns the part of a code that names a centre's key: 80 bits of its digest.
func Fingerprint(key ed25519.PublicKey) string {
	sum := sha256.Sum256(append([]byte("codemode-bridge centre key 1\n"), key...))
	return base32.StdEncoding.EncodeToString(sum[:10])
}

// NewCode makes a code for a centre with that key.
func NewCode(key ed25519.PublicKey) string { return rand.Text() + "." + Fingerprint(key) }

// ParseCode reads what NewCode writes, with white space around it and in any case.
func ParseCode(text string) (secret, fingerprint string, err error) {
	secret, fingerprint, ok := strings.Cut(strings.ToUpper(strings.TrimSpace(text)), ".")
	if _, bad := base32.StdEncoding.DecodeString(fingerprint); !ok || bad != nil || len(secret) != 26 || len(fingerprint) != 16 {
		return "", "", errors.New("that is no code of a centre: it has 26 letters and digits, a dot, and 16 more")
	}
	return secret, fingerprint, nil
}

// CodeID names a code without giving it away.
func CodeID(secret string) string { return hex.EncodeToString(derived(secret, "id")) }

// CodeKey is what the centre keeps of a code, to check a MAC with.
func CodeKey(secret string) []byte { return derived(secret, "mac") }

func derived(secret, purpose string) []byte {
	sum := sha256.Sum256([]byte("codemode-bridge code " + purpose + " 1\n" + secret))
	return sum[:]
}

// CodeMAC authenticates what a laptop says of itself when it is enrolled.
func CodeMAC(codeKey []byte, e *Enrolling) (sum Hash) {
	m := hmac.New(sha256.New, codeKey)
	fmt.Fprintf(m, "codemode-bridge enrol 1\n%x\n%q\n%d\n%x", e.Key, e.From.Store, e.From.Seq, e.From.Hash[:])
	m.Sum(sum[:0])
	return sum
}

// requestText is what a laptop signs.
func requestText(centre ed25519.PublicKey, method, path, laptop, stamp string, body []byte) []byte {
	return fmt.Appendf(nil, "codemode-bridge laptop 1\n%s\n%s %s\n%q\n%s\n%x", Fingerprint(centre), method, path, laptop, stamp, sha256.Sum256(body))
}

// answerText is what the centre signs: an answer to one request, with its method, path and
// headers, and to no other.
func answerText(asked http.Header, method, path string, status int, body []byte) []byte {
	return fmt.Appendf(nil, "codemode-bridge centre 1\n%q\n%q\n%q\n%q\n%q\n%d\n%x", method, path, asked.Get(HeaderLaptop), asked.Get(HeaderStamp), asked.Get(HeaderSignature), status, sha256.Sum256(body))
}

// SignRequest sets the headers of a laptop's request.
func SignRequest(h http.Header, key ed25519.PrivateKey, centre ed25519.PublicKey, method, path, laptop, stamp string, body []byte) {
	h.Set(HeaderLaptop, laptop)
	h.Set(HeaderStamp, stamp)
	h.Set(HeaderSignature, base64.StdEncoding.EncodeToString(ed25519.Sign(key, requestText(centre, method, path, laptop, stamp, body))))
}

// RequestSigned reports whether a request is signed with a laptop's key.
func RequestSigned(h http.Header, key, centre ed25519.PublicKey, method, path string, body []byte) bool {
	sig, err := base64.StdEncoding.DecodeString(h.Get(HeaderSignature))
	return err == nil && len(key) == ed25519.PublicKeySize &&
		ed25519.Verify(key, requestText(centre, method, path, h.Get(HeaderLaptop), h.Get(HeaderStamp), body), sig)
}

// SignAnswer sets the header of an answer to a request.
func SignAnswer(h http.Header, key ed25519.PrivateKey, asked http.Header, method, path string, status int, body []byte) {
	h.Set(HeaderSignature, base64.StdEncoding.EncodeToString(ed25519.Sign(key, answerText(asked, method, path, status, body))))
}

// AnswerSigned reports whether an answer to a request is signed with the centre's key.
func AnswerSigned(h http.Header, key ed25519.PublicKey, asked http.Header, method, path string, status int, body []byte) bool {
	sig, err := base64.StdEncoding.DecodeString(h.Get(HeaderSignature))
	return err == nil && len(key) == ed25519.PublicKeySize && ed25519.Verify(key, answerText(asked, method, path, status, body), sig)
}
