package canon

// Secrets returns the parts of text that Redact hides, unquoted, in order.
func Secrets(text string) []string {
	var all []string
	for _, s := range newHider(DisplayOptions{}).spans(text) {
		all = append(all, s.secret(text))
	}
	return all
}
