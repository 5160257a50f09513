package config

import (
	"strings"
)

// document judges where the OpenAPI document of a server is, and what is sent
// to the API that it describes. The document itself is read when the server starts.
func (c *checker) document(s *Server, at string) {
	if c.sound(at + "/openapi") {
		text := s.OpenAPI.Reveal()
		switch {
		case strings.TrimSpace(text) == "":
			c.at(at+"/openapi", `"openapi" is empty`, "name a file or a URL")
		case isWeb(text):
			c.webAddress("openapi", text, at+"/openapi")
		case strings.Contains(text, "://"):
			c.at(at+"/openapi", `"openapi" is neither a file nor an address that starts with "https://" or "http://"`, "")
		}
	}
	for _, name := range sortedKeys(s.Credentials) {
		path := spot{path: at + "/credentials"}.below(name).path
		if !c.sound(path) {
			continue
		}
		switch value := s.Credentials[name].Reveal(); {
		case strings.TrimSpace(value) == "":
			c.at(path, "the credentials are empty", `name a variable: "${TOKEN}"`)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
			c.at(path, "the credentials hold a control character", "is there a line break at the end of a variable?")
		}
	}
}

// isWeb reports whether a document is to be fetched.
func isWeb(document string) bool {
	return strings.HasPrefix(document, "https://") || strings.HasPrefix(document, "http://")
}
