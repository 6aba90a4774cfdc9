-- Version 2: dead letters can be replayed, and are noted until their alert has been raised.

-- A replay starts a new run. New rows take these defaults, so that only a replay ever writes them. `run_started_at` is
-- NULL in the first run, which began when the task was accepted (`created_at`).
ALTER TABLE tasks ADD COLUMN run INTEGER NOT NULL DEFAULT 1;
ALTER TABLE tasks ADD COLUMN attempts_before INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN run_started_at INTEGER;

-- Dead letters whose alert is not confirmed yet, ordered by the time of their end. Written only when a task ends as a dead
-- letter, and soon empty again. Version 1 has already raised the alerts of its dead letters.
CREATE TABLE unannounced (
    ended_at INTEGER NOT NULL,
    task     INTEGER NOT NULL,
    PRIMARY KEY (ended_at, task)
) WITHOUT ROWID;

DROP VIEW task_overview;

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
    t.run,
    t.attempt_number - t.attempts_before AS attempts_in_run,
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
