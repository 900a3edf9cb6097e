-- Ids grow with the time of acceptance and are the only order that rows have; an index on a number therefore gives its
-- messages by time. Times are milliseconds since the Unix epoch.
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY,
    accepted_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    direction TEXT NOT NULL,
    account TEXT NOT NULL,
    peer TEXT NOT NULL,
    source TEXT NOT NULL,
    source_ton INTEGER NOT NULL,
    source_npi INTEGER NOT NULL,
    destination TEXT NOT NULL,
    destination_ton INTEGER NOT NULL,
    destination_npi INTEGER NOT NULL,
    state TEXT NOT NULL,
    error INTEGER NOT NULL,
    peer_message_id TEXT,
    attempts INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    data_coding INTEGER NOT NULL,
    udhi INTEGER NOT NULL,
    body BLOB,
    router TEXT NOT NULL,
    router_version TEXT NOT NULL,
    note TEXT,
    trace TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_source ON messages (source);
CREATE INDEX IF NOT EXISTS messages_destination ON messages (destination);

-- Smallest and largest id of the messages accepted in an hour: turns a range of time into a range of ids.
CREATE TABLE IF NOT EXISTS hours (
    hour INTEGER PRIMARY KEY,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS statistics (
    hour INTEGER NOT NULL,
    account TEXT NOT NULL,
    peer TEXT NOT NULL,
    direction TEXT NOT NULL,
    measure TEXT NOT NULL,
    code INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (hour, account, peer, direction, measure, code)
) WITHOUT ROWID;
