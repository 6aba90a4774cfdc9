-- Version 4: a node says how far its machine's clock is off and whether it claims, rows that a program cannot read are
-- set aside, and `redrive.enqueue` checks headers as the API does and works before PREPARE TRANSACTION.
--
-- As in version 2, the lock is asked for again and again, so that heartbeats do not queue up behind a long transaction.
SET LOCAL lock_timeout = '2s';
ALTER TABLE redrive.nodes
    ADD COLUMN clock_ahead_ms bigint NOT NULL DEFAULT 0,
    ADD COLUMN claims         boolean NOT NULL DEFAULT true;

-- Rows that a program could not read, or that PostgreSQL refused to change. `kind` says what `name` is: the id of a
-- 'task', the number and the name of a 'policy version', the record of a 'blob'.
--
-- A task that has not ended is hidden: in `live` it has a lease without a beginning that never ends, so neither claims nor
-- the search for expired leases find it, also those of programs of the version before. The lease that it had, if any, is
-- kept here, and is given back when the row is taken back. A dead letter counts as announced until then.
CREATE TABLE redrive.set_aside (
    kind            text COLLATE "C" NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    name            text COLLATE "C" NOT NULL,
    problem         text NOT NULL,
    is_refused      boolean NOT NULL DEFAULT false,
    node            text COLLATE "C" NOT NULL,
    set_aside_at    timestamptz NOT NULL DEFAULT now(),
    was_lease_since bigint,
    was_lease_until bigint,
    was_node        text COLLATE "C",
    was_unannounced boolean NOT NULL DEFAULT false,
    PRIMARY KEY (kind, tenant, name)
);

-- As in version 3, and it shows which tasks are set aside.
CREATE OR REPLACE VIEW redrive.task_overview AS
SELECT
    tasks.id AS task,
    tasks.tenant,
    tasks.dependency,
    CASE WHEN live.id IS NULL THEN
        (ARRAY['SUCCEEDED', 'FAILED', 'EXHAUSTED', 'CANCELLED'])[ended.status - 3]
    WHEN live.lease_until IS NULL THEN 'PENDING'
    WHEN live.lease_until = 9223372036854775807 AND live.lease_since IS NULL THEN 'SET_ASIDE'
    ELSE 'IN_FLIGHT' END AS status,
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
    regexp_replace(
        regexp_replace(tasks.target_url, '^([^:/?#]+://)[^/?#]*@', '\1***@'), '[?#].*$', '?***'
    ) AS target_url
FROM redrive.tasks
LEFT JOIN redrive.live ON live.tenant = tasks.tenant AND live.id = tasks.id
LEFT JOIN LATERAL (
    SELECT * FROM redrive.log
    WHERE live.id IS NULL AND log.tenant = tasks.tenant AND log.id = tasks.id
    ORDER BY log.token DESC
    LIMIT 1
) AS ended ON true;

