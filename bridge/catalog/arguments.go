package catalog

import (
	"bytes"
	"encoding/json"
)

// Arguments returns the names of the tool's arguments in the order in which its server
// wrote them into the schema, which is the one that people expect; none if the schema
// lists none.
func (d Definition) Arguments() []string {
	decoder := json.NewDecoder(bytes.NewReader(d.Input))
	properties, ok := member(decoder, "properties")
	if !ok {
		return nil
	}
	decoder = json.NewDecoder(bytes.NewReader(properties))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var names []string
	for decoder.More() {
		name, err := decoder.Token()
		var skipped json.RawMessage
		if err != nil || decoder.Decode(&skipped) != nil {
			return nil
		}
		if text, ok := name.(string); ok {
			names = append(names, text)
		}
	}
	return names
}

// member reads an object up to the value of a key.
func member(d *json.Decoder, key string) (value json.RawMessage, ok bool) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil || d.Decode(&value) != nil {
			return nil, false
		}
		if name == key {
			return value, true
		}
	}
	return nil, false
}
