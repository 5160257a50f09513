package login_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codemode-bridge/bridge/documents"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/bridge/login"
	"codemode-bridge/bridge/logintest"
)

// A team has bridges on machines of their own, which share a store.
type team struct {
	*person
	store documents.Store
	key   []byte
	took  []string // servers whose logins were moved into the store
}

func newTeam(t *testing.T, odd func(*logintest.Server)) *team {
	return &team{newPerson(t, odd), documents.Memory(), bytes.Repeat([]byte{7}, 32), nil}
}

// A machine is one of the team's, with files of its own.
type machine struct {
	*team
	dir string
}

func (m *team) machine() *machine { return &machine{m, m.TempDir()} }

func (m *machine) files() *login.Client { return m.open().Client(m.server()) }

func (m *machine) open() *login.Keeper {
	k := login.Open(login.Options{Dir: m.dir, Now: m.fake.Now})
	m.Cleanup(k.Close)
	return k
}

// bridge is a new process that serves; look is one that only looks.
func (m *machine) bridge(change ...func(*login.Server)) *login.Client {
	return m.process(true, change...)
}

func (m *machine) look() *login.Client { return m.process(false) }

func (m *machine) process(takes bool, change ...func(*login.Server)) *login.Client {
	return m.open().Installation(login.InstallationOptions{
		Configuration: "team",
		Open:          func(context.Context) (documents.Store, []byte, error) { return m.store, m.key, nil },
		TakesOver:     func() bool { return takes },
		Took:          func(server, _ string) { m.took = append(m.took, server) },
	}).Client(m.server(change...))
}

func (m *machine) kept() []string {
	files, err := filepath.Glob(filepath.Join(m.dir, "*.json"))
	if err != nil {
		m.Fatal(err)
	}
	return files
}

