package canon

import (
	"strings"
	"unicode"
)

// Which names hide their values. A name is split into words (apiKey, api_key,
// X-Api-Key and "api key" are all api+key), and the words are looked at:
//
//   - one of hiddenNames, as the whole name;
//   - a name that ends in one of hiddenEndings, also run together (accesstoken);
//   - a name with one of hiddenWords among its words (tokenValue);
//
// unless the name speaks about a secret without holding one: the last word is
// one of aboutWords (tokenCount, passwordPolicy, secretName), or it counts a
// model's tokens (maxTokens), or pages through a list (nextPageToken).

var hiddenNames = set(`
	auth pass pw pwd cvv cvc pincode mnemonic seedphrase recoveryphrase
	sessionid sessid phpsessid jsessionid sid xauth netrc htpasswd secretid`)

var hiddenEndings = strings.Fields(`
	password passwd passphrase passcode pwd secret secrets token tokens
	credential credentials creds cookie cookies authorization jwt
	apikey apikeys accesskey accesskeys accesskeyid secretkey secretkeys
	privatekey privatekeys privkey signingkey encryptionkey sharedkey
	sharedaccesskey masterkey accountkey authkey sshkey hmackey aeskey
	deploykey servicekey serviceaccountkey storagekey licensekey sessionkey
	recoverycode recoverycodes backupcode backupcodes otpcode mfacode`)

var hiddenWords = set(`
	password passwords passwd passphrase passcode pwd secret secrets token
	tokens credential credentials creds cookie cookies authorization jwt
	bearer apikey otp totp`)

var hiddenParts = strings.Fields(`
	password passphrase apikey accesskey secretkey privatekey accesstoken
	authtoken refreshtoken clientsecret`)

var aboutWords = set(`
	count counts limit limits budget usage length len size type kind name names
	url uri endpoint policy policies expiry expires expiration ttl age lifetime
	timeout file path dir directory enabled disabled required strategy mode
	format index position offset price symbol address balance amount decimals
	supply standard cost rate algorithm alg version status date at on in
	rotation field selector label placeholder`)

var tokenCounts = set(`
	max min num total prompt completion input output cached reasoning thinking
	used remaining budget`)

var tokenPages = set(`page next previous continuation sync start cursor`)

// urlNames hide their values in the query of a URL only: elsewhere a key or a
// signature is no secret.
var urlNames = set(`key sig signature xamzsignature xgoogsignature code`)

// lineNames are headers and phrases whose value is the rest of the line.
var lineNames = set(`
	authorization proxyauthorization cookie setcookie
	passphrase mnemonic seedphrase recoveryphrase`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// keyWords splits a name into lower-case words without digits.
func keyWords(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case unicode.IsUpper(r):
			afterLower := i > 0 && !unicode.IsUpper(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				flush()
			}
			word = append(word, lower(r))
		case unicode.IsLetter(r):
			word = append(word, lower(r))
		case unicode.IsDigit(r), unicode.Is(unicode.Cf, r):
			// password2 is password, and so is pass<zero width space>word.
		default:
			flush()
		}
	}
	flush()
	return words
}

// plainName is a name without case and separators, for names that the
// configuration lists.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return lower(r)
		}
		return -1
	}, name)
}

// lower is a letter in lower case; a letter whose upper case is that of another
// (a long s, a dotless i) is that other one, as it is to whoever reads names
// without regard to case.
func lower(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// secretName reports whether the built-in rules hide what name holds.
func secretName(name string) bool {
	words := keyWords(name)
	if len(words) == 0 {
		return false
	}
	joined := strings.Join(words, "")
	if hiddenNames[joined] {
		return true
	}
	if aboutSecret(words) {
		return false
	}
	if endsSecret(joined) {
		return true
	}
	for _, w := range words {
		if hiddenWords[w] {
			return true
		}
	}
	for _, part := range hiddenParts {
		if strings.Contains(joined, part) {
			return true
		}
	}
	return false
}

func endsSecret(joined string) bool {
	for _, ending := range hiddenEndings {
		if strings.HasSuffix(joined, ending) {
			return true
		}
	}
	return false
}

func aboutSecret(words []string) bool {
	last := words[len(words)-1]
	if len(words) == 1 {
		return false
	}
	before := words[len(words)-2]
	switch {
	case aboutWords[last]:
		return true
	case last == "id" && before == "token": // of a blockchain; secret_id is one
		return true
	case last == "token" || last == "tokens":
		return tokenCounts[words[0]] || tokenPages[before]
	}
	return false
}

// countsTokens reports whether a number under name is a count, as in
// {"tokens": 1200}, rather than a secret.
func countsTokens(name string) bool {
	words := keyWords(name)
	return len(words) > 0 && words[len(words)-1] == "tokens"
}
