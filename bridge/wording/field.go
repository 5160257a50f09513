package wording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/approval"
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
	// Role is recipient, path, host, command, amount or place if the argument says
	// whom or what the call is about; of a tool that is not known, by its name.
	Role string `json:"role,omitempty"`
	// Hidden counts the parts that are hidden as secrets. Cut reports that the
	// request itself holds less than will be sent.
	Hidden int  `json:"hidden,omitempty"`
	Cut    bool `json:"cut,omitempty"`

	value string // as JSON on one line
	key   string // the whole name, in the form of canon.Display
	text  string // as much of a text as the request holds
	mark  bool   // the text is what a rule shows in place of the value
	here  string // the paths from the workspace's folder, in place of text or value
	home  bool   // it is the workspace's folder
}

// longField is the number of characters up to which a value is short.
const longField = 60

func (f Field) long() bool { return len(f.Lines) > 1 || f.Characters > longField }

// A DescribedCall is one call of a request.
type DescribedCall struct {
	Number int `json:"number"` // within its run
	// Tool is server__tool where the calls of a request are of several tools.
	Tool string `json:"tool,omitempty"`
	// Planned reports that the call is not made yet: the script will make it.
	Planned bool `json:"planned,omitempty"`
	// Fields are the arguments: first those with a role, then the others in the order
	// of the tool's schema, or if that is not known short ones before long ones.
	Fields []Field `json:"fields"`
	Hidden int     `json:"hidden,omitempty"` // values, and parts of texts, that are hidden
	Cut    int     `json:"cut,omitempty"`    // places where the request holds less than will be sent
	// Sources say which bytes the run has read before, and where.
	Sources []string `json:"sources,omitempty"`
	Line    int      `json:"line,omitempty"` // of the script

	reads []phrase // those of Sources that are sentences of ours
}

// describeCall lists a call's arguments, those that say whom or what it is about
// first: no text can push a recipient out of sight. Marks are the texts that rules
// show in place of what they hide.
func describeCall(i approval.Item, marks map[string]string) DescribedCall {
	c := DescribedCall{Number: i.Call, Planned: i.Planned, Fields: fieldsOf(i.Shown.JSON), Hidden: i.Shown.Hidden, Cut: i.Shown.Cut, Line: i.Position.Line}
	for _, s := range i.Sources {
		c.Sources = append(c.Sources, canon.Escape(s))
	}
	for n, r := range i.Reads {
		same := func(o approval.Read) bool { return o.Call == r.Call && o.From == r.From }
		if !slices.ContainsFunc(i.Reads[:n], same) {
			p := readSaid(slices.DeleteFunc(slices.Clone(i.Reads), func(o approval.Read) bool { return !same(o) }))
			c.Sources, c.reads = append(c.Sources, p.plain), append(c.reads, p)
		}
	}
	for n := range c.Fields {
		f := &c.Fields[n]
		if rank := rankOf(i.About, f.key); rank < len(tellingRoles) {
			f.Role = tellingRoles[rank]
		}
		if i.Shown.Hidden > 0 && f.Text && f.Hidden == 0 && isMark(f.text, marks) {
			f.Hidden, f.mark = 1, true
		}
		f.bringHome(i.About.Facts)
	}
	sortFields(i, c.Fields)
	return c
}

// bringHome has dialogs show paths in the workspace from its folder on, where that is
// how they end.
func (f *Field) bringHome(facts []approval.Fact) {
	if f.Hidden > 0 || f.Cut {
		return
	}
	within := map[string]string{}
	for _, fact := range facts {
		if fact.Role == "path" && fact.Inside && fact.Within != "" && fact.Doubt == "" {
			within[fact.Param] = filepath.ToSlash(canon.Escape(fact.Within))
		}
	}
	ends := func(text, with string) bool {
		text = filepath.ToSlash(text)
		return with != "" && (text == with || strings.HasSuffix(text, "/"+with))
	}
	var list []string
	switch name := canon.Escape(f.key); {
	case f.Text && within[name] == ".":
		f.home = true
	case f.Text && ends(f.text, within[name]):
		f.here = within[name]
	case !f.Text && json.Unmarshal([]byte(f.value), &list) == nil && len(list) > 0:
		var literals []string
		for n, text := range list {
			with := within[name+"."+strconv.Itoa(n)]
			if !ends(text, with) {
				return
			}
			literals = append(literals, canon.Literal(with))
		}
		f.here = "[" + strings.Join(literals, ",") + "]"
	}
}

// isMark reports whether a text is what a rule shows in place of what it hides.
func isMark(text string, marks map[string]string) bool {
	for _, mark := range marks {
		if mark != "" && text == canon.Escape(mark) {
			return true
		}
	}
	return false
}

// sortFields puts the arguments of a call in the order in which a person reads them.
func sortFields(i approval.Item, fields []Field) {
	place := make(map[string]int, len(i.Order))
	for n, name := range i.Order {
		place[canon.Escape(name)] = n
	}
	type rank struct{ role, name int }
	ranks := make(map[string]rank, len(fields))
	for _, f := range fields {
		ranks[f.key] = rank{rankOf(i.About, f.key), guessed(f.key).at}
	}
	slices.SortStableFunc(fields, func(a, b Field) int {
		x, known := place[a.key]
		y, too := place[b.key]
		byRole := cmp.Compare(ranks[a.key].role, ranks[b.key].role)
		switch {
		case byRole != 0:
			return byRole
		case known && too:
			return cmp.Compare(x, y)
		case known != too && known:
			return -1
		case known != too:
			return 1
		case ranks[a.key].role < len(tellingRoles):
			return cmp.Or(cmp.Compare(ranks[a.key].name, ranks[b.key].name), natural(a.key, b.key))
		case a.long() != b.long() && b.long():
			return -1
		case a.long() != b.long():
			return 1
		}
		return natural(a.key, b.key)
	})
}

