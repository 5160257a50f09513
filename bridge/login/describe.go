package login

import (
	"strings"
	"time"
)

// Describe returns what a person wants to know about a login.
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
	if i.Shared {
		text += ", kept in the store"
	}
	return text
}
