// Package centre is the centre's side of enrolled laptops: it makes their keys known, takes
// the rows of their audit logs, and keeps them so that they can be verified.
//
// The rows of a laptop are a chain of its own log, from its enrolment on: each batch must
// continue what is there, row by row. What is there already is taken again if it is the
// same; if it is not, the laptop's log has been forked, such as by a backup that was restored, and
// nothing more is taken until the laptop is invited again. Every row is sealed with the
// centre's own key when it is taken, and the centre's own audit log has checkpoints of
// each laptop's chain: who changes rows here without both is found by [Verify].
//
// The laptops' side is package enrolment, and what both say is package wire.
package centre

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/enrolment/wire"
	"codemode-bridge/bridge/ledger"
)

const (
	// CodeTime is how long a code is good.
	CodeTime = 10 * time.Minute
	// A checkpoint of a laptop's rows goes into the centre's log after so many rows, or the
	// first ones after so long.
	checkpointRows  = 1000
	checkpointAfter = 10 * time.Minute

	wrongBurst = 10 // codes, and then one every wrongEvery
	wrongEvery = 6 * time.Second
)

// Options are what a centre works with.
type Options struct {
	Store  *Store
	Key    ed25519.PrivateKey // signs answers
	Seal   []byte             // the key that rows are sealed with
	Record ledger.Recorder    // the centre's own audit log
	Now    func() time.Time   // nil is time.Now
	// Policy is the file of the document of policy for laptops, beside which, with .sig at
	// its end, is who signed it; empty if there is none. Both are read each time.
	Policy string
	// Questions takes the questions of laptops; nil if nobody answers them here.
	Questions Questions
	Logger    *slog.Logger
}

// Questions are those that laptops put to approvers at the centre; see package questions.
type Questions interface {
	// Ask takes what a laptop says of its questions and returns what there is for it, which may
	// take a while.
	Ask(ctx context.Context, laptop, person string, text []byte) (any, error)
	// Withdraw ends all that a laptop has asked.
	Withdraw(ctx context.Context, laptop string) error
}

// A Centre serves laptops. Any number of goroutines may call it.
type Centre struct {
	o     Options
	mux   *http.ServeMux
	wrong *rate.Limiter
}

// New makes a centre.
func New(o Options) *Centre {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Centre{o: o, mux: http.NewServeMux(), wrong: rate.NewLimiter(rate.Every(wrongEvery), wrongBurst)}
	c.mux.HandleFunc("GET "+wire.PathCentre, c.about)
	if o.Policy != "" {
		c.mux.HandleFunc("GET "+wire.PathPolicy, c.file(o.Policy))
		c.mux.HandleFunc("GET "+wire.PathPolicySig, c.file(o.Policy+".sig"))
	}
	c.mux.HandleFunc("POST "+wire.PathEnrol, c.enrol)
	c.mux.HandleFunc("POST "+wire.PathRows, c.signed(c.rows))
	c.mux.HandleFunc("POST "+wire.PathLeave, c.signed(c.leave))
	if o.Questions != nil {
		c.mux.HandleFunc("POST "+wire.PathQuestions, c.questions)
	}
	return c
}

// ServeHTTP serves laptops. A page in a browser is none.
func (c *Centre) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if len(r.Header.Values("Origin")) > 0 || len(r.Header.Get(wire.HeaderStamp)) > 100 || len(r.Header.Get(wire.HeaderLaptop)) > 200 {
		http.Error(w, "Forbidden: this is for laptops", http.StatusForbidden)
		return
	}
	c.mux.ServeHTTP(w, r)
}

func (c *Centre) public() ed25519.PublicKey { return c.o.Key.Public().(ed25519.PublicKey) }

// answer writes a signed answer.
func (c *Centre) answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has a JSON form
	}
	w.Header().Set("Content-Type", "application/json")
	wire.SignAnswer(w.Header(), c.o.Key, r.Header, r.Method, r.URL.Path, status, text)
	w.WriteHeader(status)
	w.Write(text) // whoever does not read it asks again
}

