package values

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// The messages are those of V8, Node 22.
func TestParseMessage(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "Unexpected end of JSON input",
		"[1,":                                 "Unexpected end of JSON input",
		"[1,]":                                `Unexpected token ']', "[1,]" is not valid JSON`,
		"nope":                                `Unexpected token 'o', "nope" is not valid JSON`,
		"Error: no such file!":                `Unexpected token 'E', "Error: no such file!" is not valid JSON`,
		"<html><body>not found</body></html>": `Unexpected token '<', "<html><bod"... is not valid JSON`,
		`{"a":1,"b":2,"c":oops,"d":4,"e":5}`:  `Unexpected token 'o', ...""b":2,"c":oops,"d":4"... is not valid JSON`,
		`{"aaaaaaaaaa":1,"bbbbbbbbbb":oops}`:  `Unexpected token 'o', ..."bbbbbbbb":oops}" is not valid JSON`,
		"{'a':1}":                             "Expected property name or '}' in JSON at position 1 (line 1 column 2)",
		`{"a":1,}`:                            "Expected double-quoted property name in JSON at position 7 (line 1 column 8)",
		"{\n\"a\" 1}":                         "Expected ':' after property name in JSON at position 6 (line 2 column 5)",
		`{"a":1 "b":2}`:                       "Expected ',' or '}' after property value in JSON at position 7 (line 1 column 8)",
		`[1 2]`:                               "Expected ',' or ']' after array element in JSON at position 3 (line 1 column 4)",
		`{}x`:                                 "Unexpected non-whitespace character after JSON at position 2 (line 1 column 3)",
		`"abc`:                                "Unterminated string in JSON at position 4 (line 1 column 5)",
		"\"a\nb\"":                            "Bad control character in string literal in JSON at position 2 (line 1 column 3)",
		`"\x"`:                                "Bad escaped character in JSON at position 2 (line 1 column 3)",
		`-`:                                   "No number after minus sign in JSON at position 1 (line 1 column 2)",
		`1.`:                                  "Unterminated fractional number in JSON at position 2 (line 1 column 3)",
		`1e`:                                  "Exponent part is missing a number in JSON at position 2 (line 1 column 3)",
		"01":                                  "Unexpected number in JSON at position 1 (line 1 column 2)",
		"[tru]":                               `Unexpected token ']', "[tru]" is not valid JSON`,
		"undefined":                           `"undefined" is not valid JSON`,
	} {
		d := decoder{r: New(goja.New(), 0, nil), s: text, numbers: true}
		_, err := d.decode()
		if err == nil {
			t.Errorf("%q is taken for JSON", text)
		} else if got := parseMessage(text, err.(*jsonError)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// FuzzParseMessage holds that JSON.parse takes what encoding/json takes, and
// has words for the rest.
func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3]}`, `"\ud800"`, `[1,]`, `{`, "é", `{"é":`, `01`, "\"\x01\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > 1000 {
			return
		}
		d := decoder{r: New(goja.New(), 0, nil), s: text, numbers: true}
		_, err := d.decode()
		if valid := json.Valid([]byte(text)); valid != (err == nil) {
			t.Fatalf("%q: %v, but valid is %v", text, err, valid)
		}
		if err != nil {
			if m := parseMessage(text, err.(*jsonError)); !strings.Contains(m, "JSON") || !utf8.ValidString(m) {
				t.Errorf("%q: %q", text, m)
			}
		}
	})
}
