package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/ledger"
	"codemode-bridge/profiles"
)

// A Reader asks upstream servers for what they have besides tools, by the methods
// of package catalog. Read returns the result of one method, with lists as one page;
// its errors are like those of a Caller. Offers returns the servers that support a
// method.
type Reader interface {
	Read(ctx context.Context, server, identity, method string, args json.RawMessage) (json.RawMessage, error)
	Offers(method string) []string
}

// read makes a call that is not a tool's, and returns the result in the form of a
// tool's answer.
func (g *Gate) read(ctx context.Context, view *View, r *Run, c *call) (json.RawMessage, error) {
	if g.reader == nil {
		return nil, errNoReader
	}
	if c.tool.Server == "" {
		return g.readAll(ctx, view, r, c)
	}
	reply, err := g.reader.Read(ctx, c.tool.Server, c.identity, c.tool.Name, c.args.Bytes())
	if err != nil {
		return nil, err
	}
	if c.tool.Name == catalog.ReadResource {
		return contents(reply)
	}
	if member := listMember[c.tool.Name]; member != "" {
		entries, rest, err := listed(c.tool.Server, member, reply)
		if err != nil {
			return nil, err
		}
		return structured(map[string]any{member: entries}, rest)
	}
	return structured(nil, map[string]json.RawMessage{"": reply})
}

var errNoReader = errors.New("resources and prompts are unavailable here")

// listMember is where the result of a list has its entries.
var listMember = map[string]string{
	catalog.ListResources: "resources", catalog.ListTemplates: "resourceTemplates", catalog.ListPrompts: "prompts",
}

// A skipped server is one whose part of a list is missing.
type skipped struct {
	Server string `json:"server"`
	Why    string `json:"why"`
}

// readAll asks every server that has such a list. Servers that the profile hides are
// not even named.
func (g *Gate) readAll(ctx context.Context, view *View, r *Run, c *call) (json.RawMessage, error) {
	type part struct {
		call    *call
		entries []json.RawMessage
		err     error
	}
	var parts []*part
	for _, server := range g.reader.Offers(c.tool.Name) {
		if !mayKnow(r, view, server, c.tool.Name) {
			continue
		}
		identity, ok := view.Identities[server]
		if !ok && view.Identities != nil {
			continue // it has come since
		}
		tool, _ := catalog.Method(server + "__" + c.tool.Name)
		one := &call{Call: c.Call, gate: g, tool: tool, identity: identity, args: c.args, counted: true} // with c
		r.decide(view, one)
		parts = append(parts, &part{call: one})
	}
	var asking sync.WaitGroup
	for _, p := range parts {
		asking.Go(func() { p.entries, p.err = g.listOne(ctx, r, p.call) })
	}
	asking.Wait()
	all, missing := []json.RawMessage{}, []skipped{}
	for _, p := range parts {
		all = append(all, p.entries...)
		if p.err != nil {
			missing = append(missing, skipped{p.call.tool.Server, canon.Escape(p.err.Error())})
		}
	}
	result := map[string]any{listMember[c.tool.Name]: all}
	if len(missing) > 0 {
		result["skipped"] = missing
	}
	return structured(result, nil)
}

// listOne reads the list of one server on behalf of a call that asks all of them.
// It is treated like a call of its own: it is checked, and its intent and outcome
// are recorded. Nobody is asked: a list that would need a person is skipped, like
// one that policy denies, and the error says why.
func (g *Gate) listOne(ctx context.Context, r *Run, c *call) ([]json.RawMessage, error) {
	if why := r.skips(c); why != nil {
		rec := c.record(ledger.Refusal)
		rec.Outcome, rec.Error, rec.Durable = ledger.Refused, why.Error(), true
		return nil, errors.Join(why, r.record(context.WithoutCancel(ctx), rec))
	}
	if err := r.record(ctx, c.intent()); err != nil {
		return nil, errPartUnrecorded
	}
	started := g.now()
	reply, err := g.reader.Read(ctx, c.tool.Server, c.identity, c.tool.Name, c.args.Bytes())
	var entries []json.RawMessage
	if err == nil {
		r.remember(c, reply)
		entries, _, err = listed(c.tool.Server, listMember[c.tool.Name], reply)
	} else {
		data{r}.failed(c, err)
	}
	rec := c.record(ledger.Outcome)
	rec.Outcome, rec.Duration, rec.Received = ledger.Done, g.now().Sub(started), len(reply)
	if err != nil {
		rec.Outcome, rec.Error = ledger.Failed, canon.Escape(r.redact(err.Error()))
	}
	if r.record(context.WithoutCancel(ctx), rec) != nil {
		return nil, errPartUnrecorded
	}
	return entries, err
}

