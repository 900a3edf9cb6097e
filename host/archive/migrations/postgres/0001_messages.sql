-- Ids grow with the time of acceptance and are the only order that rows have; the indexes on numbers hold
-- the id too and therefore give their messages by time. Times are milliseconds since the Unix epoch.
CREATE TABLE IF NOT EXISTS messages (
    id BIGINT PRIMARY KEY,
    accepted_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    direction TEXT NOT NULL,
    account TEXT NOT NULL,
    peer TEXT NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    source_ton SMALLINT NOT NULL,
    source_npi SMALLINT NOT NULL,
    destination TEXT COLLATE "C" NOT NULL,
    destination_ton SMALLINT NOT NULL,
    destination_npi SMALLINT NOT NULL,
    state TEXT NOT NULL,
    error BIGINT NOT NULL,
    peer_message_id TEXT,
    attempts SMALLINT NOT NULL,
    priority SMALLINT NOT NULL,
    data_coding SMALLINT NOT NULL,
    udhi SMALLINT NOT NULL,
    body BYTEA,
    router TEXT NOT NULL,
    router_version TEXT NOT NULL,
    note TEXT,
    trace TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_source ON messages (source, id);
CREATE INDEX IF NOT EXISTS messages_destination ON messages (destination, id);

-- Smallest and largest id of the messages accepted in an hour: turns a range of time into a range of ids.
CREATE TABLE IF NOT EXISTS hours (
    hour BIGINT PRIMARY KEY,
    first_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS statistics (
    hour BIGINT NOT NULL,
    account TEXT NOT NULL,
    peer TEXT NOT NULL,
    direction TEXT NOT NULL,
    measure TEXT NOT NULL,
    code BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (hour, account, peer, direction, measure, code)
);
