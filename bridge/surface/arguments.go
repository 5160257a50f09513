package surface

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"codemode-bridge/bridge/canon"
)

// ReadArguments reads a tool's arguments strictly: what the tool does not take is
// an error and not ignored.
func ReadArguments(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	// encoding/json takes what is doubled, and what is spelt in another case.
	if _, err := canon.Parse(raw); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			if wrong.Field == "" {
				return fmt.Errorf("the arguments must be an object, not a %s", wrong.Value)
			}
			return fmt.Errorf("%q must be a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
		}
		return errors.New(unprefixed(err))
	}
	return exactKeys(raw, into)
}

// exactKeys refuses keys that encoding/json took for a field of into although
// they are spelt in another case.
func exactKeys(raw json.RawMessage, into any) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return err
	}
	t := reflect.TypeOf(into).Elem()
	for key := range keys {
		if !slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("json") == key }) {
			return fmt.Errorf("unknown field %q", key)
		}
	}
	return nil
}

// unprefixed is an error of encoding/json without the package's name.
func unprefixed(err error) string {
	text := err.Error()
	if len(text) > 6 && text[:6] == "json: " {
		return text[6:]
	}
	return text
}
