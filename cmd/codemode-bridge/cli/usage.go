package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes. They are part of the command line's contract (docs/reference/cli.md).
const (
	ExitOK          = 0
	ExitFailed      = 1 // the script, the tool or the server failed
	ExitUsage       = 2 // the command line is wrong
	ExitConfig      = 3 // the configuration is wrong or cannot be read
	ExitDenied      = 4 // eval: a call was denied and the script did not catch it
	ExitNotWhole    = 5 // audit: the log was altered or is incomplete
	ExitKept        = 6 // approvals: the bridge that asked has not taken the answer yet
	ExitInterrupted = 130
)

// A UsageError says what is wrong with a command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// An ExitError ends the program with a code. The command has already printed what
// there is to say.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// UnknownCommand says that a command has no subcommand of that name, and which is meant.
func UnknownCommand(c *cobra.Command, name string) error {
	c.SuggestionsMinimumDistance = max(c.SuggestionsMinimumDistance, 2)
	hint := " (" + c.CommandPath() + " --help lists its commands)"
	if near := c.SuggestionsFor(name); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return &UsageError{fmt.Errorf("unknown command %q for %q%s", name, c.CommandPath(), hint)}
}

// NoArgs and the functions below check how many arguments a command was given. The
// error is a UsageError.
func NoArgs(c *cobra.Command, args []string) error { return MaxArgs(0)(c, args) }

func MaxArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		takes := "no arguments"
		if n > 0 {
			takes = "at most " + Count(n, "argument")
		}
		return &UsageError{Err: fmt.Errorf("%s takes %s, not %d (does one need quotes?)", Command(c), takes, len(args))}
	}
}

func MinArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return &UsageError{Err: fmt.Errorf("%s needs %s: %s", Command(c), Count(n, "argument"), c.UseLine())}
	}
}

func OneArg(c *cobra.Command, args []string) error {
	if err := MinArgs(1)(c, args); err != nil {
		return err
	}
	return MaxArgs(1)(c, args)
}

func ExactArgs(n int) cobra.PositionalArgs { return RangeArgs(n, n) }

func RangeArgs(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least {
			return MinArgs(least)(c, args)
		}
		return MaxArgs(most)(c, args)
	}
}

// OneOf returns a UsageError unless word is one of allowed.
func OneOf(flag, word string, allowed ...string) error {
	if slices.Contains(allowed, word) {
		return nil
	}
	return &UsageError{Err: fmt.Errorf("--%s must be one of %s, not %q", flag, strings.Join(allowed, ", "), word)}
}

// Complete has the shell complete a flag with words.
func Complete(c *cobra.Command, flag string, words []string) {
	CompleteWith(c, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteWith has the shell complete a flag with what f returns.
func CompleteWith(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic("codemode-bridge: " + err.Error()) // there is no such flag
	}
}

// CompleteNames has the shell complete the names that commands take and nothing else
// completes: by a flag, as "--server", or as the arguments of a command, "servers login".
func CompleteNames(root *cobra.Command, names map[string]cobra.CompletionFunc) {
	for _, c := range root.Commands() {
		CompleteNames(c, names)
	}
	if f := names[Command(root)]; f != nil && root.ValidArgsFunction == nil {
		root.ValidArgsFunction = f
	}
	root.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if _, there := root.GetFlagCompletionFunc(flag.Name); names["--"+flag.Name] != nil && !there {
			CompleteWith(root, flag.Name, names["--"+flag.Name])
		}
	})
}

// Command is a command as it is typed, without the program's name.
func Command(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}
