-- Ids grow with the time of acceptance and are the only order that rows have; an index on a number holds the id too and
-- therefore gives its messages by time. Times are milliseconds since the Unix epoch.
CREATE TABLE IF NOT EXISTS messages (
    id BIGINT NOT NULL PRIMARY KEY,
    accepted_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    direction VARCHAR(8) NOT NULL,
    account VARCHAR(128) NOT NULL,
    peer VARCHAR(128) NOT NULL,
    source VARCHAR(256) NOT NULL,
    source_ton SMALLINT NOT NULL,
    source_npi SMALLINT NOT NULL,
    destination VARCHAR(256) NOT NULL,
    destination_ton SMALLINT NOT NULL,
    destination_npi SMALLINT NOT NULL,
    state VARCHAR(16) NOT NULL,
    error BIGINT NOT NULL,
    peer_message_id VARCHAR(512),
    attempts SMALLINT NOT NULL,
    priority SMALLINT NOT NULL,
    data_coding SMALLINT NOT NULL,
    udhi SMALLINT NOT NULL,
    body MEDIUMBLOB,
    router VARCHAR(256) NOT NULL,
    router_version VARCHAR(128) NOT NULL,
    note TEXT,
    trace MEDIUMTEXT NOT NULL,
    INDEX messages_source (source),
    INDEX messages_destination (destination)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Smallest and largest id of the messages accepted in an hour: turns a range of time into a range of ids.
CREATE TABLE IF NOT EXISTS hours (
    hour BIGINT NOT NULL PRIMARY KEY,
    first_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS statistics (
    hour BIGINT NOT NULL,
    account VARCHAR(128) NOT NULL,
    peer VARCHAR(128) NOT NULL,
    direction VARCHAR(8) NOT NULL,
    measure VARCHAR(16) NOT NULL,
    code BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (hour, account, peer, direction, measure, code)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