// natural compares names as people count: field2 comes before field10.
func natural(a, b string) int {
	stemA, numberA := splitNumber(a)
	stemB, numberB := splitNumber(b)
	if stemA != stemB {
		return strings.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(len(numberA), len(numberB)), strings.Compare(numberA, numberB))
}

func splitNumber(name string) (stem, number string) {
	stem = strings.TrimRight(name, "0123456789")
	return stem, strings.TrimLeft(name[len(stem):], "0")
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

// units splits the value into characters as a person reads them; of what is not a
// text, those of its JSON.
func (f Field) units() []string {
	switch {
	case f.mark:
		return []string{hiddenUnit + "(hidden here: " + theirs(f.text) + ")"}
	case f.Text && f.here != "":
		return units(f.here)
	case f.Text:
		return unitsHiding(f.text)
	default:
		return unitsHiding(canon.Escape(f.json()))
	}
}

// inJSON reports whether a code span of the value is its JSON; otherwise it is of a
// text, which for a value that is none is the JSON itself.
func (f Field) inJSON() bool { return f.Text || f.Hidden == 0 }

// quoted writes the value on one line of about width columns, for a page or a
// terminal: in quotes, without code spans.
func (f Field) quoted(width int) string {
	if !f.Text && f.Hidden == 0 {
		return clipShare(f.json(), width, f.endShare())
	}
	return clipShare(spanned(f.units(), func(s string) string { return s }), width, f.endShare())
}

// whole writes the value in a code span, or several around what is hidden.
func (f Field) whole() string {
	if f.Hidden == 0 {
		return canon.Span(f.json())
	}
	return span(f.units())
}

// name writes the argument's name as a dialog shows it.
func (f Field) name() string {
	name := string(called(f.key))
	if columns(name) > maxFieldName+len("``") {
		name = clipped(f.key, maxFieldName+len("`` (10,000 characters left out) ``"))
	}
	return name
}

// within writes the value on one line of about width columns, and reports whether it
// is all there. If it is cut, the line says how long the value is.
func (f Field) within(width int) (text string, whole bool) {
	begin := ""
	if !f.inJSON() {
		begin = "JSON: "
	}
	if all := begin + f.whole(); columns(all) <= width && !(f.Text && f.Cut) {
		return all, true
	}
	all, size := f.units(), ""
	switch {
	case !f.Text:
		size = f.items() + canon.Counted(utf8.RuneCountInString(f.json()), "character")
	case f.Cut:
		size = canon.Counted(f.Characters, "character")
	default:
		size = canon.Counted(len(all), "character")
		if len(f.Lines) > 1 {
			size += ", " + canon.Counted(len(f.Lines), "line")
		}
	}
	begin = size + ": "
	if f.Text && f.Cut {
		return begin + beginning(all, width-columns(begin)), false
	}
	return begin + endsWith(all, width-columns(begin), f.endShare(), func(int) string { return cutMark }, cutMark), false
}

// endShare is the end's share of what is kept of a value that is too long.
func (f Field) endShare() float64 {
	if f.Role == "path" {
		return 2.0 / 3 // it ends with the file's name
	}
	return 1.0 / 3
}

// items says how many elements a list has, or that the value is JSON of another kind.
func (f Field) items() string {
	var list []json.RawMessage
	if !strings.HasPrefix(f.value, "[") || f.Cut || json.Unmarshal([]byte(f.value), &list) != nil {
		return "JSON, "
	}
	return canon.Counted(len(list), "item") + ", "
}

// line writes the argument with its name.
func (f Field) line(begin string, width int) string {
	begin += f.name() + ": "
	text, _ := f.within(width - columns(begin))
	return begin + text
}

// json returns the value as JSON on one line.
func (f Field) json() string {
	switch {
	case f.here != "" && f.Text:
		return canon.Literal(f.here)
	case f.here != "":
		return f.here
	}
	if f.Text {
		return canon.Literal(f.text)
	}
	return canon.LiteralJSON([]byte(f.value))
}

// oneLine writes the value on one line: a text that cannot be mistaken for
// anything else as it is, everything else as JSON.
func (f Field) oneLine() string {
	if f.here != "" && plainText(f.here) {
		return f.here
	}
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

// readSaid is what was read of one answer, in words.
func readSaid(reads []approval.Read) phrase {
	var all phrase
	for n, r := range reads {
		one := say("%s of %s", ours(canon.Counted(r.Characters, "character")), argument(r.Param))
		if r.Whole {
			one = say("all %s", one)
		}
		switch {
		case n == 0:
			all = one
		case n == len(reads)-1:
			all = say("%s and %s", all, one)
		default:
			all = say("%s, %s", all, one)
		}
	}
	from := say("%s", canon.Escape(reads[0].From))
	if tool, of, ok := strings.Cut(canon.Escape(reads[0].From), " "); ok && identifier.MatchString(tool) {
		from = say("%s of %s", named(tool), phrase{of, theirsWithin(of, promptWidth+promptWidth/3)})
		from.plain = canon.Escape(reads[0].From)
	} else if !ok {
		from.dialog = named(tool).dialog
	}
	return say("%s were read in call %d from %s", all, reads[0].Call, from)
}
