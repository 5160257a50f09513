package approval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// comment is the cover of a comment on an issue.
func comment(changes ...func(*Cover)) Cover {
	c := Cover{Kind: "add_issue_comment", Bound: []Bound{{"owner", Exact, "acme"}, {"repo", Exact, "web"}}, Free: []string{"body", "issue_number"}}
	for _, change := range changes {
		change(&c)
	}
	return c
}

// writing is the cover of a call that writes in a folder.
func writing(folder string) Cover {
	return Cover{Kind: "write", Across: true, Bound: []Bound{{"folder", UnderFolder, folder}}, Free: []string{"content"}}
}

// shared is the cover of a call that writes in the workspace and is bound to its folder,
// and to what else is named.
func shared(folder string, also ...Bound) Cover {
	c := writing(folder)
	c.Shared, c.Bound = true, append(also, c.Bound...)
	return c
}

func naming(hosts ...string) func(*Cover) {
	return func(c *Cover) {
		for _, h := range hosts {
			c.Bound = append(c.Bound, Bound{"body", Mentions, h})
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	bound := func(i int, value string) func(*Cover) { return func(c *Cover) { c.Bound[i].Value = value } }
	to := func(names ...string) Cover {
		c := Cover{Kind: "send", Free: []string{"text"}}
		for _, n := range names {
			c.Bound = append(c.Bound, Bound{"to", ToRecipient, n})
		}
		return c
	}
	at := func(hosts ...string) Cover {
		c := Cover{Kind: "fetch"}
		for _, h := range hosts {
			c.Bound = append(c.Bound, Bound{"url", AtHost, h})
		}
		return c
	}
	proxied := func(host, proxy string) Cover {
		return Cover{Kind: "fetch", Bound: []Bound{{"url", AtHost, host}, {"proxy", AtHost, proxy}}}
	}
	for name, row := range map[string]struct {
		grant, call Cover
		why         string
	}{
		"the same":                        {comment(), comment(), ""},
		"another owner":                   {comment(), comment(bound(0, "acme2")), "owner is another one"},
		"another repository":              {comment(), comment(bound(1, "api")), "repo is another one"},
		"another tool":                    {comment(), comment(func(c *Cover) { c.Kind = "update_issue" }), "another kind"},
		"fewer free arguments":            {comment(), comment(func(c *Cover) { c.Free = c.Free[:1] }), ""},
		"a further argument":              {comment(), comment(func(c *Cover) { c.Free = append(c.Free, "labels") }), "labels is a further argument"},
		"a further bound argument":        {comment(), comment(func(c *Cover) { c.Bound = append(c.Bound, Bound{"state", Exact, "closed"}) }), "state is another one"},
		"without a bound argument":        {comment(), comment(func(c *Cover) { c.Bound = c.Bound[:1] }), "repo is another one"},
		"bound now, free before":          {comment(), comment(func(c *Cover) { c.Free, c.Bound = c.Free[:1], append(c.Bound, Bound{"issue_number", Exact, "1"}) }), "issue_number is another one"},
		"with a secret":                   {comment(), Cover{None: "a secret was found in body"}, "no yes covers it: a secret was found in body"},
		"no grant":                        {Cover{None: "critical"}, comment(), "nothing further"},
		"no grant at all":                 {Cover{}, Cover{}, "nothing further"},
		"names the same host":             {comment(naming("acme.example")), comment(naming("acme.example")), ""},
		"names no host any more":          {comment(naming("acme.example")), comment(), ""},
		"names another host":              {comment(naming("acme.example")), comment(naming("evil.example")), "body is another one"},
		"names a host besides":            {comment(naming("acme.example")), comment(naming("acme.example", "evil.example")), "body is another one"},
		"names a host":                    {comment(), comment(naming("acme.example")), "body is another one"},
		"in the folder":                   {writing("/w/app"), writing("/w/app"), ""},
		"in a folder of it":               {writing("/w/app"), writing("/w/app/src"), ""},
		"in a folder with a like name":    {writing("/w/app"), writing("/w/application"), "folder is another one"},
		"in the folder above":             {writing("/w/app"), writing("/w"), "folder is another one"},
		"in no folder":                    {writing("/w/app"), writing(""), "folder is another one"},
		"anywhere":                        {writing(""), writing("/w"), "folder is another one"},
		"in a drive":                      {writing(`C:\`), writing(`C:\w`), ""},
		"in a folder of Windows":          {writing(`C:\w`), writing(`C:\w\src`), ""},
		"a tool that is called write":     {writing("/w/app"), Cover{Kind: "write", Bound: []Bound{{"folder", UnderFolder, "/w/app"}}}, "another kind"},
		"in the workspace, too":           {shared("/w"), shared("/w/src"), ""},
		"not known to stay there":         {shared("/w"), writing("/w"), "another kind"},
		"to the same people":              {to("ann", "bob"), to("bob", "ann"), ""},
		"to fewer":                        {to("ann", "bob"), to("ann"), "to is another one"},
		"to more":                         {to("ann"), to("ann", "eve"), "to is another one"},
		"to somebody else":                {to("ann"), to("eve"), "to is another one"},
		"at the same host":                {at("a.example"), at("a.example"), ""},
		"at another port":                 {at("a.example"), at("a.example:8443"), "url is another one"},
		"at a host below":                 {at("a.example"), at("x.a.example"), "url is another one"},
		"at one of the hosts":             {at("a.example", "b.example"), at("b.example"), ""},
		"at all of the hosts":             {at("a.example", "b.example"), at("b.example", "a.example"), ""},
		"at a further host":               {at("a.example", "b.example"), at("b.example", "c.example"), "url is another one"},
		"at no host any more":             {at("a.example", "b.example"), at(), "url is another one"},
		"without the other host":          {proxied("a.example", "p.example"), at("a.example"), "proxy is another one"},
		"the hosts the other way round":   {proxied("a.example", "p.example"), proxied("p.example", "a.example"), "another one"},
		"of a kind that is not known":     {Cover{Kind: "x", Bound: []Bound{{"p", "range", "1"}}}, Cover{Kind: "x", Bound: []Bound{{"p", "range", "1"}}}, "p is another one"},
		"the value as another kind of it": {at("a.example"), Cover{Kind: "fetch", Bound: []Bound{{"url", Exact, "a.example"}}}, "url is another one"},
	} {
		if got := row.grant.covers(row.call); !strings.Contains(got, row.why) || (got == "") != (row.why == "") {
			t.Errorf("%s: %q, want %q", name, got, row.why)
		}
	}
}

// No call is covered that differs from the one that was approved in what is bound, or has an argument that the
// approved one did not leave free.
func FuzzCovers(f *testing.F) {
	f.Add("owner=acme repo=web folder:/w", "body n", "owner=acme repo=web folder:/w/x", "body")
	f.Add("host@a.example", "", "host@a.example", "")
	f.Add("to>ann", "text", "to>eve", "text")
	f.Fuzz(func(t *testing.T, bound, free, otherBound, otherFree string) {
		c, one := coverOf(bound, free), coverOf(otherBound, otherFree)
		if c.covers(c) != "" && !strings.Contains(bound, ":") {
			t.Errorf("%+v does not cover itself: %s", c, c.covers(c))
		}
		if c.covers(one) != "" {
			return
		}
		for _, b := range one.Bound {
			same := slices.Contains(c.Bound, b)
			inside := b.Kind == UnderFolder && slices.ContainsFunc(c.Bound, func(had Bound) bool {
				return had.Kind == UnderFolder && had.Param == b.Param && strings.HasPrefix(b.Value, had.Value)
			})
			if !same && !inside {
				t.Errorf("%+v covers %+v", c, one)
			}
		}
		for _, name := range one.Free {
			if !slices.Contains(c.Free, name) {
				t.Errorf("%+v covers %+v", c, one)
			}
		}
		for _, b := range c.Bound {
			if b.Kind != Mentions && !slices.ContainsFunc(one.Bound, func(o Bound) bool { return o.Param == b.Param && o.Kind == b.Kind }) {
				t.Errorf("%+v covers %+v", c, one)
			}
		}
	})
}

// coverOf reads "owner=acme folder:/w host@h to>ann text*h" and a list of names.
func coverOf(bound, free string) Cover {
	c := Cover{Kind: "k", Free: strings.Fields(free)}
	kinds := map[byte]BoundKind{'=': Exact, ':': UnderFolder, '@': AtHost, '>': ToRecipient, '*': Mentions}
	for word := range strings.FieldsSeq(bound) {
		if i := strings.IndexAny(word, "=:@>*"); i >= 0 {
			c.Bound = append(c.Bound, Bound{word[:i], kinds[word[i]], word[i+1:]})
		}
	}
	return c
}

func TestCoverInWords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("select ", 20)
	for want, c := range map[string]Cover{
		"": {},
		"this call only: a secret was found in body":                                                                      {Kind: "x", None: "a secret was found in body"},
		"add_issue_comment with owner acme, repo web; any body, issue_number":                                             comment(),
		"add_issue_comment with owner acme, repo web; any body, issue_number that names no host but a.example, b.example": comment(naming("a.example", "b.example")),
		"write under /w/app; any content":                                                                                 writing("/w/app"),
		"write under /w/app by any known server; any content":                                                             shared("/w/app"),
		"write with fileKey k, under /w/app; any content; or under /w/app by any known server":                            shared("/w/app", Bound{"fileKey", Exact, "k"}),
		"fetch at a.example; any path there":                                                                              {Kind: "fetch", Bound: []Bound{{"url", AtHost, "a.example"}}},
		"fetch at a.example or b.example, at p.example; any path there":                                                   {Kind: "fetch", Bound: []Bound{{"url", AtHost, "a.example"}, {"url", AtHost, "b.example"}, {"proxy", AtHost, "p.example"}}},
		"send to ann@b.example; any text":                                                                                 {Kind: "send", Bound: []Bound{{"to", ToRecipient, "ann@b.example"}}, Free: []string{"text"}},
		"query with sql as it is; nothing may differ":                                                                     {Kind: "query", Bound: []Bound{{"sql", Exact, long}}},
		"read under /etc; any path there":                                                                                 {Kind: "read", Across: true, Bound: []Bound{{"folder", UnderFolder, "/etc"}}, Free: []string{"content"}},
		"read with store memory; anything in it":                                                                          {Kind: "read", Across: true, Bound: []Bound{{"store", Exact, "memory"}}, Free: []string{"content"}},
		"write; any entities":                                                                                             {Kind: "write", Across: true, Free: []string{"entities"}},
		`post with "channel or" "general; nothing may differ"; any "text, and all"`:                                       {Kind: "post", Bound: []Bound{{"channel or", Exact, "general; nothing may differ"}}, Free: []string{"text, and all"}},
		`send to "ann or bob"; nothing may differ`:                                                                        {Kind: "send", Bound: []Bound{{"to", ToRecipient, "ann or bob"}}},
		`run with cmd "ls\u202e"; nothing may differ`:                                                                     {Kind: "run", Bound: []Bound{{"cmd", Exact, "ls\u202e"}}},
	} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// In a dialog, whose client may render Markdown, what is no plain word or path stands in
// a code span. A text that reads as JSON keeps its quotes, so that it is no other text.
func TestCoverInADialog(t *testing.T) {
	t.Parallel()
	exact := func(value string) Cover {
		return Cover{Kind: "set_value", Bound: []Bound{{"_key_", Exact, value}}, Free: []string{"www.acme.example"}}
	}
	for want, c := range map[string]Cover{
		"write under /w/my_app by any known server; any content":         shared("/w/my_app"),
		"write under `\"/w/_app_\"`; any content":                        writing("/w/_app_"),
		"write under `\"C:\\\\w\"`; any content":                         writing(`C:\w`),
		"fetch at `\"a.example\"`; any path there":                       {Kind: "fetch", Bound: []Bound{{"url", AtHost, "a.example"}}},
		"send to ``\"ann`**\"``; nothing may differ":                     {Kind: "send", Bound: []Bound{{"to", ToRecipient, "ann`**"}}},
		"send to `\"\\\"ann\\\"\"`; nothing may differ":                  {Kind: "send", Bound: []Bound{{"to", ToRecipient, `"ann"`}}},
		"set_value with `\"_key_\"` 5; any `\"www.acme.example\"`":       exact("5"),
		"set_value with `\"_key_\"` `\"5\"`; any `\"www.acme.example\"`": exact(`"5"`),
	} {
		if got := c.words(quoting{dialog: true}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got, want := (Cover{Kind: "send", Bound: []Bound{{"to", ToRecipient, `"ann"`}}}).String(), `send to "\"ann\""; nothing may differ`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The title of a choice is short, and whole: what is cut is a value, and not the sentence.
func TestLongTitles(t *testing.T) {
	t.Parallel()
	of := func(all ...Cover) Choice {
		r := question(1, remembered)
		for i, c := range all {
			item := question(i+1, remembered).Items[0]
			item.Cover = c
			r.Items = append(r.Items[:i], item)
		}
		choices := r.Choices(true)
		return choices[len(choices)-1]
	}
	hosts := Cover{Kind: "fetch"}
	for n := range 20 {
		hosts.Bound = append(hosts.Bound, Bound{"url", AtHost, fmt.Sprint("host", n, ".example")})
	}
	folder := "/w/" + strings.Repeat("_b_/", 40)
	for _, row := range []struct {
		of            Choice
		title, dialog string
	}{
		{of(writing("/w/app")), "write under /w/app", "write under /w/app"},
		{of(writing(folder)), "write under " + folder[:60] + "…", "write under `\"" + folder[:60] + "\"`…"},
		{of(writing(folder), comment()), "write under " + folder[:60] + "…; add_issue_comment owner acme, repo web", "write under `\"" + folder[:60] + "\"`…; add_issue_comment owner acme, repo web"},
		{of(hosts), "calls like this, as described", "calls like this, as described"},
	} {
		if diff := cmp.Diff([]string{"Yes, for this session: " + row.title, "Yes, for this session: " + row.dialog}, []string{row.of.Title, row.of.Dialog}); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestChoices(t *testing.T) {
	t.Parallel()
	once := question(1)
	wider := question(1, remembered)
	wider50 := question(1, remembered, func(r *Request) { r.MostCalls = 50 })
	wider1 := question(1, remembered, func(r *Request) { r.MostCalls = 1 })
	later := question(1, remembered, func(r *Request) { r.Before = 1 })
	fold := question(1, remembered)
	for n := 2; n <= 20; n++ {
		fold.Items = append(fold.Items, question(n, remembered).Items...)
	}
	kinds := question(1, remembered)
	for n := range 3 {
		item := question(n+2, remembered).Items[0]
		item.Cover.Bound = []Bound{{"path", Exact, fmt.Sprint("/", n)}}
		kinds.Items = append(kinds.Items, item)
	}
	mixed := question(1, remembered)
	mixed.Items = append(mixed.Items, once.Items...)
	elsewhere := question(1, remembered, func(r *Request) { r.Items[0].Cover.RunOnly = true })
	both := question(1, remembered)
	both.Items = append(both.Items, elsewhere.Items...)
	scattered := question(1, remembered)
	for n := range 11 {
		scattered.Items = append(scattered.Items, next(2*n+3, n).Items...)
	}
	for name, row := range map[string]struct {
		r       Request
		session bool
		want    []string
		counts  []int
	}{
		"once":                     {once, true, []string{"no", "stop", "once"}, nil},
		"wider":                    {wider, true, []string{"no", "stop", "once", "run", "session"}, []int{20, 100, 1000}},
		"wider, in a run of 50":    {wider50, true, []string{"no", "stop", "once", "run", "session"}, []int{20, 50}},
		"wider, in a run of one":   {wider1, true, []string{"no", "stop", "once"}, []int{}},
		"wider, later":             {later, true, []string{"no", "no_more", "stop", "once", "run", "session"}, []int{20, 100, 1000}},
		"wider, without a session": {wider, false, []string{"no", "stop", "once", "run"}, []int{20, 100, 1000}},
		"twenty calls":             {fold, true, []string{"no", "stop", "once", "run", "session"}, []int{100, 1000}},
		"too many kinds of calls":  {kinds, true, []string{"no", "stop", "once"}, nil},
		// What has a cover is worth an answer, whatever else the script does with it.
		"one of them is not offered":  {mixed, true, []string{"no", "stop", "once", "run", "session"}, []int{20, 100, 1000}},
		"none of them is offered":     {next(1, 1), true, []string{"no", "stop", "once"}, nil},
		"what is elsewhere":           {elsewhere, true, []string{"no", "stop", "once", "run"}, []int{20, 100, 1000}},
		"here and elsewhere":          {both, true, []string{"no", "stop", "once", "run", "session"}, []int{20, 100, 1000}},
		"too much to be said":         {scattered, true, []string{"no", "stop", "once"}, nil},
		"what needs a reason":         {question(1, remembered, func(r *Request) { r.Decision.RequireReason = true }), true, []string{"no", "stop", "once"}, nil},
		"what several have to answer": {question(1, remembered, quorum(2, false)), true, []string{"no", "stop", "once"}, nil},
	} {
		var got []string
		for _, c := range row.r.Choices(row.session) {
			got = append(got, c.Value)
			if c.Yes() != (c.Scope != "") || c.Title == "" {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if row.counts != nil && !slices.Equal(row.r.Counts(), row.counts) {
			t.Errorf("%s: numbers %v, want %v", name, row.r.Counts(), row.counts)
		}
	}
	all := later.Choices(true)
	var titles []string
	for _, c := range all {
		titles = append(titles, c.Title)
	}
	want := []string{"No", "No to every further call of this tool in this script", "No, and stop the script", "Yes, this call",
		"Yes, and calls like this in this run, up to a number", "Yes, for this session: delete path /a"}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("the titles (-want +got):\n%s", diff)
	}
}

// One answer to calls of a tool at several hosts is for these hosts.
func TestCoverOfSeveralHosts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ one, other, want string }{
		"two hosts":                  {"url@a.example depth=1", "url@b.example depth=1", "k at a.example or b.example, depth 1; any path there"},
		"the same host":              {"url@a.example", "url@a.example", "k at a.example; any path there"},
		"hosts of several arguments": {"url@a.example", "link@b.example", ""},
		"two hosts in a call":        {"url@a.example url@b.example", "url@c.example", "k at a.example or b.example or c.example; any path there"},
		"one behind another":         {"url@a.example proxy@p.example", "url@b.example proxy@p.example", ""},
		"another argument differs":   {"url@a.example depth=1", "url@b.example depth=2", ""},
		"one has a host":             {"url@a.example", "depth=1", ""},
		"more than anybody reads":    {"url@a.example", strings.Repeat("url@b.example ", 20), ""},
	} {
		one, other := coverOf(row.one, ""), coverOf(row.other, "")
		for i := range other.Bound {
			if len(other.Bound) == 20 {
				other.Bound[i].Value = fmt.Sprint("b", i, ".example")
			}
		}
		got := ""
		if both, ok := one.with(other); ok {
			got = both.String()
			if both.covers(one)+both.covers(other) != "" {
				t.Errorf("%s: %s does not cover what it was made of", name, got)
			}
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// Wider answers to several calls are for those that have a cover, and say which the
// others are: those they are for only once.
func TestWiderAnswersToSomeOfTheCalls(t *testing.T) {
	t.Parallel()
	write := func(r *Request) { r.Decision.Remember, r.Items[0].Cover = true, writing("/w/app") }
	comments := func(r *Request) {
		r.Decision.Remember, r.Items[0].Cover = true, comment()
		r.Items[0].Cover.RunOnly = true
	}
	push := func(*Request) {}
	secret := func(r *Request) { write(r); r.Decision.Remember = false }
	of := func(all ...func(*Request)) Request {
		r := next(1, 1, all[0])
		for i, change := range all[1:] {
			r.Items = append(r.Items, next(i+2, i+2, change).Calls()...)
		}
		return r
	}
	for name, row := range map[string]struct {
		r                   Request
		run, session, words string
	}{
		"all": {of(write, write), "", "write under /w/app", "write under /w/app; any content"},
		"all but the last": {of(write, write, push), "; call 3 only once", "write under /w/app; call 3 only once",
			"write under /w/app; any content · call 3 only once"},
		"here and there": {of(push, write, push, push, write, push, write), "; calls 1, 3-4 and 6 only once", "write under /w/app; calls 1, 3-4 and 6 only once",
			"write under /w/app; any content · calls 1, 3-4 and 6 only once"},
		"what is read elsewhere": {of(write, secret), "; call 2 only once", "write under /w/app; call 2 only once", "write under /w/app; any content · call 2 only once"},
		"what the session cannot have": {of(write, comments, push), "; call 3 only once", "write under /w/app; calls 2-3 only once",
			"write under /w/app; any content · only in this run: add_issue_comment with owner acme, repo web; any body, issue_number · call 3 only once"},
		"none for the session": {of(comments, push), "; call 2 only once", "none", "add_issue_comment with owner acme, repo web; any body, issue_number · call 2 only once"},
	} {
		run, session := "none", "none"
		for _, c := range row.r.Choices(true) {
			switch c.Scope {
			case RunScope:
				run = strings.TrimPrefix(c.Title, "Yes, and calls like this in this run, up to a number")
			case SessionScope:
				session = strings.TrimPrefix(c.Title, "Yes, for this session: ")
			}
		}
		if diff := cmp.Diff([]string{row.run, row.session, row.words}, []string{run, session, row.r.WiderWords()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What a wider answer is for only once is asked about again, and a plan's calls are
// sent as any plan's.
func TestWiderAnswerToAPlan(t *testing.T) {
	write := func(r *Request) { r.Decision.Remember, r.Items[0].Cover = true, writing("/w/app") }
	comments := func(r *Request) {
		r.Decision.Remember, r.Items[0].Cover = true, comment()
		r.Items[0].Cover.RunOnly = true
	}
	for _, scope := range []Scope{RunScope, SessionScope} {
		bubble(t, Limits{}, func(t *testing.T, b *Broker) {
			first := asks(t.Context(), b, next(1, 1, write, planning(next(0, 2), next(0, 3, comments))))
			say := Verdict{Approve: true, Scope: scope, By: "ann", Channel: "page"}
			if scope == RunScope {
				say.Count = 20
			}
			settle(t, b, only(t, b, "r1"), say)
			wantAnswer(t, first, "yes")
			wantAnswer(t, asks(t.Context(), b, next(2, 2)), "yes")
			wantAnswer(t, asks(t.Context(), b, next(3, 3, comments)), "yes")
			wantAnswer(t, asks(t.Context(), b, next(4, 4, write)), "yes")
			stillAsks(t, asks(t.Context(), b, next(5, 2)))
			if comment := asks(t.Context(), b, next(6, 6, comments)); scope == RunScope {
				wantAnswer(t, comment, "yes")
			} else {
				stillAsks(t, comment)
			}
			b.EndRun("r1")
		})
	}
}