// A login that is made at one bridge is good at the others, and ends for all of them.
func TestAnInstallationSharesItsLogins(t *testing.T) {
	all := newTeam(t, nil)
	a, b := all.machine(), all.machine()
	atA, atB := a.bridge(), b.bridge()
	status, header, token, err := all.ask(atB, "{}")
	if err != nil || status != http.StatusUnauthorized {
		t.Fatalf("before there is a login: %d, %v", status, err)
	}
	if again, err := atB.Refused(t.Context(), token, status, header); again || err == nil || atB.Ready() {
		t.Fatalf("it goes on without a login: %v", err)
	}
	if info := all.mustLogIn(atA); !info.Shared || !strings.HasSuffix(info.Describe(), "kept in the store") {
		t.Errorf("the login is described as %q", info.Describe())
	}
	if !atB.Ready() {
		t.Error("the other bridge does not notice the login")
	}
	all.wantStatus(atA, http.StatusOK)
	all.wantStatus(atB, http.StatusOK)
	if len(a.kept())+len(b.kept()) > 0 {
		t.Error("the login is in a file, too")
	}
	names, err := all.store.Names(t.Context())
	if err != nil || len(names) != 1 {
		t.Fatalf("the documents are %v, %v", names, err)
	}
	body, err := all.store.Read(t.Context(), names[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(all.fake.Secrets(), all.fake.URL) {
		if bytes.Contains(body, []byte(secret)) {
			t.Errorf("the document holds %q", secret)
		}
	}

	if revoked, notRevoked, err := atB.Logout(t.Context()); !revoked || notRevoked != nil || err != nil {
		t.Errorf("logging out: %v, %v, %v", revoked, notRevoked, err)
	}
	if _, ok := atA.Stored(); ok || atA.Ready() {
		t.Error("the other bridge still has the login")
	}
	if _, _, err := atA.Logout(t.Context()); !errors.Is(err, login.ErrNoLogin) {
		t.Errorf("logging out twice: %v", err)
	}
	all.mustLogIn(atB)
	all.wantStatus(atA, http.StatusOK)
	// The same server at another address is another.
	if _, ok := a.bridge(func(s *login.Server) { s.URL += "/other" }).Stored(); ok {
		t.Error("another address has the login")
	}
}

// However many bridges renew a login at once, its refresh token is used once.
func TestAnInstallationRenewsOnce(t *testing.T) {
	all := newTeam(t, nil)
	a, b := all.machine(), all.machine()
	all.mustLogIn(a.bridge())
	before := len(all.fake.Requests("/token"))
	bridges := []*login.Client{a.bridge(), a.bridge(), b.bridge(), b.look()}
	tokens := func() (tokens []string) {
		tokens = make([]string, 3*len(bridges))
		var each sync.WaitGroup
		for i := range tokens {
			each.Go(func() {
				var err error
				if tokens[i], err = bridges[i%len(bridges)].Token(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		each.Wait()
		return tokens
	}
	for round := range 3 {
		all.fake.Advance(2 * time.Hour)
		got := tokens()
		for _, one := range got {
			if one == "" || one != got[0] {
				t.Fatal("they have different tokens")
			}
		}
		if n := len(all.fake.Requests("/token")) - before; n != round+1 {
			t.Fatalf("%d renewals, want %d", n, round+1)
		}
	}
	// The same where the server takes it no more: all of them learn that a person has to
	// log in, and one has asked.
	all.fake.Revoked()
	all.fake.Advance(2 * time.Hour)
	before = len(all.fake.Requests("/token"))
	var each sync.WaitGroup
	for _, bridge := range bridges {
		each.Go(func() {
			_, err := bridge.Token(t.Context())
			needed(t, err, "codemode-bridge servers login linear")
		})
	}
	each.Wait()
	if n := len(all.fake.Requests("/token")) - before; n != 1 {
		t.Errorf("%d asked with a refresh token that was revoked, want 1", n)
	}
	for _, bridge := range bridges {
		if bridge.Ready() {
			t.Error("a login that was revoked counts as ready")
		}
	}
}

// A login in a file moves to the store once something serves with it, and never comes back.
func TestAnInstallationTakesOver(t *testing.T) {
	all := newTeam(t, nil)
	a, b := all.machine(), all.machine()
	all.mustLogIn(a.files())
	all.mustLogIn(b.files())
	// Whoever only looks uses the file, and renews it there.
	all.fake.Advance(2 * time.Hour)
	all.wantStatus(a.look(), http.StatusOK)
	if info, ok := a.look().Stored(); !ok || info.Shared {
		t.Errorf("who looks sees %+v, %t", info, ok)
	}
	if names, err := all.store.Names(t.Context()); len(names) > 0 || err != nil || len(a.kept()) != 1 {
		t.Fatalf("who looks moved it: %v, %v", names, err)
	}
	all.wantStatus(a.files(), http.StatusOK)
	// What serves moves it, and what another machine had is not used.
	registered := len(all.fake.Requests("/register"))
	all.wantStatus(a.bridge(), http.StatusOK)
	if len(a.kept()) != 0 || len(all.took) != 1 {
		t.Errorf("the files are %v, it was told of %v", a.kept(), all.took)
	}
	all.wantStatus(a.look(), http.StatusOK)
	all.wantStatus(b.bridge(), http.StatusOK)
	if len(b.kept()) != 1 || len(all.took) != 1 {
		t.Errorf("the second machine's file was moved, too: %v, %v", b.kept(), all.took)
	}
	if info, ok := b.look().Stored(); !ok || !info.Shared {
		t.Errorf("the second machine has %+v, %t", info, ok)
	}
	all.fake.Advance(2 * time.Hour)
	all.wantStatus(b.bridge(), http.StatusOK)
	if n := len(all.fake.Requests("/register")); n != registered {
		t.Error("it registered again")
	}
	// Once it was deleted, no file brings it back.
	if _, _, err := a.bridge().Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.bridge().Stored(); ok || b.bridge().Ready() {
		t.Error("the login was deleted, and another machine's file took its place")
	}
}

// The logins of a machine's file are deleted by a logout, though nothing has served yet.
func TestAnInstallationLogsOutOfAFile(t *testing.T) {
	all := newTeam(t, nil)
	a := all.machine()
	all.mustLogIn(a.files())
	if revoked, _, err := a.bridge().Logout(t.Context()); !revoked || err != nil {
		t.Errorf("logging out: %t, %v", revoked, err)
	}
	if _, ok := a.bridge().Stored(); ok || len(a.kept()) > 0 {
		t.Errorf("it is still there: %v", a.kept())
	}
}

// What cannot be decrypted is no login: the server waits for one, and a new one replaces it.
func TestAnInstallationWithAnotherKey(t *testing.T) {
	all := newTeam(t, nil)
	a := all.machine()
	all.mustLogIn(a.bridge())
	all.key = bytes.Repeat([]byte{8}, 32)
	lost := a.bridge()
	_, err := lost.Token(t.Context())
	needed(t, err, "cannot be decrypted")
	if lost.Ready() {
		t.Error("it counts as ready")
	}
	all.mustLogIn(lost)
	all.wantStatus(a.bridge(), http.StatusOK)

	// A store that cannot be read is no reason to log in, nor one to go on without a token.
	all.store = away{all.store}
	_, err = a.bridge().Token(t.Context())
	var n *login.Needed
	if err == nil || errors.As(err, &n) || !strings.Contains(err.Error(), "the database cannot be reached") {
		t.Errorf("without the store: %v", err)
	}
}

// away is a store that cannot be read.
type away struct{ documents.Store }

func (away) Read(context.Context, string) ([]byte, error) {
	return nil, ledger.Unavailable("the database cannot be reached")
}

// A client's own rights need nobody: one bridge gets a token, and the others take it.
func TestAnInstallationWithCredentials(t *testing.T) {
	all := newTeam(t, func(s *logintest.Server) { s.Clients = map[string]string{"robot": "robots-secret"} })
	own := func(s *login.Server) {
		s.ClientID, s.ClientSecret, s.Credentials = "robot", "robots-secret", true
	}
	a, b := all.machine(), all.machine()
	var each sync.WaitGroup
	for _, bridge := range []*login.Client{a.bridge(own), b.bridge(own)} {
		each.Go(func() {
			if token, err := bridge.Token(t.Context()); token == "" || err != nil {
				t.Errorf("no token: %v", err)
			}
		})
	}
	each.Wait()
	if n := len(all.fake.Requests("/token")); n != 1 {
		t.Errorf("asked for tokens %d times, want once", n)
	}
	all.key = bytes.Repeat([]byte{8}, 32)
	all.wantStatus(a.bridge(own), http.StatusOK) // a new one for the asking
}

// A file that cannot be read does not keep anybody from logging in.
func TestAnInstallationWithAFileThatCannotBeRead(t *testing.T) {
	all := newTeam(t, nil)
	a := all.machine()
	all.mustLogIn(a.files())
	if err := os.WriteFile(a.kept()[0], []byte(`{"inKeyring": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.bridge().Token(t.Context()); err == nil || !strings.Contains(err.Error(), "moving the login from "+a.kept()[0]) {
		t.Errorf("the error is %v", err)
	}
	all.mustLogIn(a.bridge())
	all.wantStatus(a.bridge(), http.StatusOK)
}
