package source

import (
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja/parser"
)

func TestTranslate(t *testing.T) {
	for _, c := range []struct{ pattern, flags, want string }{
		{`\p{L}`, "g", `\p{L}`}, // without u it means the letters p{L}
		{`[a-z]+`, "u", `[a-z]+`},
		{`\p{Lu}`, "u", `\p{Lu}(?=)`},
		{`\p{Letter}[\P{Script=Greek}x]`, "u", `\p{L}[\P{Greek}x](?=)`},
		{`\p{ASCII}\P{ASCII}`, "u", `[\u{0}-\u{7f}][^\u{0}-\u{7f}](?=)`},
		{`[\P{ASCII}]`, "u", `[\u{80}-\u{10ffff}](?=)`},
		{`[a]\]`, "v", `[a]\]`},
		{`[\w--\d]`, "v", `(?:(?![\d])[\w])`},
		{`[a-z&&[aeiou]]`, "v", `(?:(?=[aeiou])[a-z])`},
		{`[[a-z][0-9]_]`, "v", `(?:[a-z]|[0-9]|[_])`},
		{`[^a[b]]`, "v", `(?:(?!(?:[b]|[a]))[\s\S])`},
		{`[\q{abc|d}x]`, "v", `(?:(?:abc|d)|[x])`},
	} {
		if got, err := new(Script).Translate(c.pattern, c.flags); err != nil || got != c.want {
			t.Errorf("/%s/%s: %s, %v; want %s", c.pattern, c.flags, got, err, c.want)
		}
	}
	for _, pattern := range []string{`\p{Nonsense}`, `\p{`, `[a--]`, `[--a]`, `[a--b&&c]`, `[a&&b c]`, `[`, `[\q{a]`, strings.Repeat("[", 200)} {
		if got, err := new(Script).Translate(pattern, "v"); err == nil {
			t.Errorf("%s became %s", pattern, got)
		}
	}
}

// FuzzTranslate holds that whatever is translated without v still means the
// same, and that no pattern breaks the translation.
func FuzzTranslate(f *testing.F) {
	for _, s := range []string{`\p{L}+`, `[\p{L}--[a-z]]`, `[^\d&&[\w]]`, `[\q{a|b}]`, `(?<n>a)\k<n>`, `\u{1F600}[\]-]`, `[a-`, `\`, `[^]`, `a{2,}`} {
		f.Add(s, "é1")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 50 {
			return
		}
		if _, err := new(Script).Translate(pattern, "v"); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		out, err := new(Script).Translate(pattern, "u")
		if err != nil || strings.Contains(pattern, "p{") || strings.Contains(pattern, "P{") {
			return
		}
		if _, bad := parser.TransformRegExp(pattern, false, true); bad == nil && out != pattern {
			t.Errorf("%s became %s", pattern, out)
		}
		if _, bad := regexp2.Compile(pattern, regexp2.ECMAScript|regexp2.Unicode); bad == nil && out != pattern {
			t.Errorf("%s became %s", pattern, out)
		}
	})
}