-- Lanes with tasks that `redrive.enqueue` made without notifying. Every process reads them every few seconds; the first
-- one deletes them. Without a key, so that no transaction waits for another.
CREATE TABLE redrive.untold (
    tenant     text COLLATE "C" NOT NULL,
    dependency text COLLATE "C" NOT NULL,
    due_at     bigint NOT NULL
);
ALTER TABLE redrive.untold SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- As in version 3, with the API's limit on their size, and with the same rules for a content type that is implied: it may come
-- from a caller of `enqueue_bytes`.
CREATE OR REPLACE FUNCTION redrive.header_fields(given jsonb, implied_type text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    fields jsonb;
    field jsonb;
    name text;
    has_host boolean := false;
    bytes bigint := 0;
BEGIN
    IF given IS NULL OR jsonb_typeof(given) = 'null' THEN
        fields := '[]';
    ELSIF jsonb_typeof(given) = 'object' THEN
        SELECT coalesce(jsonb_agg(jsonb_build_array(pair.key, value.item) ORDER BY pair.place, value.place), '[]')
        INTO fields
        FROM jsonb_each(given) WITH ORDINALITY AS pair (key, item, place)
        CROSS JOIN LATERAL jsonb_array_elements(
            CASE WHEN jsonb_typeof(pair.item) = 'array' THEN pair.item ELSE jsonb_build_array(pair.item) END
        ) WITH ORDINALITY AS value (item, place);
    ELSIF jsonb_typeof(given) = 'array' THEN
        fields := given;
    ELSE
        PERFORM redrive.refuse('headers must be a JSON object of texts, or a list of [name, value]');
    END IF;
    IF jsonb_array_length(fields) > 100 THEN
        PERFORM redrive.refuse('headers must be at most 100 fields, got ' || jsonb_array_length(fields));
    END IF;
    FOR field IN SELECT jsonb_array_elements(fields) LOOP
        IF jsonb_typeof(field) <> 'array' OR jsonb_array_length(field) <> 2 OR jsonb_typeof(field -> 0) <> 'string'
            OR jsonb_typeof(field -> 1) <> 'string' THEN
            PERFORM redrive.refuse('headers must be texts, got ' || left(field::text, 100));
        END IF;
        name := field ->> 0;
        bytes := bytes + octet_length(name) + octet_length(field ->> 1);
        IF name !~ '^[A-Za-z0-9!#$%&''*+.^_`|~-]+$' THEN
            PERFORM redrive.refuse('headers: ' || quote_literal(left(name, 100)) || ' is no header name');
        ELSIF lower(name COLLATE "C") IN ('idempotency-key', 'redrive-task-id', 'redrive-attempt') THEN
            PERFORM redrive.refuse('headers: ' || name || ' is set by Redrive on every attempt');
        ELSIF lower(name COLLATE "C") IN ('connection', 'content-length', 'transfer-encoding', 'keep-alive', 'upgrade', 'te',
            'trailer', 'proxy-connection', 'expect') THEN
            PERFORM redrive.refuse('headers: ' || name || ' is set when the request is sent');
        ELSIF field ->> 1 ~ '[\x01-\x08\x0a-\x1f\x7f]' THEN
            PERFORM redrive.refuse('headers: ' || name || ' must not contain control characters');
        ELSIF lower(name COLLATE "C") = 'host' AND has_host THEN
            PERFORM redrive.refuse('headers: ' || name || ' must be given only once');
        ELSIF lower(name COLLATE "C") = 'host' AND field ->> 1 ~ '^[ \t]*$' THEN
            PERFORM redrive.refuse('headers: ' || name || ' must not be empty');
        END IF;
        has_host := has_host OR lower(name COLLATE "C") = 'host';
    END LOOP;
    IF bytes > 32768 THEN
        PERFORM redrive.refuse('headers must be at most 32768 bytes in all, got ' || bytes);
    ELSIF implied_type ~ '[\x01-\x08\x0a-\x1f\x7f]' OR octet_length(implied_type) > 255 THEN
        PERFORM redrive.refuse('the content type must be at most 255 bytes without control characters');
    END IF;
    IF implied_type IS NOT NULL AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(fields) AS known (pair) WHERE lower((known.pair ->> 0) COLLATE "C") = 'content-type'
    ) THEN
        fields := fields || jsonb_build_array(jsonb_build_array('content-type', implied_type));
    END IF;
    RETURN fields;
END
$$;

