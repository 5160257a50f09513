package profiles

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// naiveMatch is the reference matcher: the syntax of pattern's comment, read
// from left to right with every choice tried.
func naiveMatch(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	r, size := utf8.DecodeRuneInString(pattern)
	rest := pattern[size:]
	switch r {
	case '*':
		for i := 0; i <= len(name); i++ {
			if naiveMatch(rest, name[i:]) {
				return true
			}
		}
		return false
	case '{':
		branches, after := naiveBranches(rest)
		for _, b := range branches {
			if naiveMatch(b+after, name) {
				return true
			}
		}
		return false
	}
	c, n := utf8.DecodeRuneInString(name)
	if n == 0 {
		return false
	}
	switch r {
	case '?':
		return naiveMatch(rest, name[n:])
	case '[':
		in, after := naiveClass(rest, c)
		return in && naiveMatch(after, name[n:])
	case '\\':
		r, size = utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	return r == c && naiveMatch(rest, name[n:])
}

func naiveClass(rest string, c rune) (in bool, after string) {
	not := strings.HasPrefix(rest, "!")
	body := []rune(strings.TrimPrefix(rest, "!"))
	if len(body) > 3 && body[1] == '-' && body[3] == ']' {
		return (body[0] <= c && c <= body[2]) != not, string(body[4:])
	}
	i := 0
	for ; body[i] != ']'; i++ {
		if body[i] == '\\' {
			i++
		}
		in = in || body[i] == c
	}
	return in != not, string(body[i+1:])
}

func naiveBranches(rest string) (branches []string, after string) {
	depth, from := 0, 0
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '[':
			for i++; rest[i] != ']'; i++ {
				if rest[i] == '\\' {
					i++
				}
			}
		case '{':
			depth++
		case ',':
			if depth == 0 {
				branches, from = append(branches, rest[from:i]), i+1
			}
		case '}':
			if depth == 0 {
				return append(branches, rest[from:i]), rest[i+1:]
			}
			depth--
		}
	}
	panic("not closed")
}

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern string
		match   []string
		not     []string
	}{
		{"*", []string{"a__b", "search_tools", "é__.."}, nil},
		{"a__b", []string{"a__b"}, []string{"a__b ", "A__b", "xa__b", "a__bc"}},
		{"a__*", []string{"a__", "a__b", "a__b/c.d__e"}, []string{"a_", "ba__b"}},
		{"*delete*", []string{"github.delete_repo", "x__delete", "delete"}, []string{"x__Delete"}},
		{"a__?", []string{"a__b", "a__é"}, []string{"a__", "a__bc"}},
		{"a__[xy]", []string{"a__x", "a__y"}, []string{"a__z", "a__xy"}},
		{"a__[!x-z]", []string{"a__a"}, []string{"a__x", "a__y", "a__"}},
		{"{a,b}__{get,list}_*", []string{"a__get_", "b__list_x"}, []string{"c__get_x", "a__put_x"}},
		{"a__{x,}", []string{"a__x", "a__"}, []string{"a__y"}},
		{"{a__{x,y},b}", []string{"a__x", "a__y", "b"}, []string{"a__b"}},
		{"{a,b}", []string{"a", "b"}, []string{"", "ab"}},
		{"x{a*,}{,b[}]}c", []string{"xc", "xaac", "xb}c", "xab}c"}, []string{"x", "xbc"}},
		{`a__\*`, []string{"a__*"}, []string{"a__x"}},
		{`a__\[x\]`, []string{"a__[x]"}, []string{"a__x"}},
		{"a__[,}]", []string{"a__,", "a__}"}, []string{"a__x"}},
	} {
		p, err := compilePattern(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		for _, name := range test.match {
			if !p.match(name) || !naiveMatch(test.pattern, name) {
				t.Errorf("%s does not match %s", test.pattern, name)
			}
		}
		for _, name := range test.not {
			if p.match(name) || naiveMatch(test.pattern, name) {
				t.Errorf("%s matches %s", test.pattern, name)
			}
		}
	}
}

