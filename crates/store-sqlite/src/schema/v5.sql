-- Version 5: a row that a program cannot read is set aside, so that it does not block other rows.

-- `kind` and `row` say which row: 'task' and its id, 'policy version' and its id, 'blob' and its record. A task that is set
-- aside has status 1, so that it is in no index; `was` is its own status, for a program that can read it.
CREATE TABLE set_aside (
    kind    TEXT NOT NULL,
    row     TEXT NOT NULL,
    was     INTEGER,
    problem TEXT NOT NULL,
    PRIMARY KEY (kind, row)
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
        WHEN 1 THEN 'SET_ASIDE' WHEN 2 THEN 'PENDING' WHEN 3 THEN 'IN_FLIGHT' WHEN 4 THEN 'SUCCEEDED'
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
    -- A view cannot know which parameters are secret: nothing behind `?` or `#` is shown, and no user or password.
    (SELECT scheme
            || CASE WHEN instr(authority, '@') = 0 THEN authority
                    ELSE '***@' || substr(authority, length(rtrim(authority, replace(authority, '@', ''))) + 1) END
            || path || CASE WHEN is_cut THEN '?***' ELSE '' END
     FROM (SELECT scheme, is_cut, substr(rest, 1, slash - 1) AS authority, substr(rest, slash) AS path
           FROM (SELECT scheme, is_cut, rest, coalesce(nullif(instr(rest, '/'), 0), length(rest) + 1) AS slash
                 FROM (SELECT substr(plain, 1, host - 1) AS scheme, substr(plain, host) AS rest, is_cut
                       FROM (SELECT plain, is_cut, coalesce(nullif(instr(plain, '://'), 0) + 3, 1) AS host
                             FROM (SELECT substr(r.target_url, 1, cut - 1) AS plain, cut <= length(r.target_url) AS is_cut
                                   FROM (SELECT min(
                                       coalesce(nullif(instr(r.target_url, '?'), 0), length(r.target_url) + 1),
                                       coalesce(nullif(instr(r.target_url, '#'), 0), length(r.target_url) + 1)
                                   ) AS cut))))))) AS target_url
FROM tasks t
LEFT JOIN tenants n ON n.id = t.tenant
LEFT JOIN lanes l ON l.id = t.lane
LEFT JOIN policy_versions p ON p.id = t.policy
LEFT JOIN requests r ON r.task = t.id;
