package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"codemode-bridge/bridge/canon"
)

// MaxText bounds each text and each JSON value of a record, in bytes, so that
// scripts and servers cannot fill the log through any writer of records. A longer
// one is cut, with a count of what is left out. A run's Script and Preview may be
// as long as the script, since a run has only one.
const MaxText = 2 << 10

// maxDetail bounds the JSON value of an event without fields of its own; it may
// contain several texts.
const maxDetail = 4 * MaxText

// bounded returns r with everything that is too long cut.
func (r Record) bounded() Record {
	for _, text := range []*string{
		(*string)(&r.Event), &r.Run, &r.Session, &r.Client, &r.Profile, &r.Trace, &r.Server, &r.Tool, &r.Digest, &r.Disposition, &r.Risk, &r.Revision,
		&r.Request, &r.Approver, &r.OnBehalfOf, &r.Comment, &r.Channel, &r.Answer, &r.Outcome, &r.Error, &r.Name, &r.ScriptHash,
		&r.Configuration, &r.Principal, &r.TraceID, &r.Identity, &r.EditedDigest, &r.EditedBy, &r.Grant, &r.Box, &r.Looked, &r.Would,
	} {
		*text = canon.Clip(*text, MaxText)
	}
	r.Reasons = slices.Clone(r.Reasons) // they are the caller's
	for i, reason := range r.Reasons {
		r.Reasons[i] = canon.Clip(reason, MaxText)
	}
	for _, value := range []*json.RawMessage{&r.Args, &r.EditedArgs, &r.Input} {
		*value = boundedJSON(*value, MaxText)
	}
	r.Detail = boundedJSON(r.Detail, maxDetail)
	return r
}

// boundedJSON cuts the texts in a JSON value, and drops the value if that is not
// enough. Text that is not JSON is left alone: it cannot be written anyway.
func boundedJSON(value json.RawMessage, most int) json.RawMessage {
	if len(value) <= MaxText {
		return value
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var tree any
	if !json.Valid(value) || d.Decode(&tree) != nil {
		return value
	}
	if cut, err := json.Marshal(clipTexts(tree)); err == nil && len(cut) <= most {
		return cut
	}
	return fmt.Appendf(nil, `{"…":"%d bytes left out"}`, len(value))
}

// clipTexts cuts the texts in a tree of JSON.
func clipTexts(v any) any {
	switch v := v.(type) {
	case string:
		return canon.Clip(v, MaxText)
	case []any:
		for i := range v {
			v[i] = clipTexts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = clipTexts(v[name])
		}
	}
	return v
}
