-- The number of the key that encrypts `body`, `decision` and the text as submitted in `trace`; NULL: they are not encrypted.
--
-- A step may be run again after a crash, and MySQL has no ADD COLUMN IF NOT EXISTS.
SET @step = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = 'messages' AND column_name = 'text_key'),
    'DO 0',
    'ALTER TABLE messages ADD COLUMN text_key BIGINT');
PREPARE step FROM @step;
EXECUTE step;
DEALLOCATE PREPARE step;
