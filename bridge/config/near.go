package config

import (
	"fmt"

	"codemode-bridge/bridge/meant"
)

func didYouMean(word string, candidates []string) string {
	if c := meant.By(word, candidates); c != "" {
		return fmt.Sprintf("did you mean %q?", c)
	}
	return ""
}