// refuse answers with an error. What is not a refusal is the centre's own trouble.
func (c *Centre) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal := new(wire.Refusal)
	if !errors.As(err, &refusal) {
		c.o.Logger.Error("serving a laptop", "laptop", canon.Escape(r.Header.Get(wire.HeaderLaptop)), "err", err)
		refusal = &wire.Refusal{Code: wire.Failed, Message: "it cannot be kept now; its log says why"}
	}
	status := http.StatusForbidden
	switch refusal.Code {
	case wire.BadRequest:
		status = http.StatusBadRequest
	case wire.Unknown, wire.BadSignature, wire.OffClock:
		status = http.StatusUnauthorized
	case wire.Replayed, wire.Gap, wire.Forked, wire.Broken:
		status = http.StatusConflict
	case wire.TooMany:
		status = http.StatusTooManyRequests
	case wire.Failed:
		status = http.StatusServiceUnavailable
	}
	c.answer(w, r, status, refusal)
}

func refusal(code wire.Reason, format string, args ...any) *wire.Refusal {
	return &wire.Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (c *Centre) about(w http.ResponseWriter, r *http.Request) {
	c.answer(w, r, http.StatusOK, wire.Centre{Key: c.public()})
}

// body reads a request's JSON.
func body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return nil, refusal(wire.BadRequest, "the request was cut short, or has more than %d bytes", most)
	}
	return text, nil
}

func parsed(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return refusal(wire.BadRequest, "the request is not what this release understands")
	}
	return nil
}

// enrol makes a key known. The same code and key give the same answer, for as long as the
// code is good, since the first may have been lost.
func (c *Centre) enrol(w http.ResponseWriter, r *http.Request) {
	var key string
	var err error
	if c.o.Policy != "" {
		key, err = policyKey(c.o.Policy)
	}
	var done wire.Enrolled
	if err == nil {
		done, err = c.enrolled(w, r)
	}
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	done.PolicyKey = key
	c.answer(w, r, http.StatusOK, done)
}

// maxPolicy bounds a document of policy.
const maxPolicy = 1 << 20

// file serves a file as it is now.
func (c *Centre) file(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := atomicfile.Read(path, maxPolicy)
		if err != nil {
			c.o.Logger.Error("serving the policy of laptops", "err", err)
			http.Error(w, "the policy cannot be read now", http.StatusServiceUnavailable)
			return
		}
		sum := sha256.Sum256(text)
		etag := `"` + hex.EncodeToString(sum[:16]) + `"`
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(text) // whoever does not read it asks again
	}
}

// policyKey returns the key that, by what is beside it, signed a document of policy.
func policyKey(policy string) (string, error) {
	text, err := atomicfile.Read(policy+".sig", maxPolicy)
	var by struct{ Key string }
	if err == nil {
		err = json.Unmarshal(text, &by)
	}
	if err == nil && by.Key == "" {
		err = errors.New("it names no key")
	}
	if err != nil {
		return "", fmt.Errorf("reading who signed the policy of laptops (%s.sig): %w", policy, err)
	}
	return by.Key, nil
}

