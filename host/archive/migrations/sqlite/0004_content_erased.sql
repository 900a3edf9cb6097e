-- When the content of a message was erased, in milliseconds since the Unix epoch; NULL: it was not.
ALTER TABLE messages ADD COLUMN content_erased_at INTEGER;

-- Up to which id the contents of accounts with a text retention are erased.
CREATE TABLE IF NOT EXISTS text_retention (
    account TEXT PRIMARY KEY,
    erased_to INTEGER NOT NULL
) WITHOUT ROWID;
