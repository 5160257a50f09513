package recorder

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"codemode-bridge/bridge/canon"
)

// ArgSecrets returns the secrets among a server's arguments, which it recognises by the
// flag or name before them or by their look:
//
//	--api-key VALUE    --token=VALUE    -e API_KEY=VALUE    -u ann:VALUE
//	-H "Authorization: Bearer VALUE"    postgres://ann:VALUE@db    ghp_...
//
// A value that could be an ordinary word is not taken for a secret; see worthHiding.
func ArgSecrets(args []string) []string {
	var all []string
	add := func(value string) {
		forms := []string{value}
		if _, token, ok := strings.Cut(value, " "); ok { // Bearer TOKEN
			forms = append(forms, strings.TrimSpace(token))
		}
		if _, password, ok := strings.Cut(value, ":"); ok { // user:password
			forms = append(forms, password)
			if plain, err := url.PathUnescape(password); err == nil {
				forms = append(forms, plain)
			}
		}
		for _, form := range forms {
			if worthHiding(form) && !slices.Contains(all, form) {
				all = append(all, form)
			}
		}
	}
	for i, arg := range args {
		for _, value := range canon.Secrets(arg) {
			add(value)
		}
		if value, ok := strings.CutPrefix(arg, "-H"); ok && value != "" { // as curl takes it
			for _, value := range canon.Secrets(value) {
				add(value)
			}
		}
		flag, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		switch {
		case !strings.HasPrefix(flag, "-") || strings.Contains(value, "://"): // what an address has is found as its look
		case secretFlag(flag):
			add(value)
		default:
			for _, value := range canon.Secrets(flag + " " + value) { // -u ann:VALUE, --env=API_KEY=VALUE
				add(value)
			}
		}
	}
	return all
}

// secretFlag reports whether a flag's name says that its value is a secret.
func secretFlag(flag string) bool {
	name := strings.ToLower(strings.TrimLeft(flag, "-"))
	return name == "key" || name == "pat" || len(canon.Secrets(name+"=x1y2z3w4")) > 0
}

// pathLike matches paths. Something that begins with / but contains + or = is base64.
var pathLike = regexp.MustCompile(`^([~.]{0,2}/|\.{0,2}\\|[A-Za-z]:\\)[^+=]*$`)

// worthHiding reports whether a value may be hidden wherever it occurs in other texts.
// One that is short, a path, a number or just words may not, because it occurs where
// it is no secret (--auth keychain, postgres://postgres:postgres@db).
func worthHiding(value string) bool {
	const long = 20 // longer than ordinary words and numbers
	if pathLike.MatchString(value) {
		return false
	}
	letters := strings.ContainsFunc(value, unicode.IsLetter)
	others := strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && !strings.ContainsRune("-_.: ", r) })
	return len(value) >= long || len(value) >= minSecret && letters && others
}
