package pgstore

// schemaHandles adds what the handles of principals stand for.
const schemaHandles = `
CREATE TABLE handles (
	number    bigint GENERATED ALWAYS AS IDENTITY, -- the oldest has the lowest
	principal text NOT NULL,
	id        text NOT NULL,
	expires   timestamptz NOT NULL,                -- by the clock of the database
	body      bytea NOT NULL,                      -- encrypted
	PRIMARY KEY (principal, id)
);
CREATE INDEX handles_expires ON handles (expires);
`
