package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// ErrNothingDone means that the person did not agree.
var ErrNothingDone = errors.New("nothing was changed")

// HasPerson reports whether standard input is a terminal, where a person can be asked.
func (con *Console) HasPerson() bool {
	file, ok := con.In.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Agree asks the person at the terminal and reports whether they said yes. An empty
// answer is a no.
func (con *Console) Agree(question string) (bool, error) {
	fmt.Fprint(con.Err, con.Fitted(question+" [y/N]"), " ")
	var answer string
	if _, err := fmt.Fscanln(con.In, &answer); err != nil && !errors.Is(err, io.EOF) && err.Error() != "unexpected newline" {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", nil
}

// Confirm asks at the terminal, unless --yes has answered in advance. Without a yes the
// error is ErrNothingDone.
func (con *Console) Confirm(question string, yes bool) error {
	if yes {
		return nil
	}
	if !con.HasPerson() {
		return &UsageError{Err: errors.New("there is no terminal to ask at: --yes goes ahead, --dry-run only shows")}
	}
	agreed, err := con.Agree(question)
	if err == nil && !agreed {
		err = ErrNothingDone
	}
	return err
}

// An Acceptance is the flag --accept-known: whether the person accepts what the bridge
// knows of servers. Without the flag, one at a terminal is asked.
type Acceptance struct {
	said, yes bool
	// Unconfined leaves the boxes out that known files propose.
	Unconfined bool
}

// AcceptFlag gives a command the flags --accept-known and --no-confine. What they say is
// in the Acceptance when the command runs.
func AcceptFlag(c *cobra.Command, a *Acceptance) {
	yes := c.Flags().Bool("accept-known", false, "accept what the bridge knows of servers, and pin their versions; without it you are asked at a terminal")
	ConfineFlag(c, &a.Unconfined)
	c.PreRun = func(c *cobra.Command, _ []string) { a.said, a.yes = c.Flags().Changed("accept-known"), *yes }
}

// NoConfine is the flag that leaves boxes out.
const NoConfine = "--no-confine"

// ConfineFlag gives a command the flag --no-confine.
func ConfineFlag(c *cobra.Command, unconfined *bool) {
	c.Flags().BoolVar(unconfined, strings.TrimPrefix(NoConfine, "--"), false, "leave out the boxes that the bridge proposes for servers that it knows: what the system lets them write and reach")
}

// Settle reports whether what is known of some servers is accepted. It asks nobody if
// quiet, and says what a no means.
func (a Acceptance) Settle(con *Console, question string, quiet bool) (bool, error) {
	yes, err := a.yes, error(nil)
	if !a.said && !quiet && con.HasPerson() {
		yes, err = con.Agree(question)
	}
	if err == nil && !yes && !con.JSON {
		con.Told("what the bridge knows is not accepted, so these calls are guessed: --accept-known accepts it, and later servers accept NAME")
	}
	return yes, err
}
