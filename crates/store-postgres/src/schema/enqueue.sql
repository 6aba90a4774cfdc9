
-- The transactional outbox: a task in the caller's own transaction. It exists if and only if that commits.
--
-- The same rules as the API's, as far as SQL can check them, and the same fingerprint: a key that was used here and is
-- used again over the API (or the other way round) is recognised, with the same request and with another one.
-- SQLSTATE 22023: an argument is invalid. RD001: the key belongs to another request. RD002: there is no such policy.

CREATE SEQUENCE redrive.enqueue_order MINVALUE 0 MAXVALUE 32767 CYCLE;

-- 64 bits, the lowest first, as the fingerprint has them. (These four are PL/pgSQL because it is fast at expressions: as
-- SQL functions they took ten times as long, and most of the whole call's.)
CREATE FUNCTION redrive.le64(number bigint) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    big bytea := int8send(number);
BEGIN
    RETURN substr(big, 8, 1) || substr(big, 7, 1) || substr(big, 6, 1) || substr(big, 5, 1) || substr(big, 4, 1)
        || substr(big, 3, 1) || substr(big, 2, 1) || substr(big, 1, 1);
END
$$;

-- One part of a fingerprint: its length, then its bytes.
CREATE FUNCTION redrive.part(bytes bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN redrive.le64(length(bytes)) || bytes;
END
$$;

-- A part that may be absent, which differs from an empty one.
CREATE FUNCTION redrive.optional_part(bytes bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE WHEN bytes IS NULL THEN redrive.part('\x00') ELSE redrive.part('\x01') || redrive.part(bytes) END;
END
$$;

CREATE FUNCTION redrive.refuse(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'redrive.enqueue: %', what USING ERRCODE = '22023';
END
$$;

-- `scheme://host[:port]` in lower case, without a default port and without userinfo: the dependency of a task that
-- names none.
CREATE FUNCTION redrive.origin(url text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    parts text[];
    port text;
BEGIN
    IF url IS NULL OR url = '' THEN
        PERFORM redrive.refuse('target_url is missing');
    ELSIF url !~ '^[!-~]+$' OR octet_length(url) > 8192 THEN
        PERFORM redrive.refuse('target_url must be 1 to 8192 visible ASCII characters: percent-encode the others');
    ELSIF position('#' IN url) > 0 THEN
        PERFORM redrive.refuse('target_url must not have a fragment: it is never sent');
    END IF;
    parts := regexp_match(url, '^([hH][tT][tT][pP][sS]?)://(?:[^/?@]*@)*(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]+)?(?:[/?].*)?$');
    IF parts IS NULL OR length(parts[2]) > 253 THEN
        PERFORM redrive.refuse('target_url must be an absolute http or https URL such as https://example.com/hooks, got '
            || quote_literal(left(url, 100)));
    END IF;
    port := substr(parts[3], 2);
    IF port IS NOT NULL AND (length(port) > 5 OR port::int NOT BETWEEN 1 AND 65535) THEN
        PERFORM redrive.refuse('target_url must have a port from 1 to 65535');
    END IF;
    RETURN lower((parts[1] || '://' || parts[2]) COLLATE "C")
        || CASE WHEN port IS NULL OR (lower(parts[1] COLLATE "C"), port::int) IN (('http', 80), ('https', 443)) THEN ''
           ELSE ':' || port::int END;
END
$$;

-- Header fields as `[[name, value], …]`: from an object whose values are texts or lists of texts, or from such a list.
CREATE FUNCTION redrive.header_fields(given jsonb, implied_type text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    fields jsonb;
    field jsonb;
    name text;
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
    ELSIF octet_length(fields::text) > 40960 THEN
        PERFORM redrive.refuse('headers must be at most 32 KiB in all');
    END IF;
    FOR field IN SELECT jsonb_array_elements(fields) LOOP
        IF jsonb_typeof(field) <> 'array' OR jsonb_array_length(field) <> 2 OR jsonb_typeof(field -> 0) <> 'string'
            OR jsonb_typeof(field -> 1) <> 'string' THEN
            PERFORM redrive.refuse('headers must be texts, got ' || left(field::text, 100));
        END IF;
        name := field ->> 0;
        IF name !~ '^[A-Za-z0-9!#$%&''*+.^_`|~-]+$' THEN
            PERFORM redrive.refuse('headers: ' || quote_literal(left(name, 100)) || ' is no header name');
        ELSIF lower(name COLLATE "C") IN ('idempotency-key', 'redrive-task-id', 'redrive-attempt') THEN
            PERFORM redrive.refuse('headers: ' || name || ' is set by Redrive on every attempt');
        ELSIF lower(name COLLATE "C") IN ('connection', 'content-length', 'transfer-encoding', 'keep-alive', 'upgrade', 'te',
            'trailer', 'proxy-connection', 'expect') THEN
            PERFORM redrive.refuse('headers: ' || name || ' is set when the request is sent');
        ELSIF field ->> 1 ~ '[\x01-\x08\x0a-\x1f\x7f]' THEN
            PERFORM redrive.refuse('headers: ' || name || ' must not contain control characters');
        END IF;
    END LOOP;
    IF implied_type IS NOT NULL AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(fields) AS known (pair) WHERE lower((known.pair ->> 0) COLLATE "C") = 'content-type'
    ) THEN
        fields := fields || jsonb_build_array(jsonb_build_array('content-type', implied_type));
    END IF;
    RETURN fields;
END
$$;

CREATE FUNCTION redrive.check_labels(given jsonb) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    label record;
BEGIN
    IF jsonb_typeof(given) <> 'object' THEN
        PERFORM redrive.refuse('labels must be a JSON object of texts');
    END IF;
    IF (SELECT count(*) FROM jsonb_object_keys(given)) > 20 THEN
        PERFORM redrive.refuse('labels must be at most 20');
    END IF;
    FOR label IN SELECT key, value FROM jsonb_each(given) LOOP
        IF label.key !~ '^[A-Za-z0-9._-]{1,64}$' THEN
            PERFORM redrive.refuse('labels must have names of 1 to 64 letters, digits, ''.'', ''_'', ''-''');
        ELSIF jsonb_typeof(label.value) <> 'string' OR length(label.value #>> '{}') > 256
            OR label.value #>> '{}' ~ '[\x01-\x1f\x7f-\x9f]' THEN
            PERFORM redrive.refuse('labels: ' || label.key || ' must be a text of at most 256 characters');
        END IF;
    END LOOP;
END
$$;

-- What makes two submissions the same request. The parts and their order are those of the API's.
CREATE FUNCTION redrive.fingerprint(
    method text, target_url text, body bytea, policy_id text, dependency text, not_before_ms bigint, headers jsonb,
    labels jsonb
) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    fields bytea := '';
    names bytea := '';
    number_of_labels bigint := 0;
BEGIN
    IF headers <> '[]' THEN
        SELECT string_agg(
            redrive.part(convert_to(field ->> 0, 'UTF8')) || redrive.part(convert_to(field ->> 1, 'UTF8')),
            ''::bytea ORDER BY place
        ) INTO fields
        FROM jsonb_array_elements(headers) WITH ORDINALITY AS each_field (field, place);
    END IF;
    IF labels <> '{}' THEN
        SELECT count(*), string_agg(
            redrive.part(convert_to(key, 'UTF8')) || redrive.part(convert_to(value, 'UTF8')),
            ''::bytea ORDER BY key COLLATE "C"
        ) INTO number_of_labels, names
        FROM jsonb_each_text(labels);
    END IF;
    RETURN sha256(
        redrive.part(convert_to(method, 'UTF8')) || redrive.part(convert_to(target_url, 'UTF8')) || redrive.part(body)
        || redrive.part(convert_to(policy_id, 'UTF8')) || redrive.optional_part(convert_to(dependency, 'UTF8'))
        || redrive.optional_part(NULL) || redrive.optional_part(redrive.le64(not_before_ms))
        || redrive.optional_part(NULL)
        || redrive.part(redrive.le64(jsonb_array_length(headers))) || fields
        || redrive.part(redrive.le64(number_of_labels)) || names
    );
END
$$;

-- A task id: 48 bits of milliseconds, 15 of a counter, 59 random ones, and those of a version 7 UUID.
CREATE FUNCTION redrive.make_task_id(now_ms bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    counter int := nextval('redrive.enqueue_order');
    random text := replace(gen_random_uuid()::text, '-', '');
    high int := ('x' || substr(random, 1, 3))::bit(12)::int & 2047;
BEGIN
    RETURN (lpad(to_hex(now_ms), 12, '0') || '7' || lpad(to_hex(counter >> 3), 3, '0')
        || lpad(to_hex(32768 | ((counter & 7) << 11) | high), 4, '0') || right(random, 12))::uuid;
END
$$;

-- With the rights of the schema's owner: a role with USAGE on the schema may enqueue, and needs no right to the tables. Without
-- scans of whole tables, whatever statistics the caller's session has.
CREATE FUNCTION redrive.enqueue_bytes(
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
    -- PostgreSQL lets transactions that notify commit one at a time. Who enqueues more often than that, and can wait for
    -- a process to look around, says SET redrive.notify = off.
    IF current_setting('redrive.notify', true) IS DISTINCT FROM 'off' THEN
        PERFORM pg_notify('redrive_due', jsonb_build_array(
            jsonb_build_object('t', given_tenant, 'd', lane, 'at', due_ms)
        )::text);
    END IF;
    RETURN made;
END
$$;

-- The body as text. The content type is text/plain unless a header says otherwise.
CREATE FUNCTION redrive.enqueue(
    target_url text, body text DEFAULT NULL, method text DEFAULT 'POST', headers jsonb DEFAULT NULL,
    policy_id text DEFAULT 'default', idempotency_key text DEFAULT NULL, tenant text DEFAULT 'default',
    dependency text DEFAULT NULL, not_before timestamptz DEFAULT NULL, labels jsonb DEFAULT NULL
) RETURNS uuid LANGUAGE sql AS $$
    SELECT redrive.enqueue_bytes(
        target_url, convert_to(body, 'UTF8'), CASE WHEN body IS NOT NULL THEN 'text/plain; charset=utf-8' END, method,
        headers, policy_id, idempotency_key, tenant, dependency, not_before, labels
    )
$$;

-- The body as JSON, sent as PostgreSQL writes it. The content type is application/json unless a header says otherwise.
CREATE FUNCTION redrive.enqueue(
    target_url text, body jsonb, method text DEFAULT 'POST', headers jsonb DEFAULT NULL,
    policy_id text DEFAULT 'default', idempotency_key text DEFAULT NULL, tenant text DEFAULT 'default',
    dependency text DEFAULT NULL, not_before timestamptz DEFAULT NULL, labels jsonb DEFAULT NULL
) RETURNS uuid LANGUAGE sql AS $$
    SELECT redrive.enqueue_bytes(
        target_url, convert_to(body::text, 'UTF8'), 'application/json', method, headers, policy_id, idempotency_key,
        tenant, dependency, not_before, labels
    )
$$;

-- The body as bytes of any kind; no content type is implied.
CREATE FUNCTION redrive.enqueue(
    target_url text, body bytea, method text DEFAULT 'POST', headers jsonb DEFAULT NULL,
    policy_id text DEFAULT 'default', idempotency_key text DEFAULT NULL, tenant text DEFAULT 'default',
    dependency text DEFAULT NULL, not_before timestamptz DEFAULT NULL, labels jsonb DEFAULT NULL
) RETURNS uuid LANGUAGE sql AS $$
    SELECT redrive.enqueue_bytes(
        target_url, body, NULL, method, headers, policy_id, idempotency_key, tenant, dependency, not_before, labels
    )
$$;
