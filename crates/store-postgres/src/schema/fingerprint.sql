
-- Fingerprints of version 2: header fields that may differ between two submissions of the same request do not count. Those
-- are renewed credentials, and the tracing of the caller. The first submission's are sent.

CREATE FUNCTION redrive.lasting_fields(fields jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (
        SELECT coalesce(jsonb_agg(field ORDER BY place), '[]')
        FROM jsonb_array_elements(fields) WITH ORDINALITY AS each_field (field, place)
        WHERE lower((field ->> 0) COLLATE "C") NOT IN (
            'authorization', 'proxy-authorization', 'date', 'traceparent', 'tracestate', 'baggage'
        )
    );
END
$$;

-- The caller's trace and span, from header fields, as a `traceparent` of version 00; NULL if they name none. By the rules of
-- W3C Trace Context: what is invalid counts as none, and so do several fields; later versions are read by their first four
-- fields; flags that the rules do not define are not kept.
CREATE FUNCTION redrive.trace_parent(fields jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    given text[];
    parent text;
BEGIN
    SELECT array_agg(field ->> 1) INTO given
    FROM jsonb_array_elements(fields) AS each_field (field)
    WHERE lower((field ->> 0) COLLATE "C") = 'traceparent';
    parent := btrim(given[1], E' \t');
    IF coalesce(cardinality(given), 0) <> 1
        OR parent !~ '^(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}|(?!00|ff)[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?)$'
        OR parent ~ '^..-0{32}-' OR parent ~ '^.{35}-0{16}-' THEN
        RETURN NULL;
    END IF;
    RETURN '00' || substr(parent, 3, 51) || '0' || translate(
        substr(parent, 55, 1), '0123456789abcdef',
        CASE WHEN parent ~ '^00' THEN '0123012301230123' ELSE '0101010101010101' END
    );
END
$$;

-- With another list of arguments they would be further functions, and calls with names would be ambiguous.
DROP FUNCTION redrive.enqueue(text, text, text, jsonb, text, text, text, text, timestamptz, jsonb);
DROP FUNCTION redrive.enqueue(text, jsonb, text, jsonb, text, text, text, text, timestamptz, jsonb);
DROP FUNCTION redrive.enqueue(text, bytea, text, jsonb, text, text, text, text, timestamptz, jsonb);
DROP FUNCTION redrive.enqueue_bytes(text, bytea, text, text, jsonb, text, text, text, text, timestamptz, jsonb);

-- As in version 4, with a fingerprint of version 2, and with a correlation id and the caller's trace, which are not part of the
-- fingerprint. A stored fingerprint is compared with one of its own version: 32 bytes are version 1, later versions begin
-- with their number. With the rights of the schema's owner: a role with USAGE on
-- the schema may enqueue, and needs no right to the tables. Without scans of whole tables, whatever statistics the caller's
-- session has.
CREATE FUNCTION redrive.enqueue_bytes(
    given_url text, given_body bytea, implied_type text, given_method text, given_headers jsonb, given_policy text,
    given_key text, given_tenant text, given_dependency text, given_not_before timestamptz, given_labels jsonb,
    given_correlation text
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
    ELSIF given_correlation !~ '^[!-~]{1,128}$' THEN
        PERFORM redrive.refuse('correlation_id must be 1 to 128 visible ASCII characters');
    ELSIF length(given_body) > 1048576 THEN
        PERFORM redrive.refuse('body must be at most 1048576 bytes, got ' || length(given_body));
    END IF;
    lane := coalesce(given_dependency, lane);
    print := '\x02'::bytea || redrive.fingerprint(
        given_method, given_url, coalesce(given_body, ''), given_policy, given_dependency, not_before_ms,
        redrive.lasting_fields(fields), labels
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
            idempotency_key, fingerprint, target_url, method, headers, labels, correlation_id,
            trace_parent, body
        ) VALUES (
            given_tenant, redrive.make_task_id(now_ms), now_ms, rules.max_attempts, rules.attempt_timeout_ms,
            rules.version, given_policy, lane, key, print, given_url, given_method,
            CASE WHEN fields <> '[]' THEN fields::text END, CASE WHEN labels <> '{}' THEN labels::text END,
            given_correlation, redrive.trace_parent(fields), coalesce(given_body, '')
        )
        ON CONFLICT (tenant, idempotency_key) DO NOTHING
        RETURNING id INTO made;
    END IF;
    IF made IS NULL THEN
        EXECUTE find_owner INTO owner USING given_tenant, key;
        IF owner.id IS NULL THEN
            RAISE EXCEPTION 'redrive.enqueue: the key was taken and is free again; try once more'
                USING ERRCODE = 'serialization_failure';
        ELSIF length(owner.fingerprint) = 32 THEN
            print := redrive.fingerprint(
                given_method, given_url, coalesce(given_body, ''), given_policy, given_dependency, not_before_ms, fields, labels
            );
        END IF;
        IF owner.fingerprint IS DISTINCT FROM print THEN
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

-- The body as text. The content type is text/plain unless a header says otherwise.
CREATE FUNCTION redrive.enqueue(
    target_url text, body text DEFAULT NULL, method text DEFAULT 'POST', headers jsonb DEFAULT NULL,
    policy_id text DEFAULT 'default', idempotency_key text DEFAULT NULL, tenant text DEFAULT 'default',
    dependency text DEFAULT NULL, not_before timestamptz DEFAULT NULL, labels jsonb DEFAULT NULL,
    correlation_id text DEFAULT NULL
) RETURNS uuid LANGUAGE sql AS $$
    SELECT redrive.enqueue_bytes(
        target_url, convert_to(body, 'UTF8'), CASE WHEN body IS NOT NULL THEN 'text/plain; charset=utf-8' END, method,
        headers, policy_id, idempotency_key, tenant, dependency, not_before, labels, correlation_id
    )
$$;

-- The body as JSON, sent as PostgreSQL writes it. The content type is application/json unless a header says otherwise.
CREATE FUNCTION redrive.enqueue(
    target_url text, body jsonb, method text DEFAULT 'POST', headers jsonb DEFAULT NULL,
    policy_id text DEFAULT 'default', idempotency_key text DEFAULT NULL, tenant text DEFAULT 'default',
    dependency text DEFAULT NULL, not_before timestamptz DEFAULT NULL, labels jsonb DEFAULT NULL,
    correlation_id text DEFAULT NULL
) RETURNS uuid LANGUAGE sql AS $$
    SELECT redrive.enqueue_bytes(
        target_url, convert_to(body::text, 'UTF8'), 'application/json', method, headers, policy_id, idempotency_key,
        tenant, dependency, not_before, labels, correlation_id
    )
$$;

-- The body as bytes of any kind; no content type is implied.
CREATE FUNCTION redrive.enqueue(
    target_url text, body bytea, method text DEFAULT 'POST', headers jsonb DEFAULT NULL,
    policy_id text DEFAULT 'default', idempotency_key text DEFAULT NULL, tenant text DEFAULT 'default',
    dependency text DEFAULT NULL, not_before timestamptz DEFAULT NULL, labels jsonb DEFAULT NULL,
    correlation_id text DEFAULT NULL
) RETURNS uuid LANGUAGE sql AS $$
    SELECT redrive.enqueue_bytes(
        target_url, body, NULL, method, headers, policy_id, idempotency_key, tenant, dependency, not_before, labels, correlation_id
    )
$$;
