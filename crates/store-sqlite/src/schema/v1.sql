-- Version 1.
--
-- What is written often is narrow and keyed by a growing integer, so that new rows go to the right edge of each tree.
-- What is written once (requests, answers) has tables of its own. Times are milliseconds since the epoch.

-- The only state that is neither a task nor a policy; see `ops/meta.rs` for the names.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- Names that occur in millions of rows get a number. Numbers are never used twice (AUTOINCREMENT): they are cached.
CREATE TABLE tenants (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE lanes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     INTEGER NOT NULL,
    dependency TEXT NOT NULL,
    UNIQUE (tenant, dependency)
);

-- Stays when a policy is deleted: a version's number never comes to mean something else.
CREATE TABLE policies (
    tenant  INTEGER NOT NULL,
    policy  TEXT NOT NULL,
    newest  INTEGER NOT NULL,
    PRIMARY KEY (tenant, policy)
) WITHOUT ROWID;

-- A deleted version stays, marked, for as long as an ended task refers to it.
CREATE TABLE policy_versions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     INTEGER NOT NULL,
    policy     TEXT NOT NULL,
    version    INTEGER NOT NULL,
    spec       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    deleted    INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, policy, version)
);

-- How many tasks refer to a version: all of them, and those that have not ended.
CREATE TABLE policy_uses (
    version INTEGER PRIMARY KEY,
    kept    INTEGER NOT NULL,
    live    INTEGER NOT NULL
);

CREATE TABLE task_counts (
    tenant INTEGER NOT NULL,
    status INTEGER NOT NULL,
    tasks  INTEGER NOT NULL,
    PRIMARY KEY (tenant, status)
) WITHOUT ROWID;

-- `id` is the growing part of the task's id, `tail` its random rest.
-- `status`: 2 PENDING, 3 IN_FLIGHT, 4 SUCCEEDED, 5 FAILED, 6 EXHAUSTED, 7 CANCELLED.
CREATE TABLE tasks (
    id                 INTEGER PRIMARY KEY,
    tail               INTEGER NOT NULL,
    tenant             INTEGER NOT NULL,
    lane               INTEGER NOT NULL,
    policy             INTEGER NOT NULL,
    status             INTEGER NOT NULL,
    attempt_number     INTEGER NOT NULL,
    max_attempts       INTEGER NOT NULL,
    attempt_timeout_ms INTEGER NOT NULL,
    created_at         INTEGER NOT NULL,
    deadline_at        INTEGER NOT NULL,
    next_attempt_at    INTEGER,
    ended_at           INTEGER,
    token              INTEGER NOT NULL,
    lease_since        INTEGER NOT NULL,
    lease_until        INTEGER NOT NULL,
    cancel_requested   INTEGER NOT NULL,
    backoff_us         INTEGER,
    reason             TEXT,
    error_kind         TEXT,
    error_message      TEXT,
    idempotency_key    TEXT NOT NULL
);

CREATE INDEX tasks_due ON tasks (lane, next_attempt_at) WHERE status = 2;
CREATE INDEX tasks_in_flight ON tasks (lease_until) WHERE status = 3;
CREATE INDEX tasks_dead_letters ON tasks (tenant) WHERE status IN (5, 6);

-- Bodies come last: a column behind a large one is found only by walking through all of its pages.
CREATE TABLE requests (
    task        INTEGER PRIMARY KEY,
    target_url  TEXT NOT NULL,
    method      TEXT NOT NULL,
    headers     TEXT,
    overrides   TEXT,
    labels      TEXT,
    fingerprint BLOB NOT NULL,
    body        BLOB NOT NULL
);

-- By token, not by number: a claim is settled once, whatever number the settlement gives its attempt.
CREATE TABLE attempts (
    task            INTEGER NOT NULL,
    token           INTEGER NOT NULL,
    number          INTEGER NOT NULL,
    started_at      INTEGER NOT NULL,
    duration_us     INTEGER,
    outcome         TEXT NOT NULL,
    response_status INTEGER,
    error_kind      TEXT,
    error_message   TEXT,
    backoff_us      INTEGER,
    PRIMARY KEY (task, token)
) WITHOUT ROWID;

CREATE TABLE answers (
    task      INTEGER PRIMARY KEY,
    status    INTEGER NOT NULL,
    headers   TEXT,
    truncated INTEGER NOT NULL,
    body      BLOB NOT NULL
);

-- Idempotency keys by a hash of tenant and key, filled in bulk (see `keys/`): the newest are only in memory.
CREATE TABLE keys (
    hash INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (hash, task)
) WITHOUT ROWID;

-- For people with the sqlite3 shell.
CREATE VIEW task_overview AS
SELECT
    format('%08x-%04x-7%03x-%04x-%012x',
        (t.id >> 31) & 0xFFFFFFFF, (t.id >> 15) & 0xFFFF, (t.id >> 3) & 0xFFF,
        0x8000 | ((t.id & 7) << 11) | ((t.tail >> 48) & 0x7FF), t.tail & 0xFFFFFFFFFFFF) AS task,
    n.name AS tenant,
    l.dependency,
    CASE t.status
        WHEN 2 THEN 'PENDING' WHEN 3 THEN 'IN_FLIGHT' WHEN 4 THEN 'SUCCEEDED'
        WHEN 5 THEN 'FAILED' WHEN 6 THEN 'EXHAUSTED' WHEN 7 THEN 'CANCELLED'
    END AS status,
    t.reason,
    t.attempt_number AS attempts,
    t.max_attempts,
    p.policy || ' v' || p.version AS policy,
    t.idempotency_key,
    datetime(t.created_at / 1000, 'unixepoch') AS created,
    datetime(t.next_attempt_at / 1000, 'unixepoch') AS next_attempt,
    datetime(t.deadline_at / 1000, 'unixepoch') AS deadline,
    datetime(t.ended_at / 1000, 'unixepoch') AS ended,
    t.error_kind,
    t.error_message,
    r.method,
    r.target_url
FROM tasks t
LEFT JOIN tenants n ON n.id = t.tenant
LEFT JOIN lanes l ON l.id = t.lane
LEFT JOIN policy_versions p ON p.id = t.policy
LEFT JOIN requests r ON r.task = t.id;
