package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"
	"unicode/utf8"

	"codemode-bridge/bridge/upstream/tap"

	"github.com/gobwas/glob"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds on one listing. Whatever exceeds them is left out, and that is logged.
const (
	maxTools      = 100_000
	maxPages      = 10_000
	maxEmptyPages = 10 // in a row
	maxListing    = 64 << 20
	maxToolName   = 256
)

// listPatience bounds a listing after the first.
const listPatience = time.Minute

// list asks the server for its tools, page by page.
func (s *session) list(ctx context.Context, log *slog.Logger) ([]Tool, error) {
	var (
		tools   []Tool
		names   = map[string]bool{}
		cursors = map[string]bool{}
		keep    = newFilter(s.spec, log)
		cursor  string
		size    int
		empty   int
	)
	stopped := func(why string) ([]Tool, error) {
		log.Warn("listing of the server's tools cut", "why", why, "tools", len(tools))
		return tools, nil
	}
	for page := 1; ; page++ {
		x := tap.NewExchange(ctx, nil, withHeaders)
		raw, err := s.request(ctx, x, func(ctx context.Context) error {
			_, err := s.client.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			return err
		})
		x.End()
		var answered *jsonrpc.Error
		if errors.As(err, &answered) && answered.Code == jsonrpc.CodeMethodNotFound && page == 1 {
			if s.declaresTools() {
				return nil, errUnlisted
			}
			return nil, nil // a server without tools
		}
		if err != nil {
			return nil, fmt.Errorf("listing its tools: %w", s.listError(ctx, err))
		}
		var array []byte
		next := ""
		err = tap.Members(raw, func(key string, value []byte) error {
			switch key {
			case "tools":
				array = value
			case "nextCursor":
				_ = json.Unmarshal(value, &next)
			}
			return nil
		})
		if err == nil && array == nil {
			err = errors.New("the answer has no tools")
		}
		count := 0
		if err == nil {
			err = tap.Elements(array, func(definition []byte) error {
				count++
				tool, err := parseTool(definition)
				switch {
				case err != nil:
					s.tap.Drop(err.Error(), definition)
				case names[tool.Name]:
					s.tap.Drop("a second tool of one name", definition)
				case !keep.keeps(tool.Name):
				case len(tools) < maxTools:
					names[tool.Name] = true
					tools = append(tools, tool)
				}
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("listing its tools: %w", err)
		}
		size += len(raw)
		if empty++; count > 0 {
			empty = 0
		}
		switch {
		case next == "":
			return tools, nil
		case cursors[next]:
			return stopped("the cursor repeats")
		case len(tools) >= maxTools:
			return stopped("more than " + strconv.Itoa(maxTools) + " tools")
		case page >= maxPages:
			return stopped("more than " + strconv.Itoa(maxPages) + " pages")
		case empty >= maxEmptyPages:
			return stopped("pages without tools")
		case size >= maxListing:
			return stopped("more than " + tap.Size(maxListing))
		}
		cursors[next] = true
		cursor = next
	}
}

// declaresTools reports whether the server said at the handshake that it has
// tools.
func (s *session) declaresTools() bool {
	r := s.client.InitializeResult()
	return r != nil && r.Capabilities != nil && r.Capabilities.Tools != nil
}

// listError says why a listing failed.
func (s *session) listError(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errConnectTimeout):
		return &shownError{text: fmt.Sprintf("no answer within %v", s.spec.Limits.connectTimeout()), err: cause}
	case errors.Is(cause, errListTimeout):
		return &shownError{text: fmt.Sprintf("no answer within %v", listPatience), err: cause}
	case cause != nil:
		return cause
	}
	if large := (tap.TooLargeError{}); errors.As(err, &large) {
		return err
	}
	if s.tap.Refused() != 0 || s.isLost(err) {
		return s.explain(err)
	}
	if answered := (*jsonrpc.Error)(nil); errors.As(err, &answered) {
		text := fmt.Sprintf("the server answered with error %d: %s", answered.Code, s.shown.show(answered.Message, tap.MaxMessage))
		return &shownError{text: text, err: err}
	}
	return s.shown.showError(err)
}

