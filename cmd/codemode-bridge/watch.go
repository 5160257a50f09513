package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/approvalview"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/storecmd"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func approvalsWatch(con *console) *cobra.Command {
	var fromStdin bool
	c := &cobra.Command{
		Use: "watch", Short: "Answer questions in this terminal as they come", Args: cli.NoArgs,
		Long: "Shows the calls that wait for a person, of every bridge with the same audit log, with the time that is\nleft, and takes your answers. Your approver's token is asked for first: a terminal alone proves nothing.",
		RunE: func(c *cobra.Command, _ []string) error {
			return withRequests(c.Context(), con, func(cfg *config.Config, store storecmd.Requests) (err error) {
				in, ok := con.In.(*os.File)
				if out, isFile := con.Out.(*os.File); !ok || !isFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
					return &cli.UsageError{Err: errors.New("there is no terminal here; approvals list, approve and deny work without one")}
				}
				_, who, _, err := authenticate(con, cfg, fromStdin)
				if err != nil {
					return err
				}
				s, err := openSettling(c.Context(), con, cfg, store)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, s.Close()) }()
				err = approvalview.Watch(c.Context(), approvalview.Options{
					Store: store, Approver: who.Name, Configuration: realmOf(cfg).Configuration, In: in, Out: con.Out,
					Settle: func(ctx context.Context, e approval.StoredRequest, v approval.Verdict) (approval.Verdict, approval.StoredRequest, error) {
						return s.settleAsOf(ctx, con, who, e, v)
					},
				})
				if errors.Is(err, approvalview.ErrInterrupted) {
					return errInterrupted
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&fromStdin, "token-stdin", false, "read your token from standard input, before its keys")
	return c
}

// settleAsOf gives a verdict with the approver's present rights: they may have lost
// some since they signed in as who.
func (s settling) settleAsOf(ctx context.Context, con *console, who approval.Approver, e approval.StoredRequest, v approval.Verdict) (approval.Verdict, approval.StoredRequest, error) {
	cfg, err := con.load()
	if err == nil {
		cfg, err = inForce(ctx, con, cfg)
	}
	if err != nil {
		return v, e, err
	}
	people, err := pending.Approvers(cfg, realmOf(cfg))
	if err != nil {
		return v, e, err
	}
	s.people.Store(people)
	still, ok := people.Current(who)
	if !ok {
		return v, e, fmt.Errorf("%s is no approver any more", who.Name)
	}
	signed, now, err := s.bring(ctx, people, still, e, v)
	return signed, now, uncounted(err)
}
