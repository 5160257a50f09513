package access

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"codemode-bridge/sandbox/racing"

	"github.com/google/go-cmp/cmp"
)

func compiled(t testing.TB, known Known, entries ...Entry) *Rules {
	t.Helper()
	r, wrong := New(entries, known)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return r
}

var house = Known{Profiles: []string{"admin", "read", "safe"}, Default: "safe", Tokens: map[string][]string{"ci": {"robots"}, "ann": {"staff"}},
	Place: func(i int) string { return fmt.Sprintf("config.json:%d", i+10) }}

// The first entry that holds counts, and none is nothing.
func TestFor(t *testing.T) {
	rules := compiled(t, house,
		Entry{Principals: []string{"eve"}, Profiles: []string{"none*"}},
		Entry{Tokens: []string{"c*"}, Profiles: []string{"read"}, Servers: []string{"git*"}},
		Entry{Groups: []string{"staff", "team-?"}, Profiles: []string{"*"}},
		Entry{Principals: []string{"*@x.example"}, Profiles: []string{"safe"}},
		Entry{Local: true, Profiles: []string{"safe"}},
	)
	for _, row := range []struct {
		name   string
		groups []string
		entry  int // from 1; 0: none
	}{
		{"eve", []string{"staff"}, 1},
		{"ci", nil, 2},
		{"ci", []string{"staff"}, 2},
		{"cyd", nil, 0}, // no token of the configuration
		{"ann", nil, 3}, // by the groups that the configuration says
		{"ann", []string{"robots"}, 3},
		{"bob", []string{"team-a"}, 3},
		{"bob", []string{"team-ab"}, 0},
		{"bob@x.example", nil, 4},
		{"bob@x.example.org", nil, 0},
		{"", nil, 5},
		{"", []string{"staff"}, 5}, // who has no name is in no group
	} {
		g := rules.For(row.name, row.groups)
		want := ""
		if row.entry > 0 {
			want = fmt.Sprintf("entry %d of access (config.json:%d)", row.entry, row.entry+9)
		}
		if g.Entry() != want {
			t.Errorf("%q in %q: %q, want %q", row.name, row.groups, g.Entry(), want)
		}
		if row.entry == 0 && (g.Profile("safe") || g.Profile("") || g.Server("git") || g.Refuses("safe", "git") == "") {
			t.Errorf("%q has something, and no entry holds", row.name)
		}
	}
	if g := rules.For("ci", nil); !g.Server("github") || g.Server("mail") || !g.Profile("read") || g.Profile("admin") || g.Profile("") {
		t.Error("the entry of ci is not what it has")
	}
	if empty := compiled(t, house); empty.For("ann", nil).Profile("safe") || empty.For("", nil).Server("git") {
		t.Error("an empty list gives something")
	}
	if none := (*Rules)(nil); !none.For("", nil).Profile("") || !none.For("x", nil).Server("git") {
		t.Error("without rules something is refused")
	}
}

