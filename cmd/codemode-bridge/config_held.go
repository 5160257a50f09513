package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/sqlstore"

	"github.com/spf13/cobra"
)

// configCommand shows and confirms a configuration that is held.
func (a *app) configCommand() *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "A changed configuration that waits for an approver"}
	pending := &cobra.Command{
		Use: "pending", Short: "Show what waits, in what it is looser, and how the profiles differ", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withRequests(c.Context(), func(cfg *config.Config, store *sqlstore.Requests) error {
				h, err := heldNow(c, store, cfg)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(pendingOf(h))
				case h == nil:
					fmt.Fprintln(a.err, errNothingHeld)
					return nil
				}
				return printHeld(a.out, h)
			})
		},
	}
	a.jsonFlag(pending)

	var fromStdin bool
	var reason string
	confirm := &cobra.Command{
		Use: "confirm", Short: "Let the bridges take it over, as an approver with the role admin", Args: noArgs,
		Long: "Shows what waits and lets every bridge with this configuration file take it over. Your approver's token\nis asked for; it must be of an approver in force, and one that the change itself brings is not.",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withRequests(c.Context(), func(cfg *config.Config, store *sqlstore.Requests) error {
				h, err := heldNow(c, store, cfg)
				if err != nil {
					return err
				}
				if h == nil {
					return errNothingHeld
				}
				if err := printHeld(a.err, h); err != nil {
					return err
				}
				_, who, err := a.authenticate(cfg, fromStdin)
				if err != nil {
					return err
				}
				if !who.May(approval.Edit) {
					return fmt.Errorf("%s may not confirm a configuration: that takes the role admin", who.Name)
				}
				if h.NeedsReason && strings.TrimSpace(reason) == "" {
					return &usageError{errors.New("this change needs a reason: --reason \"...\"")}
				}
				said := approval.Confirmation{By: who.Name, Channel: "terminal", Text: reason, At: time.Now()}
				if err := approval.Confirm(c.Context(), store, h.File, h.Digest, said); err != nil {
					return fmt.Errorf("confirming the configuration: %w", err)
				}
				_, err = fmt.Fprintf(a.out, "confirmed by %s: the bridges that hold it take it over\n", who.Name)
				return err
			})
		},
	}
	confirm.Flags().BoolVar(&fromStdin, "token-stdin", false, "read your token from standard input")
	confirm.Flags().StringVar(&reason, "reason", "", "why; needed where a denial is gone, nobody is asked any more, or somebody may allow more")
	group.AddCommand(pending, confirm)
	return group
}

// heldNow is what waits of the file as it is now; nil if nothing does.
func heldNow(c *cobra.Command, store approval.Store, cfg *config.Config) (*approval.Held, error) {
	h, err := approval.HeldOf(c.Context(), store, heldKey(cfg))
	if err != nil || h == nil || h.By != "" || h.Digest != textDigest(cfg) {
		return nil, err
	}
	return h, nil
}

// A pendingChange is what is held, as --json prints it.
type pendingChange struct {
	File   string    `json:"file"`
	Digest string    `json:"digest"`
	Since  time.Time `json:"since"`
	Why    []string  `json:"why"`
	Diff   []string  `json:"diff,omitempty"`
	Reason bool      `json:"reason_needed"`
}

func pendingOf(h *approval.Held) *pendingChange {
	if h == nil {
		return nil
	}
	return &pendingChange{h.File, h.Digest, h.Since, h.Why, h.Diff, h.NeedsReason}
}

func printHeld(w io.Writer, h *approval.Held) error {
	lines := []string{fmt.Sprintf("%s waits for an approver since %s, because of:", h.File, h.Since.Local().Format("15:04:05"))}
	for _, why := range h.Why {
		lines = append(lines, "  "+canon.Visible(why))
	}
	if len(h.Diff) > 0 {
		lines = append(lines, "the profiles as they apply:")
	}
	for _, l := range h.Diff {
		lines = append(lines, "  "+canon.Visible(l))
	}
	if h.NeedsReason {
		lines = append(lines, "whoever confirms it says why: --reason")
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// inForce is a configuration with the approvers that may answer now: while a
// change of its file is held, those that the bridges go by, whatever the file
// says already.
func inForce(ctx context.Context, store approval.Store, cfg *config.Config) (*config.Config, error) {
	h, err := approval.HeldOf(ctx, store, heldKey(cfg))
	if err != nil || h == nil || h.By != "" || h.Digest != textDigest(cfg) {
		return cfg, err
	}
	c := *cfg
	c.Approvals.Approvers, c.Approvals.Delegations = nil, nil
	for _, one := range h.Approvers {
		risk, err := one.Risk.MarshalText()
		if err != nil {
			return nil, fmt.Errorf("reading the approvers in force: %w", err)
		}
		c.Approvals.Approvers = append(c.Approvals.Approvers, config.Approver{Name: one.Name, Role: config.ApproverRole(one.Role), Groups: one.Groups, Risk: config.RiskLevel(risk), Login: one.Login, Digest: one.Token})
	}
	for _, d := range h.Delegations {
		c.Approvals.Delegations = append(c.Approvals.Delegations, config.Delegation{From: d.From, To: d.To, Until: config.Moment(d.Until.Format(time.RFC3339))})
	}
	return &c, nil
}

var errNothingHeld = errors.New("no configuration waits for an approver")
