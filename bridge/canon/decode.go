package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Decode fills v from a file of our own, which is one JSON value: members that v
// does not have are refused, and so is anything after the value. Unlike Parse it
// takes a name twice, and nesting of any depth: who can write the file has no need
// of either.
func Decode(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the content")
	}
	return nil
}
