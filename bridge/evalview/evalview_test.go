package evalview

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestRead(t *testing.T) {
	for _, row := range []struct {
		text    string
		isError bool
		want    Answer
	}{
		{`{"result": 7, "logs": ["a"], "notes": ["b"]}`, false, Answer{Result: json.RawMessage("7"), Said: []string{"a", "b"}}},
		{`{"error": {"name": "TypeError"}}`, true, Answer{Said: []string{"it failed"}, Failed: true}},
		{`{"error": {"name": "ToolCallDeniedError"}}`, true, Answer{Said: []string{"it failed"}, Failed: true, Denied: true}},
	} {
		row.want.Whole = json.RawMessage(row.text)
		got, err := Read(&mcp.CallToolResult{IsError: row.isError, StructuredContent: json.RawMessage(row.text), Content: []mcp.Content{&mcp.TextContent{Text: "it failed"}}})
		if diff := cmp.Diff(row.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", row.text, err, diff)
		}
	}
	for _, content := range []any{nil, json.RawMessage(`[`)} {
		if _, err := Read(&mcp.CallToolResult{StructuredContent: content}); err == nil {
			t.Errorf("%s is an answer", content)
		}
	}
}

func TestWriteMedia(t *testing.T) {
	content := []mcp.Content{
		&mcp.TextContent{Text: "no medium"}, &mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{Text: "text", MIMEType: "text/plain"}}, &mcp.AudioContent{Data: []byte("x"), MIMEType: "odd"},
	}
	var out strings.Builder
	if err := WriteMedia(&out, content, ""); err != nil || !strings.HasPrefix(out.String(), "media 1: image/png, 3 bytes (--media FOLDER writes it)\n") {
		t.Errorf("without a folder: %q, %v", out.String(), err)
	}
	folder := filepath.Join(t.TempDir(), "media")
	if err := WriteMedia(&out, content, folder); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"media-1.png": "png", "media-2.txt": "text", "media-3.bin": "x"} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
