// Package approverscmd has the commands about who may answer questions: "approvers". They
// edit the configuration file.
package approverscmd

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"codemode-bridge/bridge/approval"
	"codemode-bridge/bridge/audit"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/bridge/pending"
	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// A Bridge is what the commands need of the program.
type Bridge struct {
	*cli.Console

	Load func() (*config.Config, error)
	// Edit changes the configuration file in one step, or not at all.
	Edit func(edit func(text []byte, cfg *config.Config) ([]byte, error)) error
}

// Command is the command group "approvers".
func (b *Bridge) Command() *cobra.Command {
	group := &cobra.Command{Use: "approvers", Short: "Who may answer questions"}
	list := &cobra.Command{
		Use: "list", Short: "List who may answer, and in whose name", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := b.Load()
			if err != nil {
				return err
			}
			if b.JSON {
				return b.PrintJSON(map[string]any{"approvers": append([]config.Approver{}, cfg.Approvals.Approvers...), "delegations": append([]config.Delegation{}, cfg.Approvals.Delegations...)})
			}
			if len(cfg.Approvals.Approvers) == 0 {
				fmt.Fprintln(b.Err, "there are no approvers; codemode-bridge approvers add NAME makes one")
				return nil
			}
			table := [][]string{{"name", "role", "may allow up to", "groups", "signs in as", "in the name of"}}
			for _, one := range cfg.Approvals.Approvers {
				risk := string(one.Risk)
				if risk == "" {
					risk = map[config.ApproverRole]string{config.RoleAdmin: "critical", config.RoleApprover: "high", config.RoleViewer: "-"}[one.Role]
				}
				var names []string
				for _, d := range cfg.Approvals.Delegations {
					if d.To == one.Name {
						names = append(names, fmt.Sprintf("%s until %s", d.From, d.Until))
					}
				}
				table = append(table, []string{one.Name, string(one.Role), risk, strings.Join(one.Groups, " "), canon.Escape(one.Login), strings.Join(names, ", ")})
			}
			return b.Table(table)
		},
	}
	b.JSONFlag(list)

	var role, risk, login, principal string
	var groups []string
	add := &cobra.Command{
		Use: "add name", Short: "Make an approver, and print their token once", Args: cli.OneArg,
		Long: "Adds an approver to the configuration file and prints their token, once: the file holds its hash\nalone. With --login they sign in on the page by single sign-on instead.\nA running bridge takes the first approver over at once, and every further one when an approver with the role\nadmin has confirmed the change (codemode-bridge config confirm). So the first one is an admin unless --role\nsays otherwise; every further one is an approver.",
		RunE: func(c *cobra.Command, args []string) error {
			token, sum := approval.NewToken()
			one := map[string]any{"name": args[0]}
			if login != "" {
				one["login"] = login
			} else {
				one["sha256"] = hex.EncodeToString(sum[:])
			}
			if risk != "" {
				one["risk"] = risk
			}
			if principal != "" {
				one["principal"] = principal
			}
			if len(groups) > 0 {
				one["groups"] = groups
			}
			first, confirms := true, false
			err := b.Edit(func(text []byte, cfg *config.Config) ([]byte, error) {
				first = len(cfg.Approvals.Approvers) == 0
				one["role"] = addedRole(role, first)
				confirms = one["role"] == config.RoleAdmin || pending.AnyoneMay(approval.ConfirmConfig, cfg.Approvals)
				return jsonc.Insert(text, "/approvals/approvers/-", one)
			})
			if err != nil {
				return err
			}
			if !confirms {
				defer b.Told("%s", NobodyConfirms)
			}
			if first && role == "" {
				defer b.Told("%s is the first approver, and so an admin: somebody must be able to confirm edits that loosen (--role says otherwise)", args[0])
			}
			if !first {
				defer fmt.Fprintln(b.Err, "a bridge that runs lets them in once an admin has confirmed it, on the page or with: codemode-bridge config confirm")
			}
			if b.JSON {
				made := map[string]any{"name": args[0], "role": one["role"]}
				if login == "" {
					made["token"] = token
				}
				return b.PrintJSON(made)
			}
			if login != "" {
				_, err = fmt.Fprintf(b.Err, "%s signs in on the page as %s; there is no token\n", args[0], login)
				return err
			}
			fmt.Fprintf(b.Err, "the token of %s, which is not kept anywhere:\n", args[0])
			if _, err = fmt.Fprintln(b.Out, token); err == nil {
				b.Told("%s enters it on the approval page (codemode-bridge serve says where) and at: codemode-bridge approvals watch", args[0])
			}
			return err
		},
	}
	b.JSONFlag(add)
	add.Flags().StringVar(&role, "role", "", "what they may do: `viewer`, approver, admin; without it, the first one is an admin and the others are approvers")
	add.Flags().StringVar(&risk, "risk", "", "the highest `risk` that they may allow: low, medium, high, critical")
	add.Flags().StringSliceVar(&groups, "group", nil, "`groups` that a quorum may ask for")
	add.Flags().StringVar(&login, "login", "", "what the provider of approvals.oidc calls them, such as their `address`: instead of a token")
	add.Flags().StringVar(&principal, "principal", "", "who they are as a client, by http.auth: `issuer#subject`, as the audit log has it")
	cli.Complete(add, "role", []string{"viewer", "approver", "admin"})
	cli.Complete(add, "risk", audit.RiskWords)

	remove := &cobra.Command{
		Use: "remove name", Short: "Remove an approver, with what they delegated", Args: cli.OneArg,
		RunE: func(_ *cobra.Command, args []string) error {
			err := b.Edit(func(text []byte, cfg *config.Config) ([]byte, error) {
				at := slices.IndexFunc(cfg.Approvals.Approvers, func(one config.Approver) bool { return one.Name == args[0] })
				if at < 0 {
					return nil, &cli.UsageError{Err: fmt.Errorf("there is no approver %q", args[0])}
				}
				var err error
				for i := len(cfg.Approvals.Delegations) - 1; i >= 0 && err == nil; i-- {
					if d := cfg.Approvals.Delegations[i]; d.From == args[0] || d.To == args[0] {
						text, err = jsonc.Remove(text, fmt.Sprintf("/approvals/delegations/%d", i))
					}
				}
				if err != nil {
					return nil, err
				}
				return jsonc.Remove(text, fmt.Sprintf("/approvals/approvers/%d", at))
			})
			if err == nil {
				fmt.Fprintf(b.Err, "%s may not answer any more\n", args[0])
			}
			return err
		},
	}

	var until string
	delegate := &cobra.Command{
		Use: "delegate from to", Short: "Let one approver decide on another's behalf for a while", Args: cli.MinArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if until == "" {
				return &cli.UsageError{Err: errors.New("--until is needed: a delegation has an end")}
			}
			return b.Edit(func(text []byte, _ *config.Config) ([]byte, error) {
				return jsonc.Insert(text, "/approvals/delegations/-", map[string]any{"from": args[0], "to": args[1], "until": until})
			})
		},
	}
	delegate.Flags().StringVar(&until, "until", "", "the last day as a `date`, such as 2026-12-31, or a time such as 2026-12-31T18:00:00Z")
	group.AddCommand(list, add, remove, delegate)
	return group
}

// addedRole returns the role of a new approver: the one that was named, else admin
// for the first and approver for the others.
func addedRole(said string, first bool) config.ApproverRole {
	switch {
	case said != "":
		return config.ApproverRole(said)
	case first:
		return config.RoleAdmin
	}
	return config.RoleApprover
}

// NobodyMayConfirm reports whether there are approvers and none is an admin.
func NobodyMayConfirm(cfg *config.Config) bool {
	return len(cfg.Approvals.Approvers) > 0 && !pending.AnyoneMay(approval.ConfirmConfig, cfg.Approvals)
}

// NobodyConfirms is the warning to print if NobodyMayConfirm.
const NobodyConfirms = `no approver has the role admin, so nobody can confirm an edit that loosens something: at a terminal, codemode-bridge config confirm --offline takes it over`