-- As in version 1, but it notifies only where that does no harm. With the rights of the schema's owner: a role with USAGE on
-- the schema may enqueue, and needs no right to the tables. Without scans of whole tables, whatever statistics the caller's
-- session has.
CREATE OR REPLACE FUNCTION redrive.enqueue_bytes(
    given_url text, given_body bytea, implied_type text, given_method text, given_headers jsonb, given_policy text,
    given_key text, given_tenant text, given_dependency text, given_not_before timestamptz, given_labels jsonb
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    lane text;
    fields jsonb;
    labels jsonb := coalesce(given_labels, '{}');
    key text := coalesce(given_key, gen_random_uuid()::text);
    now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    not_before_ms bigint := CASE WHEN isfinite(given_not_before) THEN floor(extract(epoch FROM given_not_before) * 1000) END;
    due_ms bigint;
    print bytea;
    rules record;
    made uuid;
    owner record;
    -- Planned each time: the caller's session would remember a plan for a table that was empty.
    find_owner text := 'SELECT id, fingerprint FROM redrive.tasks WHERE tenant = $1 AND idempotency_key = $2';
BEGIN
    lane := redrive.origin(given_url);
    fields := redrive.header_fields(given_headers, implied_type);
    PERFORM redrive.check_labels(labels);
    IF given_method IS NULL OR given_method !~ '^[A-Za-z0-9!#$%&''*+.^_`|~-]{1,64}$' THEN
        PERFORM redrive.refuse('method must be a method such as POST');
    ELSIF given_method = 'CONNECT' THEN
        PERFORM redrive.refuse('method must not be CONNECT: it opens a tunnel and delivers nothing');
    ELSIF key !~ '^[!-~]{1,64}$' THEN
        PERFORM redrive.refuse('idempotency_key must be 1 to 64 visible ASCII characters');
    ELSIF given_policy IS NULL OR given_policy !~ '^[A-Za-z0-9._:-]{1,100}$' THEN
        PERFORM redrive.refuse('policy_id must be 1 to 100 letters, digits, ''.'', ''_'', ''-'' and '':''');
    ELSIF NOT isfinite(given_not_before) THEN
        PERFORM redrive.refuse('not_before must be a moment');
    ELSIF given_tenant IS NULL OR given_tenant !~ '^[A-Za-z0-9._:-]{1,64}$' THEN
        PERFORM redrive.refuse('tenant must be 1 to 64 letters, digits, ''.'', ''_'', ''-'' and '':''');
    ELSIF given_dependency !~ '^[!-~]+$' OR length(given_dependency) > 300 THEN
        PERFORM redrive.refuse('dependency must be 1 to 300 visible ASCII characters');
    ELSIF length(given_body) > 1048576 THEN
        PERFORM redrive.refuse('body must be at most 1048576 bytes, got ' || length(given_body));
    END IF;
    lane := coalesce(given_dependency, lane);
    print := redrive.fingerprint(
        given_method, given_url, coalesce(given_body, ''), given_policy, given_dependency, not_before_ms, fields, labels
    );

    SELECT version, max_attempts, attempt_timeout_ms, total_budget_ms INTO rules
    FROM redrive.policy_versions
    WHERE tenant = given_tenant AND policy = given_policy AND NOT deleted
    ORDER BY version DESC
    LIMIT 1
    FOR KEY SHARE;
    IF rules.max_attempts IS NULL THEN
        -- Whoever asks again for a task that there is gets it, whatever has become of the policy.
        EXECUTE find_owner INTO owner USING given_tenant, key;
        IF owner.id IS NULL THEN
            RAISE EXCEPTION 'redrive.enqueue: there is no policy % of tenant %', quote_literal(given_policy),
                quote_literal(given_tenant) USING ERRCODE = 'RD002';
        END IF;
    END IF;
    due_ms := greatest(now_ms, coalesce(not_before_ms, 0));
    IF due_ms >= now_ms + rules.total_budget_ms THEN
        PERFORM redrive.refuse('not_before must leave time for an attempt within the policy''s totalBudgetMs ('
            || rules.total_budget_ms || ')');
    END IF;

    IF rules.max_attempts IS NOT NULL THEN
        INSERT INTO redrive.tasks (
            tenant, id, created_at, max_attempts, attempt_timeout_ms, policy_version, policy, dependency,
            idempotency_key, fingerprint, target_url, method, headers, labels, body
        ) VALUES (
            given_tenant, redrive.make_task_id(now_ms), now_ms, rules.max_attempts, rules.attempt_timeout_ms,
            rules.version, given_policy, lane, key, print, given_url, given_method,
            CASE WHEN fields <> '[]' THEN fields::text END, CASE WHEN labels <> '{}' THEN labels::text END,
            coalesce(given_body, '')
        )
        ON CONFLICT (tenant, idempotency_key) DO NOTHING
        RETURNING id INTO made;
    END IF;
    IF made IS NULL THEN
        EXECUTE find_owner INTO owner USING given_tenant, key;
        IF owner.id IS NULL THEN
            RAISE EXCEPTION 'redrive.enqueue: the key was taken and is free again; try once more'
                USING ERRCODE = 'serialization_failure';
        ELSIF owner.fingerprint IS DISTINCT FROM print THEN
            RAISE EXCEPTION 'redrive.enqueue: the idempotency key % belongs to another request (task %)',
                quote_literal(key), owner.id USING ERRCODE = 'RD001';
        END IF;
        RETURN owner.id;
    END IF;
    INSERT INTO redrive.live (
        tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at,
        attempt_timeout_ms, policy_version, cancel_requested, dependency, policy
    ) VALUES (
        given_tenant, made, due_ms, 0, 0, 0, 1, now_ms, now_ms + rules.total_budget_ms, rules.attempt_timeout_ms,
        rules.version, false, lane, given_policy
    );
    INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
    VALUES (given_tenant, given_policy, rules.version, 2, 1);
    -- PostgreSQL lets transactions that notify commit one at a time, and refuses PREPARE TRANSACTION after a NOTIFY. So it is
    -- not done on a server that allows prepared transactions, unless the caller says SET redrive.notify = on, and nowhere
    -- if the caller says SET redrive.notify = off: a note is left instead.
    IF coalesce(
        nullif(current_setting('redrive.notify', true), ''),
        CASE WHEN current_setting('max_prepared_transactions') = '0' THEN 'on' ELSE 'off' END
    ) <> 'off' THEN
        PERFORM pg_notify('redrive_due', jsonb_build_array(
            jsonb_build_object('t', given_tenant, 'd', lane, 'at', due_ms)
        )::text);
    ELSE
        INSERT INTO redrive.untold (tenant, dependency, due_at) VALUES (given_tenant, lane, due_ms);
    END IF;
    RETURN made;
END
$$;
