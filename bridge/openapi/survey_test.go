package openapi

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A document that would keep the library busy for hours, or overflow the stack, is
// refused before the library sees it.
func TestDocumentsThatNeverEnd(t *testing.T) {
	document := func(schemas string) string {
		return strings.TrimSuffix(referring("#/components/schemas/S0"), "}") + `,"components":{"schemas":{` + schemas + `}}}`
	}
	nest := func(n int, inner string) string { return strings.Repeat(`{"not":`, n) + inner + strings.Repeat("}", n) }
	chain := func(n int, to func(i int) string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"S%d":{"$ref":%q}`, i, to(i+1)))
		}
		return strings.Join(append(all, fmt.Sprintf(`"S%d":{"type":"string"}`, n)), ",")
	}
	here := func(i int) string { return fmt.Sprintf("#/components/schemas/S%d", i) }
	var through, long []string // with references on the way, and with long ways between them
	for i := range 60 {
		through = append(through, fmt.Sprintf(`"S%d":{"$ref":"#/components/schemas/A%d/properties/x"},"A%d":{"$ref":"#/components/schemas/B%d"},"B%d":{"properties":{"x":{"$ref":"#/components/schemas/S%d"}}}`, i, i, i, i, i, i+1))
	}
	for i := range maxWay / 80 {
		long = append(long, fmt.Sprintf(`"S%d":%s`, i, nest(85, fmt.Sprintf(`{"$ref":"#/components/schemas/S%d"}`, i+1))))
	}
	numbers := "openapi: 3.0.0\ninfo: {title: t, version: '1'}\npaths: {}\ncomponents:\n  schemas:\n"
	for i := range 60 {
		numbers += fmt.Sprintf("    %d: {$ref: '#/components/schemas/%d'}\n", i, i+1)
	}
	for _, row := range []struct{ name, content, other, want string }{
		{"nesting", document(`"S0":` + nest(maxNesting, "{}")), "", "nested more than 100 deep"},
		{"nesting by aliases", "openapi: 3.0.0\na: &a " + nest(60, "{}") + "\nb: " + nest(60, "*a") + "\npaths: {}\n", "", "nested more than 100 deep"},
		{"a chain", document(chain(60, here)), "", "leads to another, and so on"},
		{"a circle", document(`"S0":{"$ref":"#/components/schemas/S1"},"S1":{"$ref":"#/components/schemas/S0"}`), "", "leads to another, and so on"},
		{"a growing one", document(`"S0":{"$ref":"#/components/schemas/S0/x"}`), "", "leads to another, and so on"},
		{"a chain through others", document(strings.Join(through, ",")), "", "leads to another, and so on"},
		{"a chain of numbers", numbers, "", "leads to another, and so on"},
		{"a chain between files", document(chain(60, func(i int) string { return "other.json" + here(i) })),
			`{"components":{"schemas":{` + chain(60, func(i int) string { return "it.json" + here(i) }) + `}}}`, "leads to another, and so on"},
		{"a long way", document(strings.Join(long, ",")), "", "lead too far"},
		{"no harm", document(chain(maxHops-5, here) + `,"T":` + nest(80, `{"$ref":"#/components/schemas/T"}`)), "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "other.json"), row.other)
			_, err := New(t.Context(), Options{Document: write(t, filepath.Join(dir, "it.json"), row.content), BaseURL: "https://example.com"})
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}
