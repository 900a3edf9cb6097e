-- When the content of a message was erased, in milliseconds since the Unix epoch; NULL: it was not.
--
-- A step may be run again after a crash, and MySQL has no ADD COLUMN IF NOT EXISTS.
SET @step = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = 'messages' AND column_name = 'content_erased_at'),
    'DO 0',
    'ALTER TABLE messages ADD COLUMN content_erased_at BIGINT');
PREPARE step FROM @step;
EXECUTE step;
DEALLOCATE PREPARE step;

-- Up to which id the contents of accounts with a text retention are erased.
CREATE TABLE IF NOT EXISTS text_retention (
    account VARCHAR(128) NOT NULL PRIMARY KEY,
    erased_to BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
