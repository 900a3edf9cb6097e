-- What a message was priced at, and all that its routing was decided by, as octets (decision.rs says which). NULL in rows
-- of older versions.
ALTER TABLE messages
    ADD COLUMN IF NOT EXISTS price BIGINT,
    ADD COLUMN IF NOT EXISTS price_account TEXT,
    ADD COLUMN IF NOT EXISTS price_state TEXT,
    ADD COLUMN IF NOT EXISTS decision BYTEA;
