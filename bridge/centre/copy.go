package centre

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrNotEmpty: a store that is to receive the laptops of another has some already.
var ErrNotEmpty = errors.New("the store has laptops already")

// Receive copies all laptops of another store, with their rows, into this one, which has
// none yet, and returns how many there are. Codes are not copied: they are good for
// minutes. Nothing is copied if there is an error.
func (s *Store) Receive(ctx context.Context, from *Store) (int, error) {
	all, err := from.Laptops(ctx)
	if err != nil {
		return 0, err
	}
	err = s.within(ctx, func(tx *sql.Tx) error {
		var has int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM laptops").Scan(&has); err != nil {
			return err
		}
		if has > 0 {
			return ErrNotEmpty
		}
		for _, l := range all {
			if err := s.put(ctx, tx, l); err != nil {
				return err
			}
			for chain := 1; chain <= len(l.Chains); chain++ {
				for link, err := range from.Rows(ctx, l.Name, chain, 0) {
					if err != nil {
						return err
					}
					if err := s.insert(ctx, tx, l.Name, chain, link); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("copying the laptops: %w", err)
	}
	return len(all), nil
}
