-- What a message was priced at, and all that its routing was decided by, as octets (decision.rs says which). NULL in rows
-- of older versions.
ALTER TABLE messages ADD COLUMN price INTEGER;
ALTER TABLE messages ADD COLUMN price_account TEXT;
ALTER TABLE messages ADD COLUMN price_state TEXT;
ALTER TABLE messages ADD COLUMN decision BLOB;
