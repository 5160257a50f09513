// Package replica knows the bridges that share a store: how each is called, which of them
// are alive by the store's clock, and whether this one still is.
package replica

import (
	"crypto/rand"
	"os"
	"strings"
)

const (
	maxMachine = 20 // bytes of a machine's name in that of a replica
	randomPart = 10 // letters and digits, 5 bits each
)

// NewName makes the name of this process among the bridges that share its store. It
// begins with the machine's, which a load balancer may go by, and no other process ever
// has it: a bridge that is started again is another replica.
func NewName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "" // a name needs no machine
	}
	return named(host, rand.Text())
}

func named(host, random string) string {
	return machine(host) + "-" + strings.ToLower(random[:randomPart])
}

// machine is the first label of a host's name, as far as it may be in a replica's name.
func machine(host string) string {
	label, _, _ := strings.Cut(host, ".")
	kept := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		default:
			return '-'
		}
	}, label)
	if kept = strings.Trim(kept[:min(len(kept), maxMachine)], "-"); kept == "" {
		return "bridge"
	}
	return kept
}

// ValidName reports whether a name may be a replica's: lower-case letters, digits and '-',
// at both ends a letter or digit, at most 40 bytes.
func ValidName(name string) bool {
	if name == "" || len(name) > 40 || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return strings.IndexFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}) < 0
}
