package login

import (
	"strings"
	"time"
)

// Describe says of a login what a person wants to know.
func (i Info) Describe() string {
	text := "does not say when it expires"
	if !i.Expires.IsZero() {
		text = "expires " + i.Expires.Local().Format(time.DateTime)
	}
	if i.Renews {
		text += ", renews itself"
	}
	if len(i.Scopes) > 0 {
		text += ", scopes " + strings.Join(i.Scopes, " ")
	}
	if i.Keyring {
		text += ", kept in the keyring"
	}
	return text
}
