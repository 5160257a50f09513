package main

import (
	"context"
	"errors"
	"fmt"
)

// loopCalls is how many calls a loop makes that is to ask once.
const loopCalls = 200

// mostNoes is how often a script may ask that hears nothing but noes.
const mostNoes = 5

// A shape is a script that asks much, and how often it is to ask at most.
type shape struct {
	Name    string
	Code    string
	How     width
	Newest  bool // the protocol without sessions
	AtMost  int  // questions
	AtLeast int  // calls that are sent
}

// shapes are played with the servers of the session "coding", in the given profile. The
// calls are such as every profile that lets anything be changed asks about.
func shapes() (all []shape) {
	const comment = `codemode.github__add_issue_comment({owner: "brightcart", repo: "shop-web", issue_number: 1000 + i, body: "Is this still so? " + i})`
	sequential := fmt.Sprintf("for (let i = 0; i < %d; i++) await %s;\nreturn \"done\";\n", loopCalls, comment)
	parallel := fmt.Sprintf("return (await Promise.all(Array.from({length: %d}, (_, i) => %s))).length;\n", loopCalls, comment)
	nagging := fmt.Sprintf("let noes = 0;\nfor (let i = 0; i < 40; i++) {\n  try { await %s; } catch (e) { noes++; }\n}\nreturn noes;\n", comment)
	for _, newest := range []bool{false, true} {
		era := "sessions"
		if newest {
			era = "no sessions"
		}
		all = append(all,
			shape{fmt.Sprintf("a loop of %d calls, one after the other (%s)", loopCalls, era), sequential, looping, newest, 1, loopCalls},
			shape{fmt.Sprintf("a loop of %d calls, all at once (%s)", loopCalls, era), parallel, looping, newest, 1, loopCalls},
			shape{fmt.Sprintf("asks on after noes of a person (%s)", era), nagging, refusing, newest, mostNoes, 0},
			shape{fmt.Sprintf("asks on after noes of a client without a person (%s)", era), nagging, dismissing, newest, mostNoes, 0})
	}
	return all
}

// A shaped is what became of a shape.
type shaped struct {
	shape
	outcome
}

// ok reports whether a script asked no more, and got done what it should.
func (s shaped) ok() bool { return len(s.Dialogs) <= s.AtMost && len(s.Sent) >= s.AtLeast }

// playShape plays a script in a window of its own.
func (st *stage) playShape(ctx context.Context, s shape) (got shaped, err error) {
	w, err := st.open(ctx, s.Newest)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	o, err := w.eval(ctx, s.Code, s.How.choose)
	return shaped{s, o}, err
}
