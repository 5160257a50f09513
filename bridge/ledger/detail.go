package ledger

import "encoding/json"

// Detail is v as JSON for Record.Detail. A type of which there is no JSON is a
// mistake in the program.
func Detail(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("ledger: writing the detail of a record: " + err.Error())
	}
	return text
}