// What eval is, and which other eval tools there are.
func TestEvals(t *testing.T) {
	three, one, none := Policy{Profiles: house.Profiles, Default: "safe"}, Policy{Profiles: []string{"safe"}, Default: "safe", Alone: true}, Policy{Profiles: []string{"admin", "read"}}
	for _, row := range []struct {
		name  string
		entry *Entry // nil: there are no rules
		p     Policy
		bound string
		want  string
	}{
		{"no rules", nil, three, "", "eval= codemode_eval_admin=admin codemode_eval_read=read codemode_eval_safe=safe"},
		{"no rules, one profile", nil, one, "", "eval="},
		{"no rules, no default", nil, none, "", "eval= codemode_eval_admin=admin codemode_eval_read=read"},
		{"no rules, bound", nil, three, "read", "eval=read"},
		{"no rules, bound to the default", nil, three, "safe", "eval="},
		{"no rules, bound to what is not there", nil, three, "gone", ""},
		{"all", &Entry{Profiles: []string{"*"}}, three, "", "eval= codemode_eval_admin=admin codemode_eval_read=read codemode_eval_safe=safe"},
		{"all, another eval", &Entry{Profiles: []string{"*"}, DefaultProfile: "read"}, three, "", "eval=read codemode_eval_admin=admin codemode_eval_read=read codemode_eval_safe=safe"},
		{"the default alone", &Entry{Profiles: []string{"safe"}}, three, "", "eval="},
		{"another one alone", &Entry{Profiles: []string{"read"}}, three, "", "eval=read"},
		{"two without the default", &Entry{Profiles: []string{"read", "admin"}}, three, "", "codemode_eval_admin=admin codemode_eval_read=read"},
		{"all, no default", &Entry{Profiles: []string{"*"}}, none, "", "eval= codemode_eval_admin=admin codemode_eval_read=read"},
		{"each by name, no default", &Entry{Profiles: []string{"read", "admin"}}, none, "", "codemode_eval_admin=admin codemode_eval_read=read"},
		{"bound to one of theirs", &Entry{Profiles: []string{"read", "admin"}}, three, "read", "eval=read"},
		{"bound to another", &Entry{Profiles: []string{"read"}}, three, "admin", ""},
	} {
		var rules *Rules
		if row.entry != nil {
			row.entry.Principals = []string{"ann"}
			rules = compiled(t, house, *row.entry)
		}
		var got []string
		for _, e := range rules.For("ann", nil).To(row.bound).Evals(row.p) {
			got = append(got, e.Tool+"="+e.Profile)
		}
		if text := strings.Join(got, " "); text != row.want {
			t.Errorf("%s: %q, want %q", row.name, text, row.want)
		}
	}
}

// What is wrong with an entry is said at its place.
func TestProblems(t *testing.T) {
	for _, row := range []struct {
		entry         Entry
		pointer, says string
	}{
		{Entry{Profiles: []string{"*"}}, "/0", "names nobody"},
		{Entry{Local: true}, "/0", `no "profiles"`},
		{Entry{Local: true, Profiles: []string{"saef"}}, "/0/profiles/0", `no profile "saef"`},
		{Entry{Local: true, Profiles: []string{"safe"}, DefaultProfile: "gone"}, "/0/defaultProfile", `no profile "gone"`},
		{Entry{Local: true, Profiles: []string{"safe"}, DefaultProfile: "admin"}, "/0/defaultProfile", `does not give the profile "admin"`},
		{Entry{Principals: []string{"a", ""}, Profiles: []string{"*"}}, "/0/principals/1", "empty"},
		{Entry{Groups: []string{"{a,b}"}, Profiles: []string{"*"}}, "/0/groups/0", "braces"},
		{Entry{Tokens: []string{strings.Repeat("*a", 9)}, Profiles: []string{"*"}}, "/0/tokens/0", "stars"},
		{Entry{Local: true, Profiles: []string{"*"}, Servers: []string{"[a"}}, "/0/servers/0", "not legal"},
		{Entry{Local: true, Profiles: []string{"*"}, Surface: "all"}, "/0/surface", "surface"},
		{Entry{Local: true, Profiles: []string{"*"}, Asked: "nobody"}, "/0/asked", "asked"},
	} {
		rules, wrong := New([]Entry{row.entry}, house)
		if rules != nil || len(wrong) != 1 || wrong[0].Pointer != row.pointer || !strings.Contains(wrong[0].Message, row.says) {
			t.Errorf("%+v: %+v, want %q at %s", row.entry, wrong, row.says, row.pointer)
		}
	}
}

