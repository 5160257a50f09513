package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxIndexed bounds how much of one text is looked at, in bytes.
const maxIndexed = 4096

// words splits text into words and hands each to yield in its stem: at what is
// no letter or digit, and within names like createIssue and HTTPServer, which
// are given in parts and as a whole. Runs of CJK characters, which have no
// spaces, are given as overlapping pairs.
func words(text string, yield func(stem string)) {
	if len(text) > maxIndexed {
		text = strings.ToValidUTF8(text[:maxIndexed], "")
	}
	for _, word := range fields(text) {
		parts := camel(word)
		for _, part := range parts {
			yield(stem(part))
		}
		if len(parts) > 1 {
			yield(stem(strings.ToLower(word)))
		}
	}
}

// fields splits text at what is no letter or digit, and CJK runs into pairs.
func fields(text string) []string {
	var out []string
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(f) > 64 {
			f = strings.ToValidUTF8(f[:64], "")
		}
		if first, _ := utf8.DecodeRuneInString(f); first < 0x1100 || !unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			out = append(out, f)
			continue
		}
		if runes := []rune(f); len(runes) > 2 {
			for i := range len(runes) - 1 {
				out = append(out, string(runes[i:i+2]))
			}
			continue
		}
		out = append(out, f)
	}
	return out
}

// camel splits a word where its letter case says that one begins, and makes
// the parts lower case.
func camel(word string) []string {
	if !strings.ContainsFunc(word, unicode.IsUpper) {
		return []string{word} // nearly always
	}
	runes := []rune(word)
	var parts []string
	from := 0
	for i := 1; i < len(runes); i++ {
		lowerUpper := !unicode.IsUpper(runes[i-1]) && unicode.IsUpper(runes[i])
		// The last capital of a run begins the next word: HTTPServer.
		runEnds := i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsUpper(runes[i]) && unicode.IsLower(runes[i+1]) &&
			string(runes[i+1:]) != "s" // but PRs and URLs are plurals
		if lowerUpper || runEnds {
			parts = append(parts, strings.ToLower(string(runes[from:i])))
			from = i
		}
	}
	return append(parts, strings.ToLower(string(runes[from:])))
}

// stem takes the commonest endings off an English word, so that "issues" finds
// "issue" and "created" finds "create". It makes no words, only keys.
func stem(w string) string {
	if len(w) < 4 {
		// A short plural: "prs" is "pr".
		if len(w) == 3 && w[2] == 's' && !strings.ContainsRune("aeious", rune(w[1])) {
			return w[:2]
		}
		return w
	}
	for i := 0; i < len(w); i++ {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
	case strings.HasSuffix(w, "s"):
		w = w[:len(w)-1]
	}
	for _, ending := range []string{"ing", "ed"} {
		root, ok := strings.CutSuffix(w, ending)
		if ok && len(root) >= 3 && strings.ContainsAny(root, "aeiouy") {
			w = root
			if n := len(w); w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
				w = w[:n-1]
			}
			break
		}
	}
	if root, ok := strings.CutSuffix(w, "ion"); ok && len(root) >= 4 && (root[len(root)-1] == 't' || root[len(root)-1] == 's') {
		w = root
	}
	if len(w) > 3 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

// set makes a set of the stems of the words in text.
func set(text string) map[string]bool {
	s := map[string]bool{}
	for _, w := range strings.Fields(text) {
		s[stem(w)] = true
	}
	return s
}

// stopwords say nothing about a tool. They are ignored in a query that has
// other words, and find nothing in one that hasn't.
var stopwords = set(`a an the of to in on for with and or from by at as is are be i me my we our you your it its this
	that these those any all some please can could how do does want need would like tool tools function functions mcp
	using via into about what which
	between across each other than then when given there`)

// actions say how and not what: a tool that shares only such a word with a
// query that names a thing does not fit.
var actions = set(`create add new make insert delete remove drop erase get fetch read show view retrieve load list
	enumerate search find query lookup update edit modify change set send write open close run execute use start stop
	check call perform give tell put save store upload download move copy manage handle return apply`)

// verbs tell tools of one thing apart by their names: who would list pull requests does
// not want to merge one.
var verbs = func() map[string]bool {
	m := set(`merge fork close rename install upgrade uninstall kill terminate clone push pull commit blame rebase reset scale patch
		apply count aggregate crawl scrape drag click hover resize`)
	for w := range actions {
		m[w] = true
	}
	for _, w := range strings.Fields("use give handle manage perform") {
		delete(m, stem(w))
	}
	return m
}()

// serviceNames are services that people have one of: who names Slack is not helped by a
// tool for another. Names that are common words besides (linear, notion, discord) count,
// since a query has few words; those that tools of any kind speak of do not.
var serviceNames = set(`airtable anthropic asana atlassian auth0 aws azure bigquery bitbucket box calendly canva circleci clickup
	cloudflare coda confluence datadog discord docusign dropbox dynamodb elasticsearch evernote facebook figma firebase
	freshdesk gcp gcal gitlab gmail grafana greenhouse hubspot instagram intercom jenkins jira klaviyo linear linkedin mailchimp
	mailgun miro mixpanel monday mongodb mysql neon netlify newrelic notion obsidian okta onedrive openai outlook
	pagerduty paypal pinecone pinterest pipedrive plaid postgres posthog quickbooks reddit redis sagemaker salesforce segment
	sendgrid sentry servicenow sharepoint shopify skype slack sms snowflake spotify sqlite square stripe supabase
	telegram terraform tiktok todoist trello twilio twitch twitter typeform vercel webex whatsapp wordpress xero
	youtube zapier zendesk zoho zoom`)

// synonyms are words that tools and queries use for one another.
var synonyms = func() map[string][]string {
	m := map[string][]string{}
	for _, group := range []string{
		"create add new make insert", "delete remove drop erase trash", "get fetch read show view retrieve",
		"list enumerate show", "search find query lookup", "update edit modify change replace", "send post", "run execute exec invoke start launch",
		"store save remember record create add", "stop kill terminate end", "open go visit navigate load goto", "press type enter",
		"shell terminal bash", "repo repository", "pr pull", "directory folder dir", "document doc", "documentation doc", "message msg", "database db",
		"organization organisation org", "user person people member", "image picture photo", "mail email",
		"issue ticket bug", "config configuration settings", "environment env", "variable var", "kubernetes k8s kubectl", "pod deployment namespace",
		"move rename", "link url address", "timezone tz", "website webpage page site web", "screenshot capture", "wiki page",
		"location place address coordinate", "distance route direction", "nearby local near", "comment reply note", "log output",
		"error exception failure crash", "table sheet", "row record", "column field", "cron schedule", "text content", "fact observation",
		"summary summarize", "tab page", "sql query", "latitude longitude coordinate", "history log", "compress gzip zip",
	} {
		list := strings.Fields(group)
		for _, a := range list {
			for _, b := range list {
				if a, b := stem(a), stem(b); a != b {
					m[a] = append(m[a], b)
				}
			}
		}
	}
	return m
}()
