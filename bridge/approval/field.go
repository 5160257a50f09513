package approval

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/canon"
)

// A Field is one argument of a call.
type Field struct {
	// Name is the argument's name, in quotes unless it is a plain word: no
	// name can look like a name and its value.
	Name string `json:"name"`
	// Lines are as much of the value as the request holds; see Cut. A tab is
	// written as four spaces.
	Lines []string `json:"lines"`
	// Text reports that the value is a text with these Lines; otherwise they are
	// JSON.
	Text bool `json:"text"`
	// Characters counts the characters of a text, including those left out here.
	Characters int `json:"characters"`
	// Hidden counts the parts that are hidden as secrets. Cut reports that the
	// request itself holds less than will be sent.
	Hidden int  `json:"hidden,omitempty"`
	Cut    bool `json:"cut,omitempty"`

	value string // as JSON on one line
	key   string // the whole name, in the form of canon.Display
	text  string // as much of a text as the request holds
}

// longField is the number of characters up to which a value is short.
const longField = 60

func (f Field) long() bool { return len(f.Lines) > 1 || f.Characters > longField }

// A DescribedCall is one call of a request.
type DescribedCall struct {
	Number int `json:"number"` // within its run
	// Tool is server__tool where the calls of a request are of several tools.
	Tool string `json:"tool,omitempty"`
	// Fields are the arguments: short ones first, otherwise in the order given.
	Fields []Field `json:"fields"`
	Hidden int     `json:"hidden,omitempty"` // values, and parts of texts, that are hidden
	Cut    int     `json:"cut,omitempty"`    // places where the request holds less than will be sent
	// Sources say which bytes the run has read before, and where.
	Sources []string `json:"sources,omitempty"`
	Line    int      `json:"line,omitempty"` // of the script
}

// describeCall lists a call's arguments, long ones after short ones, so that no
// text can push a recipient out of sight.
func describeCall(i Item) DescribedCall {
	c := DescribedCall{Number: i.Call, Fields: fieldsOf(i.Shown.JSON), Hidden: i.Shown.Hidden, Cut: i.Shown.Cut, Line: i.Position.Line}
	for _, s := range i.Sources {
		c.Sources = append(c.Sources, canon.Escape(s))
	}
	slices.SortStableFunc(c.Fields, func(a, b Field) int {
		switch {
		case a.long() == b.long():
			return 0
		case b.long():
			return -1
		default:
			return 1
		}
	})
	return c
}

// fieldsOf reads arguments in display form.
func fieldsOf(shown []byte) []Field {
	d := json.NewDecoder(bytes.NewReader(shown))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		f := jsonField("arguments", shown)
		f.key = f.Name
		return []Field{f}
	}
	fields := []Field{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		var text string
		key, _ := name.(string)
		f := jsonField(fieldName(key), value)
		if value[0] == '"' && json.Unmarshal(value, &text) == nil {
			f = textField(fieldName(key), text, value)
		}
		f.key = key
		fields = append(fields, f)
	}
	return fields
}

// leftOut matches the mark that canon.Display writes where it left something
// out. Arguments cannot contain it: their own "…" is escaped.
var leftOut = regexp.MustCompile(`… ([0-9,]+) characters? in all$`)

func textField(name, text string, value []byte) Field {
	f := Field{Name: name, Text: true, Characters: utf8.RuneCountInString(text), Hidden: strings.Count(text, "[hidden"), value: flat(value)}
	if m := leftOut.FindStringSubmatch(text); m != nil {
		f.Cut = true
		f.Characters, _ = strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
		text, f.value = strings.TrimSuffix(text, m[0]), strings.TrimSuffix(f.value, m[0]+`"`)
	}
	f.text, f.Lines = text, strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n")
	return f
}

func jsonField(name string, value []byte) Field {
	f := Field{Name: name, Characters: utf8.RuneCount(value), Hidden: bytes.Count(value, []byte("[hidden")), Cut: bytes.ContainsRune(value, '…'), value: flat(value)}
	f.Lines = []string{f.value}
	var spread bytes.Buffer
	if f.Characters > longField && json.Indent(&spread, value, "", "  ") == nil {
		f.Lines = strings.Split(spread.String(), "\n")
	}
	return f
}

// flat puts JSON in display form on one line: without white space between its
// tokens, and within them only escaped.
func flat(value []byte) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(string(value))
}

// oneLine writes the value on one line: a text that cannot be mistaken for
// anything else as it is, everything else as JSON.
func (f Field) oneLine() string {
	if f.Text && len(f.Lines) == 1 && plainText(f.Lines[0]) {
		return f.Lines[0]
	}
	return f.value
}

// plainText reports whether a text can be shown without quotes: it cannot be read
// as JSON, and no run of spaces sets a part of it apart.
func plainText(s string) bool {
	return s != "" && s != "true" && s != "false" && s != "null" && !strings.Contains(s, "  ") && s[0] != ' ' && s[len(s)-1] != ' ' &&
		!strings.ContainsRune(`"{[-0123456789`, rune(s[0]))
}

const plainLetters = "_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// fieldName writes an argument's name, in quotes unless it is a plain word.
func fieldName(key string) string {
	if key != "" && len(key) <= maxFieldName && strings.Trim(key, plainLetters) == "" {
		return key
	}
	var quoted strings.Builder
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false) // <, > and & are shown as they are
	if e.Encode(key) != nil {
		return "?"
	}
	// The name was decoded from display form, in which all but line feeds and tabs
	// is visible; those are escaped again now.
	return clipMiddle(strings.TrimSuffix(quoted.String(), "\n"), maxFieldName)
}

const maxFieldName = 24

// unseen reports whether canon had to escape characters of the field, other than
// the backslashes and marks that it escapes only for clarity.
func (f Field) unseen() bool {
	for _, line := range append(f.Lines[:len(f.Lines):len(f.Lines)], f.Name) {
		for _, form := range escapes.FindAllString(line, -1) {
			if form != `\u{5C}` && form != `\u{5B}` && form != `\u{2026}` {
				return true
			}
		}
	}
	return false
}
