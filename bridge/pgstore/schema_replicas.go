package pgstore

// schemaReplicas adds the bridges that use the store.
const schemaReplicas = `
CREATE TABLE replicas (
	name    text PRIMARY KEY,
	machine text NOT NULL,
	version text NOT NULL,
	address text NOT NULL,        -- where it serves clients; empty for nowhere
	since   timestamptz NOT NULL, -- all times are by the clock of the database
	until   timestamptz NOT NULL  -- it is alive until then, unless it renews that
);
`
