-- Version 7: idempotency records, the caller's own id of the work that a task belongs to, and the caller's trace.
ALTER TABLE tasks ADD COLUMN correlation_id TEXT;
ALTER TABLE tasks ADD COLUMN trace_parent TEXT;

-- The operations of the records, and the inboxes of consumers (`inbox/NAME`). A row is removed with the last record of
-- its operation, and its number is never used again (AUTOINCREMENT).
CREATE TABLE operations (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    name   TEXT NOT NULL,
    UNIQUE (tenant, name)
);

-- `state`: 2 IN_PROGRESS, 3 SUCCEEDED, 4 FAILED_RETRYABLE, 5 FAILED_FINAL, 6 RELEASED.
-- Numbers are never used twice: they are places in a list. The response's body comes last and is its bytes, or the text of
-- a blob as in `answers.body`; without a response it is NULL, as `response_status` is.
CREATE TABLE records (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    operation        INTEGER NOT NULL,
    name             TEXT NOT NULL,
    state            INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    started_at       INTEGER NOT NULL,
    lease_until      INTEGER NOT NULL,
    retention_ms     INTEGER NOT NULL,
    epoch            INTEGER NOT NULL,
    execution        BLOB NOT NULL,
    request_hash     BLOB NOT NULL,
    resource_kind    TEXT,
    resource_id      TEXT,
    response_status  INTEGER,
    response_headers TEXT,
    body             BLOB
);

CREATE INDEX records_expiry ON records (expires_at);

-- For lists and counts. Its entries are small, and new ones go to the end of their operation and state. Counters that are
-- written with each commit cost more: one row for each operation and state that the commit touched.
CREATE INDEX records_by_state ON records (operation, state);

-- The blobs that records refer to. It has no entry for other rows.
CREATE INDEX records_stored_bodies ON records (body) WHERE typeof(body) = 'text';

-- The keys of records by a hash of tenant, operation and name, filled in bulk like `keys`.
CREATE TABLE record_keys (
    hash   INTEGER NOT NULL,
    record INTEGER NOT NULL,
    PRIMARY KEY (hash, record)
) WITHOUT ROWID;

-- For people with the sqlite3 shell.
CREATE VIEW record_overview AS
SELECT
    n.name AS tenant,
    o.name AS operation,
    r.name,
    CASE r.state
        WHEN 2 THEN 'IN_PROGRESS' WHEN 3 THEN 'SUCCEEDED' WHEN 4 THEN 'FAILED_RETRYABLE'
        WHEN 5 THEN 'FAILED_FINAL' WHEN 6 THEN 'RELEASED'
    END AS state,
    r.epoch,
    lower(hex(r.execution)) AS execution,
    datetime(r.started_at / 1000, 'unixepoch') AS started,
    datetime(r.lease_until / 1000, 'unixepoch') AS lease_until,
    datetime(r.updated_at / 1000, 'unixepoch') AS updated,
    datetime(r.expires_at / 1000, 'unixepoch') AS expires,
    r.response_status,
    r.resource_kind,
    r.resource_id
FROM records r
LEFT JOIN operations o ON o.id = r.operation
LEFT JOIN tenants n ON n.id = o.tenant;
