package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/documents"
)

// kept counts what is kept of a kind.
func (b *bench) kept(kind string) (n int) {
	b.t.Helper()
	names, err := b.site.auth.signIns.store.Names(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, kind+".") {
			n++
		}
	}
	return n
}

// A brokenStore is documents that may be out of reach.
type brokenStore struct {
	documents.Store
	broken error
}

func (s *brokenStore) Read(ctx context.Context, name string) ([]byte, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	return s.Store.Read(ctx, name)
}

func (s *brokenStore) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	if s.broken != nil {
		return s.broken
	}
	return s.Store.Change(ctx, name, change)
}

// Links and logins of one bridge are good at the pages of all that share a store, and what
// is used up or ended at one of them is so at all.
func TestLoginsAtAnyBridge(t *testing.T) {
	shared := &brokenStore{Store: documents.Memory()}
	sharing := func(o *Options) { o.SignIns = shared }
	one, two := newBench(t, sharing), newBench(t, sharing)
	at := func(b *bench, v visitor) visitor { v.b = b; return v }
	said := []string{}

	in := one.atPage("ada")
	said = append(said, strings.SplitN(in.cookie, "=", 2)[1], in.secret)
	at(two, in).do("GET", "/api/me", "").want(200).says(`"name":"ada"`)
	e, _ := two.ask(question{})
	at(two, visitor{cookie: in.cookie}).do("POST", "/api/decide/"+e.ID, decision(e, "approve")).refused(403, "secret")
	at(two, in).do("POST", "/api/decide/"+e.ID, decision(e, "approve")).want(200)

	var got struct{ Code string }
	for range 2 {
		one.as("bob").do("POST", "/api/login/code", "{}").want(200).into(&got)
		said = append(said, got.Code)
		code := fmt.Sprintf(`{"code":%q}`, got.Code)
		bob := visitor{b: two}.signIn(code)
		at(one, bob).do("GET", "/api/me", "").want(200).says(`"name":"bob"`)
		visitor{b: one}.do("POST", "/api/login", code).refused(401, "unauthorized") // once
		visitor{b: two}.do("POST", "/api/login", code).refused(401, "unauthorized")
	}

	// Nothing that lets anybody in is in what is kept.
	names, err := shared.Names(t.Context())
	if err != nil || len(names) != 3 {
		t.Fatalf("kept are %q, %v", names, err)
	}
	for _, name := range names {
		body, err := shared.Read(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range said {
			if secret, _, _ = strings.Cut(secret, "."); strings.Contains(name+string(body), secret) {
				t.Errorf("%s has a secret: %s", name, body)
			}
		}
	}

	// A bridge at which they are an approver no more lets them in no more.
	two.appoint([]approval.Approver{{Name: "ada", Role: approval.Viewer}})
	at(two, in).do("GET", "/api/me", "").refused(401, "unauthorized")
	at(one, in).do("GET", "/api/me", "").want(200)
	two.appoint(people)

	shared.broken = errors.New("the database is away")
	at(two, in).do("GET", "/api/me", "").want(500)
	visitor{b: two}.do("POST", "/api/login", fmt.Sprintf(`{"token":%q}`, tokenOf("ada"))).want(500)
	two.as("ada").do("GET", "/api/me", "").want(200)
	shared.broken = nil

	at(two, in).do("POST", "/api/logout", "{}").want(200)
	for _, b := range []*bench{one, two} {
		at(b, in).do("GET", "/api/me", "").refused(401, "unauthorized")
	}
}

// A sign-in that one bridge began is finished by another, once, in the same browser.
func TestSignOnAtAnyBridge(t *testing.T) {
	store := documents.Memory()
	one, _ := newSignOnBench(t)
	two, _ := newSignOnBench(t)
	one.site.auth.signIns.store, two.site.auth.signIns.store = store, store
	browser, state := one.goThere()
	browser.b = two
	browser.signIn(brought(state, "ada@example.com")).do("GET", "/api/me", "").want(200).says(`"name":"ada"`)
	for _, b := range []*bench{one, two} {
		browser.b = b
		browser.do("POST", "/api/login", brought(state, "ada@example.com")).refused(401, "unauthorized")
	}
}

// What is over makes room, and so does what ends first; what was altered is no secret.
func TestKept(t *testing.T) {
	now := time.Unix(1000, 0)
	k := kept{documents.Memory(), func() time.Time { return now }}
	put := func(good time.Duration, v string) string {
		t.Helper()
		secret := k.secret(good)
		if err := k.put(t.Context(), "thing", secret, 2, v); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	is := func(secret, want string) {
		t.Helper()
		got := ""
		if _, ok, err := k.read(t.Context(), "thing", secret, &got); err != nil || ok != (want != "") || got != want {
			t.Errorf("it is %q (%v, %v), want %q", got, ok, err, want)
		}
	}
	late, early := put(time.Hour, "late"), put(time.Minute, "early")
	if err := k.put(t.Context(), "other", k.secret(time.Second), 1, "another kind"); err != nil {
		t.Fatal(err)
	}
	is(late, "late")
	is(early, "early")
	is(late[1:], "")
	is(strings.Split(late, ".")[0]+"."+strings.Split(early, ".")[1], "")
	is("", "")
	is(".zzzzzzzzzzzzzzzzzzzzzzz", "")
	third := put(time.Hour, "third")
	is(early, "")
	is(late, "late")
	now = now.Add(time.Hour)
	is(third, "")
	put(time.Hour, "last")
	if names, err := k.store.Names(t.Context()); err != nil || len(names) != 2 {
		t.Errorf("kept are %q, %v", names, err)
	}
}
