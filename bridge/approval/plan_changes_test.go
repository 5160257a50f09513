package approval

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A plannedCall is a call of a script whose calls are known before.
type plannedCall struct {
	tool  string
	args  int
	other string // what else it is about than when people were asked
}

func (c plannedCall) String() string { return fmt.Sprint(c.tool, c.args, c.other) }

// does reports whether it does what the planned one would have done: a no to that holds
// for both, by whatever policy they are judged.
func (c plannedCall) does() bool {
	return !slices.Contains([]string{"server", "program", "profile"}, c.other)
}

func (c plannedCall) request(number int) Request {
	r := next(number, c.args, of(c.tool, c.args), func(r *Request) {
		leads := "/w/a"
		switch i := &r.Items[0]; c.other {
		case "server":
			r.Server, i.Server, i.Key.Server = "mail", "mail", "mail"
		case "definition":
			i.Key.Definition = "def2"
		case "policy":
			i.Key.Revision = "rev2"
		case "program":
			i.Key.Identity = "what else it is"
		case "profile":
			i.Key.Profile = "other"
		case "place":
			leads = "/w/b"
		}
		r.Items[0].About.Facts = []Fact{{Param: "path", Role: "path", Leads: leads, Inside: true}}
	})
	return r
}

// theCalls are a script's calls after the first one, of few kinds, so that some come more than once.
func theCalls(random *rand.Rand) []plannedCall {
	all := make([]plannedCall, 1+random.IntN(7))
	for i := range all {
		all[i] = plannedCall{[]string{"t", "u"}[random.IntN(2)], 2 + random.IntN(3), ""}
	}
	return all
}

// planChanges are the ways in which a script's calls may be others than those that were planned.
var planChanges = map[string]func(random *rand.Rand, all []plannedCall) []plannedCall{
	"": func(_ *rand.Rand, all []plannedCall) []plannedCall { return all },
	"order": func(random *rand.Rand, all []plannedCall) []plannedCall {
		i, j := random.IntN(len(all)), random.IntN(len(all))
		all[i], all[j] = all[j], all[i]
		return all
	},
	"one less": func(random *rand.Rand, all []plannedCall) []plannedCall {
		i := random.IntN(len(all))
		return slices.Delete(all, i, i+1)
	},
	"one more": func(random *rand.Rand, all []plannedCall) []plannedCall {
		return slices.Insert(all, random.IntN(len(all)+1), all[random.IntN(len(all))])
	},
	"another": func(random *rand.Rand, all []plannedCall) []plannedCall {
		return slices.Insert(all, random.IntN(len(all)+1), plannedCall{"u", 7, ""})
	},
	"argument": func(random *rand.Rand, all []plannedCall) []plannedCall {
		all[random.IntN(len(all))].args = 2 + random.IntN(4)
		return all
	},
	"tool": func(random *rand.Rand, all []plannedCall) []plannedCall {
		all[random.IntN(len(all))].tool = []string{"u", "v"}[random.IntN(2)]
		return all
	},
	"what it is about": func(random *rand.Rand, all []plannedCall) []plannedCall {
		all[random.IntN(len(all))].other = []string{"server", "definition", "policy", "program", "profile", "place"}[random.IntN(6)]
		return all
	},
}

// naivePlan says what becomes of calls that people were asked about beforehand: which of them are sent, refused, or asked about anew. A call is the first of its
// like that has not come, once, unless one that was to come after that has come.
func naivePlan(planned, made []plannedCall, refused map[int]bool, inTime func(call int) bool) (said []string, unused int) {
	rest, past := make([]bool, len(planned)), 0
	for i := range rest {
		rest[i] = !refused[i]
	}
	for n, c := range made {
		outcome := "asked"
		for i := range planned {
			if refused[i] && planned[i].tool == c.tool && planned[i].args == c.args && c.does() {
				outcome = "refused"
			}
		}
		first := slices.IndexFunc(planned, func(p plannedCall) bool { return p == c })
		for first >= 0 && first < len(planned) && (!rest[first] || planned[first] != c) {
			first++
		}
		if first >= past && first < len(planned) && outcome == "asked" && inTime(n) {
			outcome, rest[first], past = "sent", false, first+1
		}
		said = append(said, outcome)
	}
	for _, left := range rest {
		if left {
			unused++
		}
	}
	return said, unused
}

// Whatever a script changes between being asked and calling (the order, the number, an argument, the tool) is asked anew,
// and what it leaves as it was is not.
func TestChangedPlans(t *testing.T) {
	random := rand.New(rand.NewPCG(16, 4))
	outcomes := map[string]int{}
	var kinds []string
	for kind := range planChanges {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for n := range 1500 {
		kind := kinds[n%len(kinds)]
		planned := theCalls(random)
		made := planChanges[kind](random, slices.Clone(planned))
		refused, rows := map[int]bool{}, []int{1}
		for i := range planned {
			if random.IntN(12) == 0 {
				refused[i] = true
			} else {
				rows = append(rows, i+2)
			}
		}
		late := len(made) // the calls from this one on come too late
		if random.IntN(4) == 0 {
			late = random.IntN(len(made) + 1)
		}
		want, unused := naivePlan(planned, made, refused, func(call int) bool { return call < late })
		bubble(t, Limits{}, func(t *testing.T, b *Broker) {
			var plan []Request
			for _, c := range planned {
				plan = append(plan, c.request(0))
			}
			first := asks(t.Context(), b, next(1, 1, planning(plan...)))
			q := only(t, b, "r1")
			if len(q.Items) != 1+len(planned) {
				t.Fatalf("people see %d calls of %v", len(q.Items), planned)
			}
			say := yes
			if len(refused) > 0 {
				say.Rows = rows
			}
			settle(t, b, q, say)
			answered(t, first)
			approved := time.Now()
			var got []string
			for i, c := range made {
				if i == late {
					time.Sleep(time.Until(approved.Add(PlanFor)))
				} else if i == late-1 && time.Since(approved) < PlanFor-instant {
					time.Sleep(time.Until(approved.Add(PlanFor - instant))) // just in time
				}
				answer := asks(t.Context(), b, c.request(i+2))
				outcome := "asked"
				select {
				case a := <-answer:
					if outcome = "sent"; !a.verdict.Approve {
						outcome = "refused"
					}
				default:
					settle(t, b, only(t, b, "r1"), yes)
					answered(t, answer)
				}
				got = append(got, outcome)
				outcomes[kind+" "+outcome]++
			}
			if lapsed := len(b.Lapse("r1")); !slices.Equal(got, want) || lapsed != unused {
				t.Errorf("%s: planned were %v, but not %v, and made are %v, from the %dth on too late\n%s, and %d lapsed; want\n%s, and %d",
					kind, planned, refused, made, late+1, strings.Join(got, " "), lapsed, strings.Join(want, " "), unused)
			}
		})
		if t.Failed() {
			return
		}
	}
	for _, kind := range kinds {
		if outcomes[kind+" sent"] == 0 || kind != "one less" && outcomes[kind+" asked"] == 0 {
			t.Errorf("the generator is lame: %v", outcomes)
		}
	}
	t.Log(outcomes)
}
