package pending

import (
	"context"
	"fmt"

	"codemode-bridge/bridge/approval"
)

// Confirm submits a pending configuration to the store of requests, if no bridge
// has, and confirms it there: the bridges that have it pending then apply it. For
// bridges that start later, [History.Keep] records it.
func Confirm(ctx context.Context, store approval.Store, row approval.PendingConfig, said approval.Confirmation) error {
	_, err := approval.SubmitConfig(ctx, store, row, said.At)
	if err == nil {
		err = approval.Confirm(ctx, store, row.File, row.Digest, said)
	}
	if err != nil {
		return fmt.Errorf("confirming the configuration: %w", err)
	}
	return nil
}

// Reject submits a pending configuration, if no bridge has, and rejects it: no part
// of it applies, not even the rights that it takes away.
func Reject(ctx context.Context, store approval.Store, row approval.PendingConfig, said approval.Confirmation) error {
	_, err := approval.SubmitConfig(ctx, store, row, said.At)
	if err == nil {
		err = approval.Reject(ctx, store, row.File, row.Digest, said)
	}
	if err != nil {
		return fmt.Errorf("rejecting the configuration: %w", err)
	}
	return nil
}
