package pgstore

// schemaDocuments makes the table of documents; see package documents.
const schemaDocuments = `
CREATE TABLE documents (
	kind    text COLLATE "C" NOT NULL,
	name    text COLLATE "C" NOT NULL,
	body    bytea NOT NULL, -- encrypted
	changed timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (kind, name)
);
INSERT INTO heads VALUES ('documents', 0);
`
