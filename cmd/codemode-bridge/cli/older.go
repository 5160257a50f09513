package cli

import "github.com/spf13/cobra"

// Older makes c an older spelling: --help does not list it, it does what it did and, before
// that, says on standard error what is written instead, now.
func (con *Console) Older(c *cobra.Command, now string) *cobra.Command {
	c.Hidden = true
	con.before(c, func() { con.older(Command(c), now) })
	return c
}

// OlderFlag makes a flag an older spelling, in the same sense.
func (con *Console) OlderFlag(c *cobra.Command, flag, now string) {
	f := c.Flags().Lookup(flag)
	f.Hidden = true
	con.before(c, func() {
		if f.Changed {
			con.older(Command(c)+" --"+flag, now)
		}
	})
}

// before has c call say first.
func (con *Console) before(c *cobra.Command, say func()) {
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		say()
		return run(c, args)
	}
}

func (con *Console) older(then, now string) {
	con.Told("note: %s is now codemode-bridge %s; the older spelling works in this release and not in a later one", then, now)
}
