-- What a message was priced at, and all that its routing was decided by, as octets (decision.rs says which). NULL in rows
-- of older versions.
--
-- A step may be run again after a crash, and MySQL has no ADD COLUMN IF NOT EXISTS. One statement adds all four or none.
SET @step = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = 'messages' AND column_name = 'decision'),
    'DO 0',
    'ALTER TABLE messages ADD COLUMN price BIGINT, ADD COLUMN price_account VARCHAR(256), ADD COLUMN price_state VARCHAR(16), ADD COLUMN decision MEDIUMBLOB');
PREPARE step FROM @step;
EXECUTE step;
DEALLOCATE PREPARE step;
