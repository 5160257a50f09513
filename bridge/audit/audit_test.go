package audit

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"codemode-bridge/bridge/ledger"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the texts that tests compare with anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC // output is in the reader's zone
	os.Exit(m.Run())
}

// rowsOf returns records as a store would.
func rowsOf(records ...ledger.Record) Rows {
	return func(yield func(ledger.Row, error) bool) {
		for i, r := range records {
			if !yield(ledger.Row{Seq: int64(i + 1), Record: r}, nil) {
				return
			}
		}
	}
}

// broken are rows that end with an error.
func broken(err error) Rows {
	return func(yield func(ledger.Row, error) bool) { yield(ledger.Row{}, err) }
}

// readRecords reads records in JSON, one on each line.
func readRecords(t *testing.T, data []byte) []ledger.Record {
	t.Helper()
	var all []ledger.Record
	for line := range strings.Lines(string(data)) {
		var r ledger.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

// golden runs print over every file of a folder and compares the output with the golden
// files.
func golden(t *testing.T, pattern string, print func(t *testing.T, records []ledger.Record, out *bytes.Buffer)) {
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files match %s: %v", len(names), pattern, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil || len(a.Files) != 2 {
				t.Fatalf("%d files, %v", len(a.Files), err)
			}
			var out bytes.Buffer
			print(t, readRecords(t, a.Files[0].Data), &out)
			switch {
			case bytes.Equal(out.Bytes(), a.Files[1].Data):
			case *update:
				a.Files[1].Data = out.Bytes()
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("got\n%s\nwant\n%s", out.String(), a.Files[1].Data)
			}
		})
	}
}

func TestTimeline(t *testing.T) {
	golden(t, "testdata/timeline/*.txtar", func(t *testing.T, records []ledger.Record, out *bytes.Buffer) {
		line, err := ReadTimeline(rowsOf(records...))
		if err != nil {
			t.Fatal(err)
		}
		if err := line.Write(out); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTimelineOfNothing(t *testing.T) {
	if line, err := ReadTimeline(rowsOf()); line != nil || err != nil {
		t.Errorf("got %v, %v", line, err)
	}
	gone := errors.New("gone")
	if _, err := ReadTimeline(broken(gone)); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestSameTool(t *testing.T) {
	for _, row := range []struct {
		name, path string
		want       bool
	}{
		{"fs__read", "fs__read", true},
		{"fs__get_sum", "fs__get-sum", true},
		{"fs__get_sum_976f78", "fs__get-sum", true},
		{"fs__get_summary", "fs__get-sum", false},
		{"fs__read2", "fs__read", false},
		{"search_tools", "search_tools", true},
	} {
		if got := sameTool(row.name, row.path); got != row.want {
			t.Errorf("%s is %s: %v", row.name, row.path, got)
		}
	}
}

// filled is a record in which every text field is text and no number is zero.
func filled(event ledger.Event, text string) ledger.Record {
	var r ledger.Record
	v := reflect.ValueOf(&r).Elem()
	raw, err := json.Marshal(map[string]string{"v": text})
	if err != nil {
		panic(err)
	}
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case string:
			f.SetString(text)
		case json.RawMessage:
			f.SetBytes(raw)
		case []string:
			f.Set(reflect.ValueOf([]string{text, text}))
		case int:
			f.SetInt(int64(i + 1000))
		case time.Duration:
			f.SetInt(int64(i+1000) * int64(time.Millisecond))
		case time.Time:
			f.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
		case bool:
			f.SetBool(true)
		case *bool:
			f.Set(reflect.ValueOf(new(bool)))
		case []ledger.SourceMatch:
			f.Set(reflect.ValueOf([]ledger.SourceMatch{{Call: 7, Argument: text, Offset: 12, Length: 28, Labels: []string{text}}}))
		}
	}
	r.Event = event
	return r
}

var events = []ledger.Event{
	ledger.RunStarted, ledger.RunEnded, ledger.Preview, ledger.Intent, ledger.Outcome, ledger.Refusal, ledger.Asked, ledger.Verdict,
	ledger.Granted, ledger.Revoked, ledger.ConfigChanged, ledger.BridgeStarted, ledger.BridgeEnded, ledger.Pruned, ledger.Repaired, "unheard_of",
}

// hostile draws text that some reader could take for mark-up, a formula or a control
// sequence.
func hostile(t *rapid.T) string {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{"=cmd|' /C calc'!A0", "\x1b[2J", "\u202e", "\r\n", "\n", "|", "=", "\\", "\"", ",", "-1+1", "@SUM(1)", "<script>", "[a](javascript:x)", "https://x.example", "`", "\u009b", "\x00", "\t=1", " =1", "＝1", "\u2028", "CEF:0|", "a=b", "![x](y)", "|---|", "**"}),
		rapid.String(),
	)
	return strings.Join(rapid.SliceOfN(part, 1, 5).Draw(t, "parts"), "")
}

