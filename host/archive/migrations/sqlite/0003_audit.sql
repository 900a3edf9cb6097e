-- The audit logs of the nodes of a cluster. A node that has lost its disk begins another log. Serials count the records of a log from
-- 1 without a gap.
CREATE TABLE IF NOT EXISTS audit (
    node TEXT NOT NULL,
    log TEXT NOT NULL,
    serial INTEGER NOT NULL,
    at INTEGER NOT NULL,
    caller TEXT NOT NULL,
    operation TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    address TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status INTEGER NOT NULL,
    PRIMARY KEY (node, log, serial)
);
