package handles

import (
	"testing"

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
