package bridge

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/gate"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/replay"
)

// A run whose journal is full goes on, and cannot be suspended.
func TestAFullJournal(t *testing.T) {
	f := newFleet()
	b := f.bridge(t, "one", queued(), func(o *Options) { o.JournalBytes = 3000 })
	id := f.startPaused(t, b, `await codemode.b__echo({x: "y".repeat(4000)}); return await codemode.a__echo({n: 1})`, 1)
	waitUntil(t, func() bool { r, ok := b.roster.lookup(id); return ok && r.quiet() })
	r, _ := b.roster.lookup(id)
	if r.suspend() {
		t.Error("it was suspended")
	}
	if left, err := f.records.Runs(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("journals are left: %v, %v", left, err)
	}
	f.answer(t, f.open(t, 1)[0], yes)
	<-r.done
	if out := string(r.answer().StructuredContent.(json.RawMessage)); !strings.Contains(out, `\"n\":1`) {
		t.Errorf("it answers %s", out)
	}
}

// A journal whose end cannot be written is not forgotten: no call goes without
// it, and nothing is left of it.
func TestAJournalIsEndedBeforeAnythingGoesWithoutIt(t *testing.T) {
	j := newJournal("r", "one", 2000)
	j.began = func() ledger.JournalEntry {
		return ledger.JournalEntry{Run: "r", Owner: "one", Kind: ledger.Began, Body: []byte("{}")}
	}
	j.lost = func() { t.Error("it was taken") }
	kinds := func(e gate.Entries) (all string) {
		for _, one := range e.All {
			all += string(one.Kind) + " "
		}
		return all
	}
	first := j.entries(ledger.Sent, 1, &entry{Value: make([]byte, 100)})
	if got := kinds(first); got != "began sent " {
		t.Fatalf("the first entries are %s", got)
	}
	first.Done(nil)
	waiting := j.entries(ledger.Replied, 1, &entry{Value: make([]byte, 100)})
	overflow := make(chan gate.Entries)
	go func() { overflow <- j.entries(ledger.Replied, 2, &entry{Value: make([]byte, 5000)}) }()
	select {
	case e := <-overflow:
		t.Fatalf("%sgoes before what is being kept", kinds(e))
	case <-time.After(20 * time.Millisecond): // it may still be on its way: then it waits later
	}
	waiting.Done(nil)
	end := <-overflow
	if got := kinds(end); got != "ended " || !j.full {
		t.Fatalf("a journal that is full goes on with %s", got)
	}
	end.Done(errors.New("the disk is full"))
	again := j.entries(ledger.Sent, 3, new(entry))
	if got := kinds(again) + kinds(j.ending(time.Hour, time.Now(), nil)); got != "ended ended " {
		t.Errorf("after a write that failed: %s", got)
	}
	again.Done(nil)
	if got := kinds(j.entries(ledger.Sent, 4, new(entry))) + kinds(j.ending(time.Hour, time.Now(), nil)); got != "" {
		t.Errorf("after its end: %s", got)
	}
}

// What a script reads of what the bridge has counts as well.
func TestWhatAJournalCarriesIsBounded(t *testing.T) {
	j := newJournal("r", "one", 1000)
	for i := range 10 {
		if err := j.carry(i, &entry{Value: make([]byte, 200)}); err != nil {
			t.Fatal(err)
		}
		j.answered(i, time.Now())
	}
	if !j.full || len(j.turns) > 0 || len(j.answers) > 0 {
		t.Errorf("it keeps %d turns and %d answers", len(j.turns), len(j.answers))
	}
}

// What a replay meets again is kept already; no turn after it is forgotten with
// it, whoever comes first, and it takes no room.
func TestWhatAReplayMeetsIsNotKeptAgain(t *testing.T) {
	for _, early := range []bool{true, false} {
		j := newJournal("r", "one", 10000)
		j.open = true
		j.answered(2, time.Now())
		if err := j.carry(1, &entry{Value: make([]byte, 200)}); err != nil {
			t.Fatal(err)
		}
		j.answered(1, time.Now())
		if !early {
			j.replayed(2)
		}
		sent := j.entries(ledger.Sent, 3, new(entry))
		sent.Done(nil)
		j.answered(3, time.Now())
		j.replayed(2)
		s, err := decodeEntry(j.entries(ledger.Sent, 4, new(entry)).All[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		turns, err := s.ReadTurns(make([]replay.Turn, s.First))
		if err != nil || s.First != 2 || len(turns) != 3 || turns[2].Call != 3 || j.held != 0 {
			t.Errorf("early %v: from turn %d on it keeps %v (%v), and holds %d bytes", early, s.First, turns, err, j.held)
		}
	}
}
