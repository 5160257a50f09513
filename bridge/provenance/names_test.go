package provenance

import (
	"encoding/json"
	"testing"

	"codemode-bridge/bridge/canon"
)

// A proper name is found though it is short, in the sources that count alone.
func TestNames(t *testing.T) {
	var m Memory
	m.Read(Source{Call: 1, Server: "files"}, json.RawMessage(`{"content":[{"type":"text","text":"1,Gesine Albers,1961-04-02; Li Xu; data residency in Bad Ems"}]}`))
	for text, want := range map[string]int{
		"who is Gesine Albers":       1,
		"Gesine Albers":              1,
		"who is Gesine Alberts":      0,
		"gesine albers":              0,
		"Gesine":                     0,
		"Li Xu":                      0, // too short to tell
		"data residency":             0,
		"Gesine Albers and Li Bo Xu": 1,
	} {
		arg, _ := json.Marshal(map[string]string{"q": text})
		args, err := canon.Parse(arg)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Names(args, func(s Source) bool { return s.Server == "files" }); len(got) != want {
			t.Errorf("%s: found %v, want %d", text, got, want)
		}
		if got := m.Names(args, func(s Source) bool { return s.Server == "web" }); len(got) != 0 {
			t.Errorf("%s: found %v in a source that does not count", text, got)
		}
	}
}
