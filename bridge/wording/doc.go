// Package wording puts requests into words for people. It shows what was frozen and
// decides nothing.
//
//	Describe   a request in words, for every channel
//	Prompt     the description as one text, for the dialog of a client
//	Summary    one line about it
//
// Text of ours and text that others wrote (the arguments, a model's script, a server's
// description of its tool) are kept apart until the last moment: see phrase.go.
package wording