// withHeaders makes the stand-in for a page: the SDK gets only the tools whose schemas
// say that some arguments are also sent as HTTP headers, since it sets those headers.
func withHeaders(page []byte) []byte {
	annotation := []byte(`"x-mcp-header"`)
	out := []byte(`{"tools":[`)
	if bytes.Contains(page, annotation) {
		_ = tap.Members(page, func(key string, value []byte) error {
			if key != "tools" {
				return nil
			}
			return tap.Elements(value, func(tool []byte) error {
				if bytes.Contains(tool, annotation) && json.Unmarshal(tool, new(mcp.Tool)) == nil {
					if out[len(out)-1] != '[' {
						out = append(out, ',')
					}
					out = append(out, tool...)
				}
				return nil
			})
		})
	}
	return append(out, "]}"...)
}

// parseTool reads one tool of a list. It refuses a tool that cannot be named
// unambiguously. Other oddities are kept, except that members of a wrong type are
// left out.
func parseTool(definition []byte) (Tool, error) {
	var t Tool
	var title string
	seen := map[string]bool{}
	err := tap.Members(definition, func(key string, value []byte) error {
		if seen[key] {
			return fmt.Errorf("a tool with two members %q", tap.Escape(key, tap.MaxName))
		}
		seen[key] = true
		switch key {
		case "name":
			return json.Unmarshal(value, &t.Name)
		case "title":
			_ = json.Unmarshal(value, &t.Title)
		case "description":
			_ = json.Unmarshal(value, &t.Description)
		case "inputSchema":
			t.Input = bytes.Clone(value)
		case "outputSchema":
			t.Output = bytes.Clone(value)
		case "annotations":
			_ = tap.Members(value, func(key string, value []byte) error {
				switch key {
				case "title":
					_ = json.Unmarshal(value, &title)
				case "readOnlyHint":
					t.ReadOnly = boolean(value)
				case "destructiveHint":
					t.Destructive = boolean(value)
				case "idempotentHint":
					t.Idempotent = boolean(value)
				case "openWorldHint":
					t.OpenWorld = boolean(value)
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return Tool{}, err
	}
	if t.Title == "" {
		t.Title = title
	}
	return t, checkName(t.Name)
}

func boolean(value []byte) *bool {
	switch string(value) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	}
	return nil
}

// checkName refuses names that cannot be shown or told apart: empty, too long, or with
// unprintable characters. Characters that are merely unusual in names are the concern
// of whoever makes names for scripts.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a tool without a name")
	case len(name) > maxToolName:
		return fmt.Errorf("a tool with a name of more than %d bytes", maxToolName)
	}
	for _, r := range name {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return errors.New("a tool with characters in its name that do not print")
		}
	}
	return nil
}

// A filter is the Allow and Deny of a Spec.
type filter struct{ allow, deny []*glob.Pattern }

func newFilter(spec Spec, log *slog.Logger) filter {
	compile := func(patterns []string, inDoubt string) []*glob.Pattern {
		var globs []*glob.Pattern
		for _, pattern := range patterns {
			g, err := glob.Compile(pattern)
			if err != nil {
				// The config's reader refuses these; if one gets here, the tools are
				// left out.
				log.Warn("tool pattern is not legal", "pattern", pattern, "err", err)
				g = glob.MustCompile(inDoubt)
			}
			globs = append(globs, g)
		}
		return globs
	}
	return filter{allow: compile(spec.Allow, ""), deny: compile(spec.Deny, "*")}
}

func (f filter) keeps(name string) bool {
	allowed := len(f.allow) == 0
	for _, g := range f.allow {
		allowed = allowed || g.Match(name)
	}
	for _, g := range f.deny {
		allowed = allowed && !g.Match(name)
	}
	return allowed
}
