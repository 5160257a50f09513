package auditcmd

import "github.com/spf13/cobra"

// Command is the command group "audit".
func (l *Log) Command() *cobra.Command {
	group := &cobra.Command{Use: "audit", Short: "The audit log: what was asked, decided and done"}
	group.AddCommand(l.query(), l.Older(l.Show(), "runs show"), l.stats(), l.export(),
		l.report(), l.verify(), l.checkpoint(), l.prune(), l.repair(), l.fingerprint())
	return group
}
