// Package setupcmd has the commands with which a person sets the bridge up: init writes
// a first configuration, install puts the bridge into a client's file, and uninstall
// takes it out again; servers add adds one server. Package bridge/setup does the work; what is here asks the person
// and tells them. A Bridge, which the program fills in, says where its files are.
package setupcmd

import (
	"context"

	"codemode-bridge/bridge/clients"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/secrets"
	"codemode-bridge/bridge/setup"
	"codemode-bridge/cmd/codemode-bridge/cli"
)

// A Tried is how connecting to a server went, as --json prints it.
type Tried struct {
	OK    bool   `json:"ok"`
	Tools int    `json:"tools"`
	Text  string `json:"text"` // what it has, or what is wrong
	// Said are the last lines that its program wrote, and Do says what to do.
	Said []string `json:"said,omitempty"`
	Do   string   `json:"do,omitempty"`
}

// A Bridge is what the commands need of the program.
type Bridge struct {
	*cli.Console

	File     func() (string, error)              // the configuration's path, absolute
	Named    func() bool                         // reports whether the person named the configuration
	Shown    func(path string) string            // that path as the person wrote it
	Typed    func(command string) string         // a command as the person types it
	System   func() clients.System               // where the files of clients are
	OwnFiles func(path string) []string          // of a bridge with that configuration
	Entry    func(path string) ([]string, error) // the command with which clients start it
	Copy     func() (*setup.Copy, error)         // that has to be made for that command; nil if none
	User     func() string                       // the person at the terminal

	Load  func() (*config.Config, error)
	Parse func(path string, text []byte) (*config.Config, error)
	// Filled is a configuration with the secrets filled in that are in files and in the
	// keyring; those that cannot be had stay references. No command is run for one.
	Filled  func(cfg *config.Config) *config.Config
	Rewrite func(path string, edit func(text []byte) ([]byte, error)) error
	// Edit is Rewrite for the configuration of the command line, and says so if the edit
	// would be a mistake.
	Edit func(edit func(text []byte, cfg *config.Config) ([]byte, error)) error
	// Pin starts the servers of a configuration that is about to be written, and accepts
	// the tools that they list.
	Pin func(ctx context.Context, path string, text []byte, taking []*setup.Server) error
	// List starts the servers of such a configuration, and notes the tools that they list; of
	// one that does not, why it is Unpinned.
	List func(ctx context.Context, path string, text []byte, taking []*setup.Server) error
	// Try connects to a server of the configuration on disk, and says how that went.
	Try func(ctx context.Context, name string) (Tried, error)
	// Keyring is the user's keyring, and ArgSecrets returns the secrets among arguments.
	Keyring    func() (secrets.Store, error)
	ArgSecrets func(args []string) []string
	// Refuse makes an error about the setup as a whole, with a hint what to do.
	Refuse func(err error, hint string) error
}