// errPartUnrecorded is why a server's part of a list is missing when the audit
// log cannot be written.
var errPartUnrecorded = errors.New("its record could not be written")

// skips says why the list of one server is not read for a call that asks all of
// them; nil if it is.
func (r *Run) skips(c *call) error {
	if err := c.moved(r, r.gate.View().Identities[c.tool.Server]); err != nil {
		return err
	}
	switch c.decision.Disposition {
	case profiles.Allow:
	case profiles.Ask:
		return fmt.Errorf("policy wants it asked for by itself (%s)", c.decision.Because())
	default:
		return fmt.Errorf("policy denies it (%s)", c.decision.Because())
	}
	if failed := r.check(r.gate.View(), c); failed != "" {
		return fmt.Errorf("the check %s failed", failed)
	}
	return nil
}

// listed returns the entries of a list, each with the name of its server, and the
// list's other members.
func listed(server, member string, reply json.RawMessage) (entries []json.RawMessage, rest map[string]json.RawMessage, err error) {
	var list map[string]json.RawMessage
	if err = json.Unmarshal(reply, &list); err == nil {
		err = json.Unmarshal(list[member], &entries)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the list of server %s: %w", server, err)
	}
	name, err := json.Marshal(server)
	if err != nil {
		return nil, nil, err
	}
	named := []json.RawMessage{}
	for _, entry := range entries {
		var fields map[string]json.RawMessage
		if json.Unmarshal(entry, &fields) != nil || fields == nil {
			continue // no entry
		}
		fields["server"] = name // overwrites one that the server itself may have put there
		delete(fields, "_meta")
		delete(fields, "icons")
		text, err := json.Marshal(fields)
		if err != nil {
			return nil, nil, err
		}
		named = append(named, text)
	}
	delete(list, member)
	for key := range list {
		if key != "cut" {
			delete(list, key)
		}
	}
	return named, list, nil
}

// structured returns an answer of structured content: these members and those of
// rest, or the one of rest that has no name.
func structured(members map[string]any, rest map[string]json.RawMessage) (json.RawMessage, error) {
	var content any = members
	for name, value := range rest {
		if name == "" {
			content = value
			break
		}
		members[name] = value
	}
	return json.Marshal(map[string]any{"content": []any{}, "structuredContent": content})
}

// contents returns the answer of resources/read: text as text, everything else as
// media.
func contents(reply json.RawMessage) (json.RawMessage, error) {
	var result struct {
		Contents []json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal(reply, &result); err != nil {
		return nil, fmt.Errorf("reading the resource: %w", err)
	}
	blocks := []any{}
	for _, raw := range result.Contents {
		var r Resource
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("reading the resource: %w", err)
		}
		kind, _, _ := strings.Cut(r.MIMEType, "/")
		switch {
		case r.Text != nil:
			blocks = append(blocks, map[string]string{"type": "text", "text": *r.Text})
		case kind == "image" || kind == "audio":
			blocks = append(blocks, map[string]string{"type": kind, "data": r.Blob, "mimeType": r.MIMEType})
		default:
			blocks = append(blocks, map[string]any{"type": "resource", "resource": raw})
		}
	}
	return json.Marshal(map[string]any{"content": blocks})
}