// Whatever the entries are: an edit that passes as no looser gives nobody anything that they did not
// have; eval is the same profile for them, or they have lost it.
func TestLooserMissesNothing(t *testing.T) {
	racing.Alone(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) (some []string) {
		for _, one := range from {
			if random.IntN(3) == 0 {
				some = append(some, one)
			}
		}
		return some
	}
	entry := func() Entry {
		e := Entry{Principals: pick("ann", "b*", "*"), Groups: pick("staff", "*"), Tokens: pick("ci", "*"), Local: random.IntN(4) == 0, Profiles: pick("safe", "read", "a*", "*"), Servers: pick("git", "m*")}
		if len(e.Principals)+len(e.Groups)+len(e.Tokens) == 0 {
			e.Local = true
		}
		if len(e.Profiles) == 0 {
			e.Profiles = []string{"read"}
		}
		if random.IntN(3) == 0 {
			e.Limits.Runs = 1 + random.IntN(2)
		}
		return e
	}
	edit := func(was []Entry) (is []Entry) {
		for _, e := range was {
			switch random.IntN(6) {
			case 0:
				e.Profiles = slices.Clone(e.Profiles[:max(1, len(e.Profiles)-1)])
			case 1:
				e.Servers = slices.Clone(e.Servers[:max(0, len(e.Servers)-1)])
			case 2:
				if len(e.Principals) > 1 {
					e.Principals = slices.Clone(e.Principals[1:])
				}
			case 3:
				e = entry()
			}
			is = append(is, e)
		}
		if random.IntN(3) == 0 {
			is = is[:len(is)-1]
		}
		return is
	}
	policy, passed := Policy{Profiles: house.Profiles, Default: "safe"}, 0
	people := []struct {
		name   string
		groups []string
	}{{"ann", nil}, {"bob", []string{"staff"}}, {"ci", nil}, {"eve", []string{"guests"}}, {"", nil}}
	for range 20_000 {
		was := []Entry{entry(), entry()}[:1+random.IntN(2)]
		is := edit(was)
		if len(Looser(was, is, "safe")) > 0 {
			continue
		}
		passed++
		before, after := compiled(t, house, was...), compiled(t, house, is...)
		for _, p := range people {
			b, a := before.For(p.name, p.groups), after.For(p.name, p.groups)
			for _, profile := range append([]string{""}, house.Profiles...) {
				for _, server := range []string{"", "git", "mail", "time"} {
					if b.Refuses(profile, server) != "" && a.Refuses(profile, server) == "" {
						t.Fatalf("%q may use %q at %q now:\n%+v\n%+v", p.name, profile, server, was, is)
					}
				}
			}
			for _, e := range a.Evals(policy) {
				if e.Tool == "eval" && !slices.Contains(b.Evals(policy), e) && len(b.Evals(policy)) > 0 && b.Evals(policy)[0].Tool == "eval" {
					t.Fatalf("eval is %q for %q, and was %q:\n%+v\n%+v", e.Profile, p.name, b.Evals(policy)[0].Profile, was, is)
				}
			}
			if n := a.Limits().Runs; a.Entry() != "" && b.Limits().Runs != 0 && (n == 0 || n > b.Limits().Runs) {
				t.Fatalf("%q may have %d runs, and had %d", p.name, n, b.Limits().Runs)
			}
		}
	}
	if passed < 1000 {
		t.Errorf("only %d edits passed", passed)
	}
	if len(Looser(nil, []Entry{entry()}, "safe")) > 0 {
		t.Error("the first entries count as looser")
	}
	if len(Looser([]Entry{}, nil, "safe")) == 0 {
		t.Error("no entries any more do not count as looser")
	}
}

// As many scripts of a principal run at a time as may, in the order in which they came; who gives up
// holds up nobody.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		ctx, cancel := context.WithCancelCause(t.Context())
		first, err := turns.Take(t.Context(), "ann", 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 3)
		var waited int
		take := func(ctx context.Context, name string) {
			go func() {
				done, err := turns.Take(ctx, "ann", 1, func() { waited++ })
				if err != nil {
					got <- name + " " + err.Error()
					return
				}
				got <- name
				done()
			}()
			synctest.Wait()
		}
		take(t.Context(), "second")
		take(ctx, "third")
		take(t.Context(), "fourth")
		if done, err := turns.Take(t.Context(), "bob", 1, nil); err != nil {
			t.Error(err)
		} else {
			done()
		}
		cancel(errors.New("gave up"))
		if diff := cmp.Diff("third gave up", <-got); diff != "" {
			t.Error(diff)
		}
		first()
		if diff := cmp.Diff([]string{"second", "fourth"}, []string{<-got, <-got}); diff != "" || waited != 3 {
			t.Error(diff, waited)
		}
		synctest.Wait()
		if len(turns.lines) > 0 {
			t.Errorf("%d lines are left", len(turns.lines))
		}
	})
}