func TestLineIsInert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := filled(rapid.SampledFrom(events).Draw(t, "event"), hostile(t))
		if line := Line(r); strings.ContainsFunc(line, unseen) {
			t.Errorf("%q has what a terminal obeys", line)
		}
	})
}

// unseen reports whether r is invisible, or could control a terminal.
func unseen(r rune) bool {
	return unicode.Is(unicode.C, r) || r == '\u2028' || r == '\u2029'
}

func TestLines(t *testing.T) {
	seen := map[string]bool{}
	for _, event := range events {
		line := Line(filled(event, "text"))
		if line == "" || seen[line] {
			t.Errorf("%s is %q", event, line)
		}
		seen[line] = true
	}
}

func TestTheLineOfAnAnswerSaysWhose(t *testing.T) {
	r := ledger.Record{Event: ledger.Answered, Request: "q5d2mxk7wan", Approver: "ann", Channel: "page", Answer: "no, declined", Error: "not today"}
	if got, want := Line(r), "  request q5d2mxk7wan no, declined by ann (page): not today"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Only a configuration that is in force reads as taken over.
func TestLinesOfConfigurations(t *testing.T) {
	for want, r := range map[string]ledger.Record{
		"configuration taken over: profile p changed":                           {Outcome: ledger.Done, Reasons: []string{"profile p changed"}},
		"configuration refused: config.json:3:7: a comma is missing":            {Outcome: ledger.Refused, Error: "config.json:3:7: a comma is missing", Approver: "ann"},
		"configuration waits for an approver: profile p: its default is looser": {Outcome: ledger.ConfigPending, Reasons: []string{"profile p: its default is looser"}},
		"configuration confirmed by ann: profile p: its default is looser":      {Outcome: ledger.ConfigPending, Reasons: []string{"profile p: its default is looser"}, Approver: "ann", Detail: json.RawMessage(`{"confirm":"9f2c","said":""}`)},
		"configuration rejected by ann: profile p: its default is looser":       {Outcome: ledger.ConfigPending, Reasons: []string{"profile p: its default is looser"}, Approver: "ann", Detail: json.RawMessage(`{"reject":"9f2c","said":""}`)},
		"configuration edited by ann, not taken over yet":                       {Approver: "ann", Detail: json.RawMessage(`{"edit":"profiles","was":"one"}`)},
	} {
		r.Event = ledger.ConfigChanged
		if got := Line(r); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// An answer that did not count must not read like one that let a call pass.
func TestLinesOfWhatDoesNotCount(t *testing.T) {
	for want, r := range map[string]ledger.Record{
		"  #3 mail__send yes, once by ann (api) does not count: it was settled before: bob said no at 14:41:07": {
			Event: ledger.Verdict, Call: 3, Server: "mail", Tool: "send", Answer: "yes, once", Approver: "ann", Channel: "api",
			Outcome: ledger.Refused, Error: "it was settled before: bob said no at 14:41:07"},
		"  #3 mail__send yes, once by bob (page): as agreed": {
			Event: ledger.Verdict, Call: 3, Server: "mail", Tool: "send", Disposition: "ask", Answer: "yes, once", Approver: "bob", Channel: "page", Error: "as agreed"},
		"session s1 is put under profile strict, by ada": {
			Event: ledger.ConfigChanged, Session: "s1", Profile: "strict", Reasons: []string{"session s1 is put under profile strict"}, Approver: "ada"},
		"not done: session s1 is put under profile x, by ada: there is no profile": {
			Event: ledger.ConfigChanged, Session: "s1", Reasons: []string{"session s1 is put under profile x"}, Approver: "ada", Outcome: ledger.Refused, Error: "there is no profile"},
	} {
		if got := Line(r); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestExportCSV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := filled(rapid.SampledFrom(events).Draw(t, "event"), hostile(t))
		var out bytes.Buffer
		if n, err := Export(&out, rowsOf(r, r), CSV, "1"); n != 2 || err != nil {
			t.Fatalf("%d rows, %v", n, err)
		}
		read, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(read) != 3 {
			t.Fatalf("%d lines, %v", len(read), err)
		}
		for i, cell := range read[1] {
			if strings.ContainsFunc(cell, unseen) {
				t.Errorf("%s is %q", read[0][i], cell)
			}
			if trimmed := strings.TrimLeft(cell, " \"'\t"); trimmed != "" && strings.ContainsRune("=+-@|%＝＋－＠", []rune(trimmed)[0]) && cell[0] != '\'' {
				t.Errorf("%s is a formula: %q", read[0][i], cell)
			}
		}
	})
}

func TestExportHasEveryField(t *testing.T) {
	r := filled("everything", "x")
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.String {
			v.Field(i).SetString("text of " + v.Type().Field(i).Name)
		}
	}
	for _, format := range []Format{JSONLines, CSV} {
		var out bytes.Buffer
		if _, err := Export(&out, rowsOf(r), format, "1"); err != nil {
			t.Fatal(err)
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			want := fmt.Sprint(v.Field(i).Interface())
			switch x := v.Field(i).Interface().(type) {
			case time.Duration:
				if want = millis(x); format == JSONLines {
					want = fmt.Sprint(int64(x))
				}
			case time.Time:
				want = "1970-01-01T00:00:01Z"
			case []string:
				want = "x"
			case *bool:
				want = fmt.Sprint(*x)
			case []ledger.SourceMatch:
				want = map[Format]string{JSONLines: `"offset":12,"length":28`, CSV: "x[12:40] of call 7 (x)"}[format]
			case json.RawMessage:
				want = "v"
			}
			if f.Tag.Get("json") != "-" && !strings.Contains(out.String(), want) {
				t.Errorf("%s has no %s", format, f.Name)
			}
		}
	}
}

func TestExportCEF(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := filled(rapid.SampledFrom(events).Draw(t, "event"), hostile(t))
		var out bytes.Buffer
		if _, err := Export(&out, rowsOf(r), CEF, "1|2"); err != nil {
			t.Fatal(err)
		}
		line, ok := strings.CutSuffix(out.String(), "\n")
		if !ok || strings.ContainsFunc(line, unseen) {
			t.Fatalf("%q is not one line", out.String())
		}
		head, rest, escaped := 0, "", false
		for i, c := range line {
			switch {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '|':
				if head++; head == 7 {
					rest = line[i+1:]
				}
			}
			if head == 7 {
				break
			}
		}
		if head != 7 {
			t.Fatalf("the head of %q has %d fields", line, head)
		}
		// Every = that is not escaped stands behind one of our own keys.
		for i := range len(rest) {
			if rest[i] != '=' || i > 0 && oddBackslashes(rest[:i]) {
				continue
			}
			key := rest[strings.LastIndexByte(rest[:i], ' ')+1 : i]
			if !cefKeys[key] {
				t.Errorf("%q is a key in %q", key, rest)
			}
		}
	})
}

func oddBackslashes(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

var cefKeys = map[string]bool{
	"rt": true, "externalId": true, "act": true, "outcome": true, "suser": true, "sourceServiceName": true, "destinationServiceName": true, "reason": true,
	"cs1": true, "cs1Label": true, "cs2": true, "cs2Label": true, "cs3": true, "cs3Label": true, "cs4": true, "cs4Label": true, "cs5": true, "cs5Label": true,
	"cs6": true, "cs6Label": true, "cn1": true, "cn1Label": true, "out": true, "in": true,
}

func TestExportFails(t *testing.T) {
	gone := errors.New("gone")
	for _, format := range Formats {
		if _, err := Export(&bytes.Buffer{}, broken(gone), format, "1"); !errors.Is(err, gone) {
			t.Errorf("%s: %v", format, err)
		}
	}
	if _, err := Export(&bytes.Buffer{}, rowsOf(), "xml", "1"); err == nil {
		t.Error("there is a format xml")
	}
}