func (c *Centre) enrolled(w http.ResponseWriter, r *http.Request) (done wire.Enrolled, err error) {
	var e wire.Enrolling
	text, err := body(w, r, 16<<10)
	if err == nil {
		err = parsed(text, &e)
	}
	if err != nil {
		return done, err
	}
	if len(e.Key) != ed25519.PublicKeySize || e.From.Seq < 0 || !storeID.MatchString(e.From.Store) || len(e.Version) > 100 {
		return done, refusal(wire.BadRequest, "the request is not what this release understands")
	}
	chain, begins := 0, ""
	now, fresh, from := c.o.Now().UTC(), false, ledger.Hash(e.From.Hash)
	err = c.o.Store.Enrol(r.Context(), e.Code, func(code *Code, before *Laptop) (*Laptop, error) {
		want := wire.Hash{}
		if code != nil {
			want = wire.CodeMAC(code.Key, &e)
		}
		switch {
		case code == nil || !now.Before(code.Until) || !hmac.Equal(want[:], e.MAC[:]):
			return nil, refusal(wire.BadCode, "the code is not good: it is good once, for %.0f minutes", CodeTime.Minutes())
		case code.UsedBy != nil:
			if subtle.ConstantTimeCompare(code.UsedBy, e.Key) != 1 || before == nil || subtle.ConstantTimeCompare(before.Key, e.Key) != 1 {
				return nil, refusal(wire.UsedCode, "the code was used by another machine: if that was not you, have the laptop %s revoked", code.Laptop)
			}
			done = wire.Enrolled{Laptop: before.Name, Person: before.Person}
			return before, nil
		case before != nil && !code.Again:
			return nil, refusal(wire.BadCode, "there is a laptop called %s by now: ask for another code", code.Laptop)
		}
		l := &Laptop{Name: code.Laptop, Person: code.Person}
		if before != nil {
			l.Chains, l.Stamp = before.Chains, before.Stamp
		}
		l.Key, l.Enrolled, l.Seen, l.Version, fresh = e.Key, now, now, e.Version, true
		l.Chains = append(l.Chains, Chain{Store: e.From.Store, From: e.From.Seq, FromHash: from, Seq: e.From.Seq, Hash: from, Began: now})
		code.UsedBy, chain, begins = e.Key, len(l.Chains), c.begins(l)
		done = wire.Enrolled{Laptop: l.Name, Person: l.Person}
		return l, nil
	})
	var no *wire.Refusal
	if errors.As(err, &no) {
		if no.Code == wire.BadCode && !c.wrong.AllowN(now, 1) {
			return done, refusal(wire.TooMany, "too many wrong codes; wait a minute")
		}
		c.note(r.Context(), Note{What: "enrolment refused", Why: no.Message, From: r.RemoteAddr}, ledger.Refused)
	}
	if err == nil && fresh {
		c.note(r.Context(), Note{Laptop: done.Laptop, Person: done.Person, What: "enrolled", From: r.RemoteAddr, Chain: chain, Begins: begins}, ledger.Done)
	}
	return done, err
}

// A Note is the Detail of a record about a laptop.
type Note struct {
	Laptop string `json:"laptop,omitempty"`
	Person string `json:"person,omitempty"`
	What   string `json:"what"`
	From   string `json:"from,omitempty"` // the address of the request
	Chain  int    `json:"chain,omitempty"`
	// Begins is a [ledger.Checkpoint] of the row after which the chain begins.
	Begins string `json:"begins,omitempty"`
	Why    string `json:"why,omitempty"`
	// Checkpoint is a [ledger.Checkpoint] of the laptop's rows, signed with the centre's key.
	Checkpoint string `json:"checkpoint,omitempty"`
}

// Record is the record of a note.
func (n Note) Record(outcome string) ledger.Record {
	detail, _ := json.Marshal(n) // it has a JSON form
	return ledger.Record{Event: ledger.Laptop, Outcome: outcome, Detail: detail}
}

func (c *Centre) note(ctx context.Context, n Note, outcome string) {
	if err := c.o.Record.Record(context.WithoutCancel(ctx), n.Record(outcome)); err != nil {
		c.o.Logger.Error("recording what a laptop did", "what", n.What, "laptop", n.Laptop, "err", err)
	}
}

// A handler of signed requests changes the laptop, and may add rows. Notes are recorded once
// that is kept.
type handler func(l *Laptop, text []byte, r *http.Request) (answer any, change Change, err error)

// A Change is what follows from a request: rows of the last chain, and what the centre's
// log says. It is kept even if there is an error beside it.
type Change struct {
	Rows  []ledger.Link
	Notes []Note
}

// signed serves the requests of known laptops: the signature is theirs, and the stamp newer
// than every earlier one.
func (c *Centre) signed(serve handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := c.serve(w, r, serve)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		c.answer(w, r, http.StatusOK, out)
	}
}

// serve has a request of a known laptop served, and returns the answer.
func (c *Centre) serve(w http.ResponseWriter, r *http.Request, serve handler) (out any, err error) {
	name := r.Header.Get(wire.HeaderLaptop)
	var text []byte
	_, err = c.o.Store.Laptop(r.Context(), name) // before the body, which may be large
	if err == nil {
		text, err = body(w, r, wire.MaxBody)
	}
	if err != nil {
		return nil, unknown(name, err)
	}
	var refused error
	var notes []Note
	err = c.o.Store.Change(r.Context(), name, func(l *Laptop) (rows []ledger.Link, err error) {
		if err := c.admit(l, r, text); err != nil {
			return nil, err
		}
		var change Change
		out, change, refused = serve(l, text, r)
		notes = change.Notes
		return change.Rows, nil
	})
	if err != nil {
		return nil, unknown(name, err)
	}
	for _, n := range notes {
		c.note(r.Context(), n, ledger.Done)
	}
	return out, refused
}

