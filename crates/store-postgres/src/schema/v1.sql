-- Version 1.
--
-- A task is three kinds of rows, and two of them are only ever added:
--   tasks  what was asked for; written once.
--   live   what is still to be done: one narrow row for each task that has not ended. This is the queue, and the only
--          table whose rows change. A task that is due at once lives here for one insert and one delete.
--   log    what happened: a line for each attempt, and for each end; written once.
-- So the two large tables have no dead rows until they are cleaned, and what is vacuumed often is small.
--
-- The tenant leads every key, and no statement joins across tenants: the tables can be distributed by it. Names are in
-- byte order (COLLATE "C"). Times are milliseconds since the epoch, durations are in the unit that their name ends with.
-- `status`: 2 PENDING, 3 IN_FLIGHT, 4 SUCCEEDED, 5 FAILED, 6 EXHAUSTED, 7 CANCELLED.

-- Bodies come last: what is before them is read without them. A large one is an object of its own, and `body_ref` names it.
CREATE TABLE redrive.tasks (
    tenant             text COLLATE "C" NOT NULL,
    id                 uuid NOT NULL,
    created_at         bigint NOT NULL,
    max_attempts       bigint NOT NULL,
    attempt_timeout_ms bigint NOT NULL,
    policy_version     bigint NOT NULL,
    policy             text COLLATE "C" NOT NULL,
    dependency         text COLLATE "C" NOT NULL,
    idempotency_key    text COLLATE "C" NOT NULL,
    fingerprint        bytea NOT NULL,
    target_url         text NOT NULL,
    method             text NOT NULL,
    headers            text,
    overrides          text,
    labels             text,
    body_ref           text COLLATE "C",
    body               bytea NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX tasks_by_key ON redrive.tasks (tenant, idempotency_key);
CREATE INDEX tasks_by_body ON redrive.tasks (tenant, body_ref) WHERE body_ref IS NOT NULL;
-- Only inserts and, at the end of the retention, deletes: those are all that a vacuum is for.
ALTER TABLE redrive.tasks SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
-- Most bodies are JSON or compressed already; trying to compress each one costs more than it saves.
ALTER TABLE redrive.tasks ALTER COLUMN body SET STORAGE EXTERNAL;

-- `lease_until` is NULL while the task waits. `token` is that of the last claim.
CREATE TABLE redrive.live (
    tenant             text COLLATE "C" NOT NULL,
    id                 uuid NOT NULL,
    due_at             bigint NOT NULL,
    lease_since        bigint,
    lease_until        bigint,
    token              bigint NOT NULL,
    attempt_number     bigint NOT NULL,
    attempts_before    bigint NOT NULL,
    run                bigint NOT NULL,
    run_started_at     bigint NOT NULL,
    deadline_at        bigint NOT NULL,
    attempt_timeout_ms bigint NOT NULL,
    backoff_us         bigint,
    policy_version     bigint NOT NULL,
    cancel_requested   boolean NOT NULL,
    dependency         text COLLATE "C" NOT NULL,
    policy             text COLLATE "C" NOT NULL,
    node               text COLLATE "C",
    error_kind         text,
    error_message      text,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX live_due ON redrive.live (tenant, dependency, due_at, id) WHERE lease_until IS NULL;
CREATE INDEX live_leased ON redrive.live (lease_until, id) WHERE lease_until IS NOT NULL;
-- Every row is deleted or updated soon. Vacuumed early, often, and without a cost delay.
ALTER TABLE redrive.live SET (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 10000
);

-- Takes tasks out of the queue one by one, by their keys: a DELETE with a join would walk the queue whenever the planner
-- believes that it is small.
CREATE FUNCTION redrive.drop_live(tenants text[], ids uuid[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    FOR place IN 1 .. coalesce(cardinality(ids), 0) LOOP
        DELETE FROM redrive.live WHERE live.tenant = tenants[place] AND live.id = ids[place];
    END LOOP;
END
$$;

-- By token, not by number: a claim is settled once, whatever number the settlement gives its attempt. A line without
-- `outcome` is the end of a task of which nothing was sent. A line with `status` is an end, with the state in which it
-- left the task; of a task that is not live, the line with the highest token is its end.
CREATE TABLE redrive.log (
    tenant          text COLLATE "C" NOT NULL,
    id              uuid NOT NULL,
    token           bigint NOT NULL,
    number          bigint NOT NULL,
    started_at      bigint,
    duration_us     bigint,
    backoff_us      bigint,
    outcome         text,
    response_status bigint,
    error_kind      text,
    error_message   text,
    status             smallint,
    reason             text,
    ended_at           bigint,
    attempt_number     bigint,
    attempts_before    bigint,
    run                bigint,
    run_started_at     bigint,
    deadline_at        bigint,
    task_backoff_us    bigint,
    cancel_requested   boolean,
    last_error_kind    text,
    last_error_message text,
    answer_status    bigint,
    answer_headers   text,
    answer_truncated boolean,
    answer_body_ref  text COLLATE "C",
    answer_body      bytea,
    PRIMARY KEY (tenant, id, token)
);
CREATE INDEX log_by_body ON redrive.log (tenant, answer_body_ref) WHERE answer_body_ref IS NOT NULL;
ALTER TABLE redrive.log SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
ALTER TABLE redrive.log ALTER COLUMN answer_body SET STORAGE EXTERNAL;

-- Tasks that ended FAILED or EXHAUSTED. `announced` once their alert has been raised.
CREATE TABLE redrive.dead_letters (
    tenant    text COLLATE "C" NOT NULL,
    id        uuid NOT NULL,
    ended_at  bigint NOT NULL,
    run       bigint NOT NULL,
    announced boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX dead_letters_unannounced ON redrive.dead_letters (ended_at, tenant, id) WHERE NOT announced;

-- How many tasks there are, by what they pin and where they stand: the sum of its rows. Every change adds rows, so that
-- no transaction waits for another; now and then the rows are added up.
CREATE TABLE redrive.task_counts (
    tenant         text COLLATE "C" NOT NULL,
    policy         text COLLATE "C" NOT NULL,
    policy_version bigint NOT NULL,
    status         smallint NOT NULL,
    tasks          bigint NOT NULL
);
ALTER TABLE redrive.task_counts SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Stays when a policy is deleted: a version's number never comes to mean something else. Also the list of tenants.
CREATE TABLE redrive.policies (
    tenant text COLLATE "C" NOT NULL,
    policy text COLLATE "C" NOT NULL,
    newest bigint NOT NULL,
    PRIMARY KEY (tenant, policy)
);

-- A deleted version stays, marked, for as long as an ended task refers to it. The numbers that a new task takes from its
-- policy stand beside the spec, for `enqueue`; they are NULL if the spec is invalid.
CREATE TABLE redrive.policy_versions (
    tenant             text COLLATE "C" NOT NULL,
    policy             text COLLATE "C" NOT NULL,
    version            bigint NOT NULL,
    created_at         bigint NOT NULL,
    max_attempts       bigint,
    attempt_timeout_ms bigint,
    total_budget_ms    bigint,
    deleted            boolean NOT NULL DEFAULT false,
    spec               text NOT NULL,
    PRIMARY KEY (tenant, policy, version)
);

-- The objects that hold large bodies: those that are kept, one for each content, and those that are to be deleted. `body`
-- is the whole reference, as tasks have it. A transaction that makes a task refer to an object locks the
-- object's row, so that it is not marked for deletion.
CREATE TABLE redrive.blobs (
    tenant     text COLLATE "C" NOT NULL,
    body       text COLLATE "C" NOT NULL,
    hash       text COLLATE "C" NOT NULL,
    adopted_at bigint NOT NULL,
    condemned  boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, body)
);
CREATE UNIQUE INDEX blobs_kept ON redrive.blobs (tenant, hash) WHERE NOT condemned;

-- Single values that the store keeps about itself.
CREATE TABLE redrive.meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);

-- Processes that have sent a heartbeat and have not stopped.
CREATE TABLE redrive.nodes (
    node        text COLLATE "C" PRIMARY KEY,
    started_at  bigint NOT NULL,
    seen_at     bigint NOT NULL,
    every_ms    bigint NOT NULL,
    in_flight   bigint NOT NULL,
    is_draining boolean NOT NULL,
    version     text NOT NULL,
    address     text NOT NULL
) WITH (fillfactor = 50);

-- What the guards of all processes counted, by lane and second.
CREATE TABLE redrive.guard_tallies (
    tenant     text COLLATE "C" NOT NULL,
    dependency text COLLATE "C" NOT NULL,
    second     bigint NOT NULL,
    first      bigint NOT NULL,
    retries    bigint NOT NULL,
    failures   bigint NOT NULL,
    PRIMARY KEY (tenant, dependency, second)
) WITH (fillfactor = 50);

-- Lanes that are held back for all processes.
CREATE TABLE redrive.guard_holds (
    tenant     text COLLATE "C" NOT NULL,
    dependency text COLLATE "C" NOT NULL,
    until      bigint NOT NULL,
    PRIMARY KEY (tenant, dependency)
) WITH (fillfactor = 50);

-- For people with psql.
CREATE VIEW redrive.task_overview AS
SELECT
    tasks.id AS task,
    tasks.tenant,
    tasks.dependency,
    CASE WHEN live.id IS NULL THEN
        (ARRAY['SUCCEEDED', 'FAILED', 'EXHAUSTED', 'CANCELLED'])[ended.status - 3]
    WHEN live.lease_until IS NULL THEN 'PENDING' ELSE 'IN_FLIGHT' END AS status,
    ended.reason,
    coalesce(live.attempt_number, ended.attempt_number) AS attempts,
    coalesce(live.run, ended.run) AS run,
    tasks.max_attempts,
    tasks.policy || ' v' || tasks.policy_version AS policy,
    tasks.idempotency_key,
    to_timestamp(tasks.created_at / 1000.0) AS created,
    to_timestamp(live.due_at / 1000.0) AS next_attempt,
    to_timestamp(ended.ended_at / 1000.0) AS ended,
    live.node,
    coalesce(live.error_kind, ended.last_error_kind) AS error_kind,
    coalesce(live.error_message, ended.last_error_message) AS error_message,
    tasks.method,
    tasks.target_url
FROM redrive.tasks
LEFT JOIN redrive.live ON live.tenant = tasks.tenant AND live.id = tasks.id
LEFT JOIN LATERAL (
    SELECT * FROM redrive.log
    WHERE live.id IS NULL AND log.tenant = tasks.tenant AND log.id = tasks.id
    ORDER BY log.token DESC
    LIMIT 1
) AS ended ON true;
