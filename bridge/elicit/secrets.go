package elicit

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// secretTerms occur anywhere in texts that ask for a secret, secretWords as words of
// their own. All are as letters returns them.
var (
	secretTerms = lettersOf(`password, passwd, passphrase, passcode, secret, token, api key, access key, private key, signing key, credential,
		recovery code, backup code, security code, verification code, one-time code, login code, auth code, recovery phrase, seed phrase, mnemonic, card number,
		Passwort, Kennwort, mot de passe, contraseña, пароль, 密码, 密碼, パスワード, 비밀번호`)
	secretWords = lettersOf("pin, pins, otp, totp, pwd, pw, cvv, cvc, mfa, ssn")

	// notSecretTerms have one of secretTerms in them and speak of something else:
	// of how many tokens a model reads or writes, or of people.
	notSecretTerms = lettersOf(`max tokens, maximum tokens, min tokens, minimum tokens, number of tokens, num tokens, count of tokens, token count, tokens used,
		token limit, token budget, input tokens, output tokens, prompt tokens, completion tokens, tokens per, secretary, secretariat`)
)

func lettersOf(list string) []string {
	var all []string
	for term := range strings.SplitSeq(list, ",") {
		all = append(all, letters(term))
	}
	return all
}

// lookalikes are the digits and signs that stand for letters in "p4$$w0rd".
var lookalikes = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "@", "a", "$", "s")

var camelCase = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)

// warns matches a request to keep a secret to oneself, up to the end of the sentence;
// turnsRound matches what makes such a sentence ask for one after all.
var (
	warns      = regexp.MustCompile(`(?i)\b(?:do not|don't|never) (?:give|enter|share|send|include|provide|type|tell)\b[^.;:!?()\n]*`)
	turnsRound = regexp.MustCompile(`(?i)\b(?:but|except|only|unless|until|to others|any(?:one|body) else|without|instead|here|below|forget|fail)\b`)
)

// speaksOfSecret reports whether a text names a kind of secret, be it in letters that
// only look like the name, and does more than warn of giving one away.
func speaksOfSecret(text string) bool {
	text = warns.ReplaceAllStringFunc(text, func(sentence string) string {
		if turnsRound.MatchString(sentence) {
			return sentence
		}
		return " "
	})
	for _, read := range []string{text, lookalikes.Replace(text)} {
		all := letters(read)
		for _, term := range notSecretTerms {
			all = strings.ReplaceAll(all, term, " ")
		}
		if slices.ContainsFunc(secretTerms, func(term string) bool { return strings.Contains(all, term) }) {
			return true
		}
	}
	spaced := camelCase.ReplaceAllString(norm.NFKD.String(text), "$1 $2")
	words := strings.FieldsFunc(spaced, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, letters(word)) })
}
