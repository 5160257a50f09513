package setupcmd

import (
	"context"
	"fmt"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

func allowedFlag(c *cobra.Command, allowed *bool) {
	c.Flags().BoolVar(allowed, "allowed", false, "bring over what you have allowed your clients to call without asking, as far as it is listed; without it you are asked at a terminal")
}

// agreeToOffers shows what the person has allowed their clients, and asks whether scripts
// may call it, too. Allowed is a yes without a question; without a person, or with quiet,
// it is a no.
func agreeToOffers(con *Bridge, found *setup.Import, allowed, quiet bool) (bool, error) {
	if !con.JSON {
		for _, line := range found.OfferWords() {
			con.Told("%s", line)
		}
	}
	offered := found.Offered()
	if offered == 0 || allowed || quiet || con.JSON || !con.HasPerson() {
		return offered > 0 && allowed, nil
	}
	return con.Agree(fmt.Sprintf("allow scripts the %s of this list, too, without asking you%s?", cli.Count(offered, "tool"), found.OfferLimits()))
}

// takeAllowed offers what the person has allowed a client to call without asking, of the
// servers that move, and adds to the bridge's configuration what they agree to. It starts
// these servers, and only if somebody can agree. Settled reports whether there is nothing
// left to say of what the client allowed.
func takeAllowed(ctx context.Context, con *Bridge, in *setup.Installation, path string, o installOptions) (offers []*setup.Offer, settled bool, err error) {
	named := in.OldRules(con.System())
	if len(named) == 0 || !o.allowed && (o.yes || con.JSON || !con.HasPerson()) {
		return nil, len(named) == 0, nil
	}
	parse := func(text []byte) (*config.Config, error) { return con.Parse(path, text) }
	cfg, err := parse(in.After)
	if err != nil {
		return nil, false, err
	}
	asked := in.Named(con.System())
	if err := con.List(ctx, path, in.After, asked); err != nil {
		return nil, false, err
	}
	for _, s := range asked {
		if s.Unpinned != "" {
			con.Told("of %s nothing is offered: %s", canon.Escape(s.As), canon.Escape(s.Unpinned))
		}
	}
	found := in.Offer(cfg.Profiles.Default())
	yes, err := agreeToOffers(con, found, o.allowed, o.yes)
	if err != nil || !yes {
		return found.Offers, len(found.Offers) > 0, err
	}
	return found.Offers, true, in.Allow(cfg.Profiles.Default().Name(), found.TakeOffers(), parse)
}
