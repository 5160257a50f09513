package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"
)

// huge is a record all of whose texts have 3.9 MB, but for Script and Preview.
func huge() Record {
	long := strings.Repeat("é", 3_900_000/2)
	var r Record
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		switch name, f := v.Type().Field(i).Name, v.Field(i); {
		case name == "Script" || name == "Preview":
		case f.Kind() == reflect.String:
			f.SetString(long)
		case f.Type() == reflect.TypeFor[json.RawMessage]():
			f.SetBytes([]byte(`{"a":"` + long + `"}`))
		}
	}
	r.Reasons = []string{long, "short"}
	return r
}

func TestTextsOfRecordsAreBounded(t *testing.T) {
	racing.Alone(t)
	r := huge()
	body, err := Encode(r, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(kept)
	for i := range v.NumField() {
		name, text := v.Type().Field(i).Name, ""
		switch f := v.Field(i); {
		case name == "Script" || name == "Preview" || name == "Journal":
			continue
		case f.Kind() == reflect.String:
			text = f.String()
		case f.Type() == reflect.TypeFor[json.RawMessage]():
			text = string(f.Bytes())
		case name == "Reasons":
			text = kept.Reasons[0]
		default:
			continue
		}
		if len(text) > maxDetail || !strings.Contains(text, " bytes left out") {
			t.Errorf("%s has %d bytes: %.80q", name, len(text), text)
		}
	}
	if want := "… 3,897,992 bytes left out"; !strings.HasSuffix(kept.Error, want) || !strings.HasPrefix(kept.Error, "éé") || len(kept.Error) > MaxText {
		t.Errorf("the error has %d bytes and ends in %q, want %q", len(kept.Error), kept.Error[len(kept.Error)-40:], want)
	}
	if r.Reasons[0] == kept.Reasons[0] || kept.Reasons[1] != "short" {
		t.Error("the reasons of the record that was given are changed, or a short one is")
	}
	var line bytes.Buffer
	if err := (Log{slog.NewJSONHandler(&line, nil)}).Record(context.Background(), huge()); err != nil || line.Len() > 100_000 {
		t.Errorf("a line of %d bytes, %v", line.Len(), err)
	}
}

func TestJSONOfRecordsIsBounded(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, row := range []struct{ name, detail, want string }{
		{"a short one", `{"b":1,"a":12345678901234567890}`, `{"b":1,"a":12345678901234567890}`},
		{"a long text", `{"n":12345678901234567890,"said":["` + long + `"]}`, `{"n":12345678901234567890,"said":["` + long[:2008] + `… 992 bytes left out"]}`},
		{"many short ones", `["` + strings.Repeat(`a","`, 3000) + `a"]`, `{"…":"12005 bytes left out"}`},
	} {
		body, err := Encode(Record{Detail: json.RawMessage(row.detail)}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if kept, err := Decode(body); err != nil || string(kept.Detail) != row.want {
			t.Errorf("%s: kept as %s, %v", row.name, kept.Detail, err)
		}
	}
	if _, err := Encode(Record{Detail: json.RawMessage(`{"a":"` + long)}, time.Now); err == nil {
		t.Error("a detail that is no JSON was written")
	}
}

// A script is kept whole, up to what a record may have.
func TestScriptsAreNotCut(t *testing.T) {
	script := strings.Repeat("// a comment\n", 10_000)
	body, err := Encode(Record{Script: script}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := Decode(body); err != nil || kept.Script != script {
		t.Errorf("%d bytes are kept of %d, %v", len(kept.Script), len(script), err)
	}
}
