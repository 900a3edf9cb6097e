-- The number of the key that encrypts `body`, `decision` and the text as submitted in `trace`; NULL: they are not encrypted.
ALTER TABLE messages ADD COLUMN text_key INTEGER;
