package ledger

import "encoding/json"

// Detail encodes v as JSON for Record.Detail. It panics if v's type has no JSON
// form, which is a mistake in the program.
func Detail(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("ledger: writing the detail of a record: " + err.Error())
	}
	return text
}
