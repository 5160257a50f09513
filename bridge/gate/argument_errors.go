package gate

import (
	"errors"
	"fmt"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/catalog"
	"codemode-bridge/bridge/misfit"
	"codemode-bridge/profiles"
)

// newArgumentError says what is wrong with the arguments of a call to tool.
func newArgumentError(tool *catalog.Tool, wrong string) *ArgumentError {
	return &ArgumentError{Tool: tool.Script, Declaration: tool.Declaration(),
		Message: fmt.Sprintf("%s was not sent: %s. Declaration: %s", tool.Script, wrong, tool.Declaration())}
}

// unfit says why the arguments of a call to tool could not be frozen.
func unfit(tool *catalog.Tool, err error, by []*profiles.Profile) *ArgumentError {
	e := newArgumentError(tool, unread(err, by))
	var frozen *canon.Error
	if errors.As(err, &frozen) {
		e.Path = misfit.Pointer(misfit.Steps(frozen.Path))
	}
	return e
}

// unread puts an error of canon.Parse in words, without what the profiles hide.
func unread(err error, by []*profiles.Profile) string {
	var frozen *canon.Error
	if !errors.As(err, &frozen) || frozen.Path == "" {
		return err.Error()
	}
	return "reading " + canon.Escape(misfit.Place(misfit.Steps(frozen.Path), canon.DisplayOptions{Hidden: hiddenBy(by)})) + ": " + frozen.Reason
}
