package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Decode fills v from a file of our own, which is one JSON value: members that v
// does not have are refused, and so is anything after the value. Unlike Parse it
// accepts names that occur twice and nesting of any depth: whoever can write the file
// gains nothing by them.
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
