package known

import (
	"slices"
	"strings"
	"unicode"
)

// Repository returns the name under which the repository is kept that a call of the
// server names; empty if it names none.
func (r Reading) Repository(server string) string {
	var parts []string
	for _, v := range r.Values {
		if v.Role == Place && (v.Param == "owner" || v.Param == "repo" || v.Param == "project_id") {
			parts = append(parts, v.Param+" "+strings.ToLower(v.Text))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "repository of " + server + " " + strings.Join(parts, ", ")
}

// Orders reports whether the words on what is pressed on a page say that it is paid for.
// Words can only raise a risk: a page may call its button anything.
func (r Reading) Orders() bool {
	return slices.ContainsFunc(r.Values, func(v Value) bool {
		return v.Role == Place && slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(v.Text), func(c rune) bool { return !unicode.IsLetter(c) }),
			func(word string) bool { return slices.Contains(paying, word) })
	})
}

var paying = strings.Fields(`buy pay order purchase checkout book reserve subscribe donate
	kaufen zahlen bezahlen bestellen buchen reservieren kostenpflichtig zahlungspflichtig verbindlich
	acheter payer commander réserver comprar pagar pedir reservar acquista paga ordina prenota kopen betalen bestel`)

// Besides reports whether a call says more to a host than the address in that argument:
// it has text to send there, or names another host on the way.
func (r Reading) Besides(args map[string]any, param string) bool {
	own, _, _ := strings.Cut(param, ".")
	for name, v := range args {
		role := r.Tool.Args[name]
		if name != own && v != nil && (role == Content || role == Host || role == PathOrHost) {
			return true
		}
	}
	return false
}
