//go:build unix

package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// noteToken writes down which process has which token.
func noteToken(file string) error {
	token, ok := os.LookupEnv("PERSONS_TOKEN")
	if !ok {
		return errors.New("there is no token")
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, os.Getpid(), token)
	return err
}

// Holds reports whether it is the account's token; see Holder.
func (a *account) Holds(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.token == token
}

// A program that expects a person's token in a variable runs once for each person, and ends
// when the account is no longer theirs.
func TestEachPersonHasTheirOwnProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	started := func() (pids map[string][]int) {
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		pids = map[string][]int{}
		for line := range strings.Lines(string(text)) {
			number, token, _ := strings.Cut(strings.TrimSpace(line), " ")
			pid, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			pids[token] = append(pids[token], pid)
		}
		return pids
	}
	lists := &account{}
	all := &people{all: map[string]*account{}}
	s := New(Options{})
	defer s.Close()
	spec := script{Start: "token:" + file}.stdio(t)
	spec.TokenEnv, spec.Auth, spec.Protocol = "PERSONS_TOKEN", listing{lists, all}, Legacy
	s.Apply([]Spec{spec})
	ready(t, s)
	if st := s.Status()[0]; st.State != NeedsLogin || len(started()) > 0 {
		t.Fatalf("without an account it is %s (%s), and was started as %v", st.State, st.Err, started())
	}
	calls := func(ctx context.Context) error {
		_, err := s.Call(ctx, "fake", "", "echo", nil)
		return err
	}
	all.set("ann", &account{token: "of-ann"})
	all.set("bob", &account{token: "of-bob"})
	lists.do(func() { lists.token = "of-the-list" })
	for _, name := range []string{"ann", "bob", "ann"} {
		if err := calls(as(t.Context(), name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if pids := started(); len(pids["of-ann"]) != 1 || len(pids["of-bob"]) != 1 || pids["of-ann"][0] == pids["of-bob"][0] {
		t.Fatalf("the processes are %v", pids)
	}
	for what, ctx := range map[string]context.Context{"nobody": t.Context(), "eve": as(t.Context(), "eve"), "the local user": as(t.Context(), "")} {
		if calls(ctx) == nil {
			t.Errorf("%s has no account, and called", what)
		}
	}
	eventually(t, "are the tools listed", func() bool { return len(started()["of-the-list"]) == 1 && len(s.Tools()["fake"]) > 0 })

	// Ann's process ends without her next call, bob's goes on, and so does that which lists.
	ann := all.all["ann"]
	ann.do(func() { ann.token = "" })
	eventually(t, "ended the process of whoever disconnected", func() bool { return !alive(started()["of-ann"][0]) })
	all.set("ann", nil)
	if err := calls(as(t.Context(), "ann")); err == nil || !strings.Contains(err.Error(), "https://page.example.com/accounts") {
		t.Errorf("without an account: %v", err)
	}
	if err := calls(as(t.Context(), "bob")); err != nil || len(started()["of-bob"]) != 1 || !alive(started()["of-bob"][0]) {
		t.Errorf("bob's process has ended: %v, %v", started(), err)
	}
	// The list goes on with another account.
	lists.do(func() { lists.token = "of-another" })
	eventually(t, "listed with another account", func() bool {
		return len(started()["of-another"]) == 1 && !alive(started()["of-the-list"][0])
	})
	// One that was killed is started again for whoever calls, and for nobody else.
	if p, err := os.FindProcess(started()["of-bob"][0]); err != nil || p.Kill() != nil {
		t.Fatal(err)
	}
	eventually(t, "started again", func() bool { return calls(as(t.Context(), "bob")) == nil && len(started()["of-bob"]) == 2 })
	if pids := started(); len(pids["of-ann"]) != 1 || len(pids["of-another"]) != 1 {
		t.Errorf("others were started again: %v", pids)
	}
}

// Without accounts there is no process: a mistake of ours starts it with nobody's token.
func TestNoTokenNoProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	spec := script{Start: "token:" + file}.stdio(t)
	spec.TokenEnv = "PERSONS_TOKEN"
	s := New(Options{})
	defer s.Close()
	s.Apply([]Spec{spec})
	ready(t, s)
	if st := s.Status()[0]; st.State != Parked || !strings.Contains(st.Err, "no account whose token") {
		t.Errorf("it is %s: %s", st.State, st.Err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it was started")
	}
}
