package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"codemode-bridge/bridge/upstream/tap"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The methods that [Set.Read] takes, named as MCP does.
const (
	listResources = "resources/list"
	listTemplates = "resources/templates/list"
	readResource  = "resources/read"
	listPrompts   = "prompts/list"
	getPrompt     = "prompts/get"
)

// listed are the members of a result in which listing methods return their entries.
var listed = map[string]string{listResources: "resources", listTemplates: "resourceTemplates", listPrompts: "prompts"}

// Bounds on lists of things other than tools. A longer list is cut and says so in its
// member "cut". Its bytes are bounded by Limits.MaxReply.
const (
	maxEntries    = 10_000
	maxEntryPages = 200
)

// A job is one thing to ask a server: a call of one of its tools, or a method of Read.
type job struct {
	name   string
	args   json.RawMessage
	method bool
}

// do does one job in the session and classifies its failure. again reports that
// the server did not read the request because the session had ended before.
func (s *session) do(ctx context.Context, j job) (result json.RawMessage, again bool, failure *Error) {
	if !j.method {
		return s.call(ctx, j.name, j.args)
	}
	if err := offers(s.capabilities(), s.spec, j.name); err != nil {
		return nil, false, &Error{Kind: UnknownTool, Err: err}
	}
	x := newExchange(ctx)
	defer x.End()
	s.listen(ctx, clientOf(ctx))
	var err error
	if member := listed[j.name]; member != "" {
		result, err = s.listAll(ctx, x, j.name, member)
	} else {
		result, err = s.answered(ctx, x, func(ctx context.Context, answers mcp.InputResponseMap, state string) error {
			return s.readOne(ctx, x, j, answers, state)
		})
	}
	if err == nil {
		return result, false, nil
	}
	failure = s.classify(ctx, x, err)
	return nil, x.Unread() || !failure.Sent && ctx.Err() == nil && s.isLost(err), failure
}

// offers says why a server with such capabilities does not have what a method asks
// for; nil if it does and Allow and Deny permit it.
func offers(caps mcp.ServerCapabilities, spec Spec, method string) error {
	switch method {
	case listResources, listTemplates, readResource:
		if caps.Resources == nil {
			return errors.New("the server has no resources")
		}
	case listPrompts, getPrompt:
		if caps.Prompts == nil {
			return errors.New("the server has no prompts")
		}
	default:
		return fmt.Errorf("%s is not to be asked of a server", tap.Escape(method, tap.MaxName))
	}
	if !newFilter(spec, slog.New(slog.DiscardHandler)).keeps(method) {
		return fmt.Errorf("%s is left out by the tools that the configuration allows of the server", method)
	}
	return nil
}

// readOne makes one request that is no list.
func (s *session) readOne(ctx context.Context, x *tap.Exchange, j job, answers mcp.InputResponseMap, state string) error {
	var args struct {
		URI       string            `json:"uri"`
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := json.Unmarshal(j.args, &args); err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}
	if j.name == readResource {
		params := &mcp.ReadResourceParams{URI: args.URI, InputResponses: answers, RequestState: state}
		s.prepare(x, params, &params.Meta)
		_, err := s.client.ReadResource(ctx, params)
		return err
	}
	params := &mcp.GetPromptParams{Name: args.Name, Arguments: args.Arguments, InputResponses: answers, RequestState: state}
	s.prepare(x, params, &params.Meta)
	_, err := s.client.GetPrompt(ctx, params)
	return err
}

// listAll asks for the pages of a list and joins them.
func (s *session) listAll(ctx context.Context, x *tap.Exchange, method, member string) (json.RawMessage, error) {
	var all [][]byte
	var size int64
	cursor, cut := "", false
	cursors := map[string]bool{}
	for page := 1; ; page++ {
		raw, err := s.request(ctx, x, func(ctx context.Context) error {
			var err error
			switch method {
			case listResources:
				_, err = s.client.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			case listTemplates:
				_, err = s.client.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
			case listPrompts:
				_, err = s.client.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			}
			return err
		})
		var refused *jsonrpc.Error
		if errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound && page == 1 {
			break // a server without templates, mostly
		}
		if err != nil {
			return nil, err
		}
		next := ""
		err = tap.Members(raw, func(key string, value []byte) error {
			switch key {
			case member:
				return tap.Elements(value, func(entry []byte) error {
					if size += int64(len(entry)); len(all) >= maxEntries || size > s.spec.Limits.maxReply() {
						cut = true
						return nil
					}
					all = append(all, bytes.Clone(entry))
					return nil
				})
			case "nextCursor":
				_ = json.Unmarshal(value, &next)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the list: %w", err)
		}
		if next == "" || cut {
			break
		}
		if cut = cursors[next] || page >= maxEntryPages; cut {
			break
		}
		cursors[next] = true
		cursor = next
	}
	out := []byte(`{"` + member + `":[`)
	out = append(append(out, bytes.Join(all, []byte(","))...), ']')
	if cut {
		out = append(out, `,"cut":true`...)
	}
	return append(out, '}'), nil
}