func TestIllegalGlobs(t *testing.T) {
	for pattern, offset := range map[string]int{
		"":                       -1,
		"a[b":                    1,
		"a[":                     1,
		"x]":                     1,
		"{a":                     0,
		"a}":                     1,
		"{a,{b}":                 0,
		"[]":                     0,
		"[!]":                    0,
		"[^a]":                   1,
		`[\-a]`:                  1,
		`a\`:                     1,
		"[z-a]":                  5,
		"a\xff":                  -1,
		strings.Repeat("x", 257): -1,
		strings.Repeat("*x", 9):  -1,
		"{a," + "\\" + "}":       0,
		"[a-z0-9]":               5,
		`[a\`:                    0,
		" a":                     0,
		"\ta":                    0,
		"a* ":                    2,
		"a\u00a0":                1,
		"a*\u3000 ":              2,
		"é\u200b_b":              2,
		"a\u202eb":               1,
		"a\ufe0f":                1,
		"a\u3164b":               1,
		"a\tb":                   1,
		"{a, b}":                 3,
		"{a ,b}":                 2,
		"{ a,b}":                 1,
		"{a,b }":                 4,
		"[a\u200b]":              2,
		`a\  `:                   3,
	} {
		_, err := compilePattern(pattern)
		if err == nil {
			t.Errorf("%q is taken", pattern)
		} else if err.offset != offset {
			t.Errorf("%q: %s at %d, want %d", pattern, err.message, err.offset, offset)
		}
	}
}

// What is hidden in a pattern is refused with what to write instead, and what is meant
// to be there is not.
func TestUnseenInGlobs(t *testing.T) {
	for pattern, want := range map[string]string{
		" fs__* ":                  `write "fs__*"`,
		"fs__{read, write , list}": `write "fs__{read,write,list}"`,
		"fs\u200b__\ufeff*":        `write "fs__*"`,
		" \t":                      `"*" matches every tool`,
		"\u2060":                   `"*" matches every tool`,
		`a\  `:                     `write "a\\ "`,
	} {
		if _, err := compilePattern(pattern); err == nil || err.hint != want {
			t.Errorf("%q: %+v, want the hint %s", pattern, err, want)
		}
	}
	for pattern, name := range map[string]string{
		"a b":       "a b",
		`a\ `:       "a ",
		`\\`:        `\`,
		"[ x]b":     " b",
		"a, b":      "a, b",
		`{a\ ,\ b}`: " b",
		"größe":     "größe",
		"e\u0301":   "e\u0301",
	} {
		if p, err := compilePattern(pattern); err != nil || !p.match(name) {
			t.Errorf("%q, which is meant: %+v", pattern, err)
		}
	}
}

// A name that an upstream chose must not keep a decision busy. The patterns
// took gobwas/glob minutes and more while it saw their braces; here the test
// ends, which is all that it asks.
func TestGlobsThatInviteBacktracking(t *testing.T) {
	name := strings.Repeat("a", maxPath-1) + "c"
	for _, text := range []string{
		"*a*a*a*a*a*a*a[b]", "{*a,*a}{*a,*a}{*a,*a}{*a,*a}[b]", "{a*,a*}{a*,a*}{a*,a*}{a*,a*}?[b]", strings.Repeat("{a,aa}", 6) + "*[b]",
	} {
		p, err := compilePattern(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if p.match(name) {
			t.Errorf("%s matches", text)
		}
	}
	if _, err := compilePattern(strings.Repeat("{a,aa}", 27)); err == nil {
		t.Error("a pattern for 2^27 names is taken")
	}
}

// P2.
func TestGlobAgainstTheReference(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "_", "__", "é", "*", "?", "[ab]", "[!a]", "[a-b]", "{a,b}", "{a*,,b?}", "{[ab],{é,_}}", `\*`, `\a`})
	word := rapid.SampledFrom([]string{"a", "b", "_", "é", "*", "__"})
	both := [2]int{}
	rapid.Check(t, func(rt *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(rt, "pattern"), "")
		names := rapid.SliceOfN(rapid.SliceOfN(word, 0, 6), 20, 20).Draw(rt, "names")
		p, err := compilePattern(pattern)
		if err != nil {
			return // too many stars
		}
		for _, words := range names {
			name := strings.Join(words, "")
			want := naiveMatch(pattern, name)
			if got := p.match(name); got != want {
				rt.Fatalf("%q matches %q: %t, the reference says %t", pattern, name, got, want)
			}
			if want {
				both[1]++
			} else {
				both[0]++
			}
		}
	})
	if both[0] == 0 || both[1] == 0 {
		t.Errorf("the generator is lame: %v", both)
	}
}

func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"a__*", "a__b"}, {"{a,b*}[!c-d]?", "bxé"}, {`\{[a\]]`, "{]"}, {"*a*b*c", "xaxbxc"}, {"[A-]]", "A"}, {"{a,[}]}", "}"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 24 || len(name) > 24 || !utf8.ValidString(name) {
			return
		}
		p, err := compilePattern(pattern)
		if err != nil {
			if err.offset < -1 || err.offset > len(pattern) {
				t.Fatalf("%q: offset %d", pattern, err.offset)
			}
			return
		}
		if got, want := p.match(name), naiveMatch(pattern, name); got != want {
			t.Fatalf("%q matches %q: %t, the reference says %t", pattern, name, got, want)
		}
	})
}
