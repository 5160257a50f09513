package policycmd

import (
	"context"
	"errors"
	"fmt"

	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/policydoc"
	"codemode-bridge/bridge/secrets"
)

// tokens returns how the tokens of entries are read: from the environment, the keyring, or a
// file that nobody else can read.
func tokens(env config.Env) func(context.Context, policydoc.Include) (string, error) {
	return func(ctx context.Context, inc policydoc.Include) (string, error) {
		kind, name := inc.TokenSource()
		if kind == "" {
			if token, ok := env(name); ok && token != "" {
				return token, nil
			}
			return "", fmt.Errorf("the variable %s is not set", name)
		}
		home, _ := env("HOME")
		ref := secrets.Reference{Kind: secrets.Kind(kind), Name: name}
		r := secrets.Resolver{Folder: "/", Home: home, Keyring: secrets.System(secrets.Service)}
		found := r.Resolve(ctx, []secrets.Reference{ref})[ref]
		if found.Err != nil {
			return "", fmt.Errorf("%s (%s)", found.Err.Message, found.Err.Hint)
		}
		if token := found.Reveal(); token != "" {
			return token, nil
		}
		return "", errors.New(ref.String() + " is empty")
	}
}
