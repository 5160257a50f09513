package canon

import (
	"slices"
	"strings"
	"testing"
)

func TestHides(t *testing.T) {
	o := DisplayOptions{Hidden: map[string]string{"ssn": "", "api-host": "<host>"}}
	for name, want := range map[string]bool{
		"ssn": true, "SSN": true, "\u017Fsn": true, "S_S_N": true, "apiHost": true, "password": true, "pa\u017F\u017Fword": true, "to\u212Aen": true, "P\u0131N_code": true,
		"host": false, "name": false, "": false, strings.Repeat("x", 5000): false, strings.Repeat("x", 5000) + "_password": true,
	} {
		if got := o.Hides(name); got != want {
			t.Errorf("%.40q is hidden: %v", name, got)
		}
	}
}

func TestHiddenTexts(t *testing.T) {
	args, err := Parse([]byte(`{"ssn":"123-45","a":[{"SSN":12345,"b":"shown"}],"password":"built in","pin":"12",
		"pairs":[{"name":"ssn","value":"678-90"},{"name":"other","value":"shown"}],"Pin":{"inner":["secret","x",true,null,{"deeper":"too"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := DisplayOptions{Hidden: map[string]string{"ssn": "", "pin": ""}}.HiddenTexts(args)
	slices.Sort(got)
	want := []string{"123-45", "12345", "678-90", "deeper", "inner", "secret"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestClip(t *testing.T) {
	for _, row := range []struct {
		text string
		most int
		want string
	}{
		{"short", 100, "short"},
		{strings.Repeat("x", 100), 100, strings.Repeat("x", 100)},
		{strings.Repeat("x", 101), 100, strings.Repeat("x", 60) + "… 41 bytes left out"},
		{strings.Repeat("é", 100), 101, strings.Repeat("é", 30) + "… 140 bytes left out"},
		{strings.Repeat("…", 1000), 100, strings.Repeat("…", 20) + "… 2,940 bytes left out"},
	} {
		if got := Clip(row.text, row.most); got != row.want || len(got) > row.most {
			t.Errorf("got %q of %d bytes, want %q", got, len(got), row.want)
		}
	}
}
