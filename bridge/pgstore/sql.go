package pgstore

import (
	"database/sql"

	"github.com/jackc/pgx/v5/stdlib"
)

// SQL opens the database of a store for tables beside the store's own, in its schema,
// which must be there. It connects with the first use.
func SQL(o Options) (*sql.DB, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*o.config)
	db.SetMaxOpenConns(8)
	return db, nil
}
