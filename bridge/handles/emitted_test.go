package handles

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestEmitted(t *testing.T) {
	image := func(name string) mcp.Content { return &mcp.ImageContent{MIMEType: name} }
	var e Emitted
	for _, row := range []struct {
		call, size int
		refused    bool
	}{{3, 1, false}, {1, maxEmittedBytes - 1, false}, {2, 1, true}} {
		if err := e.Add(row.call, image(string(rune('0'+row.call))), row.size); (err != nil) != row.refused {
			t.Errorf("call %d: %v", row.call, err)
		}
	}
	if diff := cmp.Diff([]mcp.Content{image("1"), image("3")}, e.Content()); diff != "" {
		t.Errorf("in the order of the calls (-want +got):\n%s", diff)
	}
}

// What a run is not to show is attached to nothing, and no later script reads it.
func TestEmittedIsWithheld(t *testing.T) {
	store := New(time.Now)
	before := store.Put(Item{Text: "another run's"})
	shelf := store.Shelf("r1")
	text, media := shelf.Put(Item{Text: "text"}), shelf.Put(Item{Text: "aGk=", Base64: true, Block: json.RawMessage(`{"type":"image","data":"aGk=","mimeType":"image/png"}`)})
	var e Emitted
	e.Saw(shelf.Made)
	if err := e.Add(1, &mcp.ImageContent{}, 1); err != nil {
		t.Fatal(err)
	}
	e.Withhold(store)
	if len(e.Content()) != 0 || e.Note([]byte(`{"handle":"`+media.Handle+`"}`), true) != "" {
		t.Errorf("it still has %v", e.Content())
	}
	for id, there := range map[string]bool{before.Handle: true, text.Handle: false, media.Handle: false} {
		if _, err := store.Read("r1", id, ""); (err == nil) != there {
			t.Errorf("%s is there: %v, want %v", id, err, there)
		}
	}
	if want := len("another run's"); store.bytes != want {
		t.Errorf("the store counts %d bytes, want %d", store.bytes, want)
	}
}
