// Package evalview takes the answer of an eval tool apart for the command line: the
// result, the logs and notes beside it, and the media that the script emitted.
package evalview

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"

	"codemode-bridge/bridge/canon"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An Answer is the answer of an eval tool.
type Answer struct {
	Whole  json.RawMessage
	Result json.RawMessage // nil if there is none
	// Said are the logs and notes, or the text of the error. The script wrote them:
	// escape them before they reach a terminal.
	Said []string
	// Failed is set if the script failed, Denied if that was because a call was denied.
	Failed, Denied bool
}

// Read reads an answer.
func Read(result *mcp.CallToolResult) (Answer, error) {
	raw, ok := result.StructuredContent.(json.RawMessage)
	if !ok {
		return Answer{}, errors.New("the answer holds nothing")
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Logs   []string        `json:"logs"`
		Notes  []string        `json:"notes"`
		Error  struct {
			Name string `json:"name"`
		} `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return Answer{}, fmt.Errorf("reading the answer: %w", err)
	}
	if !result.IsError {
		return Answer{Whole: raw, Result: answer.Result, Said: append(answer.Logs, answer.Notes...)}, nil
	}
	a := Answer{Whole: raw, Failed: true, Denied: answer.Error.Name == "ToolCallDeniedError"}
	if len(result.Content) > 0 {
		if text, ok := result.Content[0].(*mcp.TextContent); ok {
			a.Said = []string{text.Text}
		}
	}
	return a, nil
}

// WriteMedia writes emitted media to files in dir and says so on out; with dir empty, it
// only says what there is.
func WriteMedia(out io.Writer, content []mcp.Content, dir string) error {
	n := 0
	for _, c := range content {
		var data []byte
		var kind string
		switch c := c.(type) {
		case *mcp.ImageContent:
			data, kind = c.Data, c.MIMEType
		case *mcp.AudioContent:
			data, kind = c.Data, c.MIMEType
		case *mcp.EmbeddedResource:
			data, kind = c.Resource.Blob, c.Resource.MIMEType
			if len(data) == 0 {
				data = []byte(c.Resource.Text)
			}
		default:
			continue
		}
		n++
		if dir == "" {
			fmt.Fprintf(out, "media %d: %s, %d bytes (--media FOLDER writes it)\n", n, canon.Escape(kind), len(data))
			continue
		}
		name := filepath.Join(dir, fmt.Sprintf("media-%d%s", n, extension(kind)))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("writing media: %w", err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return fmt.Errorf("writing media: %w", err)
		}
		fmt.Fprintf(out, "media %d: %s\n", n, name)
	}
	return nil
}

// extension is the usual ending of files of a media type.
func extension(kind string) string {
	switch kind {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "text/plain":
		return ".txt"
	}
	if all, err := mime.ExtensionsByType(kind); err == nil && len(all) > 0 {
		return all[0]
	}
	return ".bin"
}
