package evalview

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestRead(t *testing.T) {
	for _, row := range []struct {
		text           string
		isError        bool
		result         string
		said           []string
		failed, denied bool
	}{
		{`{"result": 7, "logs": ["a"], "notes": ["b"]}`, false, "7", []string{"a", "b"}, false, false},
		{`{"error": {"name": "TypeError"}}`, true, "", []string{"it failed"}, true, false},
		{`{"error": {"name": "ToolCallDeniedError"}}`, true, "", []string{"it failed"}, true, true},
	} {
		got, err := Read(&mcp.CallToolResult{IsError: row.isError, StructuredContent: json.RawMessage(row.text), Content: []mcp.Content{&mcp.TextContent{Text: "it failed"}}})
		if err != nil || string(got.Result) != row.result || !slices.Equal(got.Said, row.said) || got.Failed != row.failed || got.Denied != row.denied {
			t.Errorf("%s: %+v, %v", row.text, got, err)
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
