//go:build !race

package main_test

// The documents are checked against the repository: links lead somewhere, and the program
// does say what docs/troubleshooting.md quotes.

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fences    = regexp.MustCompile("(?ms)^( *)```.*?^ *```[ \t]*$")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	mdLink    = regexp.MustCompile(`\]\(([^()\s]+)\)|(?:src|href|srcset)="([^"]+)"`)
	mdHeading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the places in a document that a link can name, as GitHub makes
// them of its headings.
func anchors(text string) (all []string) {
	for _, m := range mdHeading.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		name := slug
		for n := 1; slices.Contains(all, name); n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		all = append(all, name)
	}
	return all
}

// brokenLinks finds the relative links of Markdown files that lead nowhere.
// exists says whether there is a file or folder.
func brokenLinks(files []file, exists func(string) bool) (bad []string) {
	text := map[string]string{}
	for _, f := range files {
		text[f.Path] = f.Text
	}
	for _, f := range files {
		if path.Ext(f.Path) != ".md" {
			continue
		}
		prose := codeSpan.ReplaceAllString(fences.ReplaceAllString(f.Text, ""), "")
		for _, m := range mdLink.FindAllStringSubmatch(prose, -1) {
			link := m[1] + m[2]
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			target, anchor, hasAnchor := strings.Cut(link, "#")
			where := f.Path
			if target != "" {
				where = path.Join(path.Dir(f.Path), target)
			}
			switch {
			case !exists(where):
				bad = append(bad, f.Path+" links to "+link+", which does not exist")
			case hasAnchor && !slices.Contains(anchors(text[where]), anchor):
				bad = append(bad, f.Path+" links to "+link+", and there is no such heading")
			}
		}
	}
	return bad
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	var documents []file
	for _, f := range readFiles(t, root) {
		if path.Ext(f.Path) == ".md" {
			documents = append(documents, f)
		}
	}
	if len(documents) < 10 {
		t.Fatalf("read %d documents", len(documents))
	}
	for _, violation := range brokenLinks(documents, func(name string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		return err == nil
	}) {
		t.Error(violation)
	}
}

func TestLinkRuleCanFail(t *testing.T) {
	t.Parallel()
	const other = "# A title, with `code` and *more*\n## Twice\n## Twice\n```\n# no heading\n```\n"
	for _, row := range []struct {
		text string
		bad  int
	}{
		{"[a](b.md)", 0},
		{"[a](c.md)", 1},
		{"[a](b.md#a-title-with-code-and-more), [b](b.md#twice-1)", 0},
		{"[a](b.md#no-heading)", 1},
		{"[a](b.md#twice-2)", 1},
		{"# Here\n[a](#here), [b](#there)", 1},
		{"<img src=\"b.md\"> <img src=\"gone.png\">", 1},
		{"[a](https://example.com/c.md)", 0},
		{"```\n[a](c.md)\n```\n`[a](c.md)`", 0},
	} {
		files := []file{{"d/a.md", row.text}, {"d/b.md", other}}
		bad := brokenLinks(files, func(name string) bool { return name == "d/a.md" || name == "d/b.md" })
		if len(bad) != row.bad {
			t.Errorf("%q: %q, want %d", row.text, bad, row.bad)
		}
	}
}

var (
	variablePart = regexp.MustCompile(`<[^<>\n]*>`)
	joined       = regexp.MustCompile("\"\\s*\\+\\s*\"|`\\s*\\+\\s*`")
	quotedWords  = regexp.MustCompile("(?ms)^```text\n(.*?)^```$")
)

// unsaid finds lines, in the blocks marked `text` of a document, that are nowhere in the
// sources. What is in angle brackets varies and is not looked for, nor are quotes
// beside it.
func unsaid(document string, sources []file) (bad []string) {
	var all strings.Builder
	for _, f := range sources {
		all.WriteString(joined.ReplaceAllString(strings.ReplaceAll(f.Text, `\"`, `"`), ""))
	}
	blocks := quotedWords.FindAllStringSubmatch(document, -1)
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			seen := 0
			for _, part := range variablePart.Split(strings.TrimSpace(line), -1) {
				part = strings.Trim(part, `"`)
				if len(part) < 5 {
					continue
				}
				seen++
				if !strings.Contains(all.String(), part) {
					bad = append(bad, fmt.Sprintf("nothing says %q, of %q", part, strings.TrimSpace(line)))
				}
			}
			if seen == 0 {
				bad = append(bad, fmt.Sprintf("nothing of %q can be looked for", line))
			}
		}
	}
	if len(blocks) == 0 {
		bad = append(bad, "nothing is quoted")
	}
	return bad
}

func TestTroubleshootingQuotesTheProgram(t *testing.T) {
	t.Parallel()
	var document string
	var sources []file
	for _, f := range readFiles(t, filepath.Join("..", "..")) {
		switch {
		case f.Path == "docs/troubleshooting.md":
			document = f.Text
		case path.Ext(f.Path) == ".go" && !strings.HasSuffix(f.Path, "_test.go"), path.Ext(f.Path) == ".txtar":
			sources = append(sources, f)
		}
	}
	for _, violation := range unsaid(document, sources) {
		t.Error(violation)
	}
}

func TestQuoteRuleCanFail(t *testing.T) {
	t.Parallel()
	sources := []file{{"a.go", `fmt.Errorf("run %s has gone"+` + "\n\t" + `" away: %q", id, "so \"it\" is")`}}
	block := func(line string) string { return "x\n\n```text\n" + line + "\n```\n" }
	for _, row := range []struct {
		document string
		good     bool
	}{
		{block(`run <id> has gone away: "<why>"`), true},
		{block(`so "it" is`), true},
		{block(`run <id> has gone to bed`), false},
		{block(`<everything>`), false},
		{"nothing", false},
	} {
		if bad := unsaid(row.document, sources); (len(bad) == 0) != row.good {
			t.Errorf("%q: %q", row.document, bad)
		}
	}
}

var testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*\b`)

// unknownTests finds names of tests in documents that no source declares.
func unknownTests(files []file) (bad []string) {
	var tests strings.Builder
	for _, f := range files {
		if strings.HasSuffix(f.Path, "_test.go") {
			tests.WriteString(f.Text)
		}
	}
	for _, f := range files {
		if path.Ext(f.Path) != ".md" || strings.Contains(f.Path, "testdata/") {
			continue
		}
		for _, span := range codeSpan.FindAllString(fences.ReplaceAllString(f.Text, ""), -1) {
			for _, name := range testName.FindAllString(span, -1) {
				if !strings.Contains(tests.String(), "\nfunc "+name+"(") && !strings.Contains(span, name+"...") {
					bad = append(bad, f.Path+" names "+name+", and there is no such test")
				}
			}
		}
	}
	return bad
}

func TestDocumentsNameTests(t *testing.T) {
	t.Parallel()
	for _, violation := range unknownTests(readFiles(t, filepath.Join("..", ".."))) {
		t.Error(violation)
	}
}

func TestNameRuleCanFail(t *testing.T) {
	t.Parallel()
	for text, bad := range map[string]int{
		"`TestThere` and `FuzzThere`": 0, "`TestGone`": 1, "all of `TestLong...`": 0, "TestGone in prose": 0, "[`TestThere`, `TestGone`]": 1,
	} {
		files := []file{{"a.md", text}, {"a_test.go", "package a\n\nfunc TestThere(t *testing.T) {}\n\nfunc FuzzThere(f *testing.F) {}\n"}}
		if got := unknownTests(files); len(got) != bad {
			t.Errorf("%q: %q, want %d", text, got, bad)
		}
	}
}