// questions serves what a laptop says of its questions. While it waits for a verdict the
// laptop is not locked.
func (c *Centre) questions(w http.ResponseWriter, r *http.Request) {
	var name, person string
	var text []byte
	out, err := c.serve(w, r, func(l *Laptop, body []byte, _ *http.Request) (any, Change, error) {
		name, person, text = l.Name, l.Person, body
		return nil, Change{}, nil
	})
	if err == nil {
		out, err = c.o.Questions.Ask(r.Context(), name, person, text)
	} else {
		c.ended(r, err)
	}
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	c.answer(w, r, http.StatusOK, out)
}

// ended withdraws the questions of a laptop that was revoked: its own key says who asks.
func (c *Centre) ended(r *http.Request, err error) {
	no := new(wire.Refusal)
	if !errors.As(err, &no) || no.Code != wire.Revoked {
		return
	}
	if err := c.o.Questions.Withdraw(context.WithoutCancel(r.Context()), r.Header.Get(wire.HeaderLaptop)); err != nil {
		c.o.Logger.Error("withdrawing the questions of a laptop that was revoked", "err", err)
	}
}

// unknown makes ErrUnknown a refusal.
func unknown(name string, err error) error {
	if errors.Is(err, ErrUnknown) {
		return refusal(wire.Unknown, "it knows no laptop called %q", canon.Escape(name))
	}
	return err
}

// admit checks who sent a request, and when.
func (c *Centre) admit(l *Laptop, r *http.Request, text []byte) error {
	stamp, err := strconv.ParseInt(r.Header.Get(wire.HeaderStamp), 10, 64)
	now := c.o.Now().UTC()
	switch skew := now.Sub(time.UnixMicro(stamp)); {
	case err != nil || !wire.RequestSigned(r.Header, l.Key, c.public(), r.Method, r.URL.Path, text):
		return refusal(wire.BadSignature, "the request is not signed with the key of the laptop %s", canon.Escape(l.Name))
	case l.Revoked != nil:
		return refusal(wire.Revoked, "the laptop %s was revoked on %s", canon.Escape(l.Name), l.Revoked.Format("2006-01-02 15:04 MST"))
	case l.Left != nil:
		return refusal(wire.Unknown, "the laptop %s has left", canon.Escape(l.Name))
	case skew > wire.MaxSkew || skew < -wire.MaxSkew:
		no := refusal(wire.OffClock, "the laptop's clock is off by %v", skew.Abs().Round(time.Second))
		no.Time = now
		return no
	case stamp <= l.Stamp:
		no := refusal(wire.Replayed, "a later request was here before")
		no.Last = l.Stamp
		return no
	}
	l.Stamp, l.Seen = stamp, now
	return nil
}

func (c *Centre) leave(l *Laptop, _ []byte, r *http.Request) (any, Change, error) {
	now := c.o.Now().UTC()
	l.Left = &now
	if c.o.Questions != nil {
		if err := c.o.Questions.Withdraw(context.WithoutCancel(r.Context()), l.Name); err != nil {
			c.o.Logger.Error("withdrawing the questions of a laptop that has left", "err", err)
		}
	}
	return struct{}{}, Change{Notes: []Note{{Laptop: l.Name, Person: l.Person, What: "left", From: r.RemoteAddr, Chain: len(l.Chains), Checkpoint: c.checkpoint(l)}}}, nil
}

// begins signs the row after which the last chain begins.
func (c *Centre) begins(l *Laptop) string {
	k := l.Chains[len(l.Chains)-1]
	point := ledger.Checkpoint{Store: k.Store, Seq: k.From, Hash: k.FromHash, Time: k.Began}
	point.Sign(c.o.Seal)
	return point.String()
}

// checkpoint signs the last row of a laptop.
func (c *Centre) checkpoint(l *Laptop) string {
	k := &l.Chains[len(l.Chains)-1]
	if k.Seq == k.From {
		return ""
	}
	point := ledger.Checkpoint{Store: k.Store, Seq: k.Seq, Hash: k.Hash, Time: c.o.Now().UTC()}
	point.Sign(c.o.Seal)
	k.Noted, k.NotedAt = k.Seq, point.Time
	return point.String()
}
