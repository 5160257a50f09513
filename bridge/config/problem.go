package config

import "codemode-bridge/bridge/strict"

// A FieldError is one mistake in a configuration file, and Problems are all of them.
type (
	FieldError = strict.FieldError
	Problems   = strict.Problems
)

func wrong(hint, format string, args ...any) error { return strict.Wrong(hint, format, args...) }
