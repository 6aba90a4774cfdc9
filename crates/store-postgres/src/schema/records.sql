
-- Idempotency records in the caller's own transaction: `reserve` before the business writes, `complete` after them, and one
-- commit for all. If the transaction rolls back, so does the record. `seen` does the same for the events of a consumer.
--
-- The rules are those of the pure functions in `core/idempotency`, and the table is the one that the API uses. A second
-- transaction that reserves the same key waits until the first one ends.
--
-- SQLSTATE 22023: an argument is invalid. RD003: another execution owns the record. RD004: there is no such record. RD005: the
-- same execution has ended the record before, in another way. RD006: another execution is handling the event.

CREATE TYPE redrive.reservation AS (
    outcome          text, -- reserved, replay, failed, in_progress, other_request
    execution_id     uuid,
    epoch            bigint,
    lease_until      timestamptz,
    previous_state   text, -- IN_PROGRESS or FAILED_RETRYABLE: the effect of the execution before may have taken place
    response_status  int,
    response_headers jsonb, -- a list of [name, value]
    response_body    bytea, -- NULL if there is no response, or if its body is in object storage
    resource_type    text,
    resource_id      text
);

CREATE FUNCTION redrive.now_ms() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN floor(extract(epoch FROM clock_timestamp()) * 1000);
END
$$;

CREATE FUNCTION redrive.refuse_in(function text, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'redrive.%: %', function, what USING ERRCODE = '22023';
END
$$;

-- The hash of a request whose body is compared byte by byte. The media type counts in lower case and without its
-- parameters.
CREATE FUNCTION redrive.request_hash(
    method text, path text, content_type text DEFAULT NULL, body bytea DEFAULT NULL
) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    media_type text := lower(btrim(split_part(coalesce(content_type, ''), ';', 1), E' \t\n\x0b\f\r') COLLATE "C");
BEGIN
    IF method IS NULL OR path IS NULL THEN
        PERFORM redrive.refuse_in('request_hash', 'method and path must be given');
    END IF;
    RETURN sha256(
        redrive.part('redrive-request-hash/1'::bytea) || redrive.part(convert_to(method, 'UTF8'))
        || redrive.part(convert_to(path, 'UTF8')) || redrive.part(convert_to(media_type, 'UTF8'))
        || redrive.part(coalesce(body, ''))
    );
END
$$;

CREATE FUNCTION redrive.check_record_key(function text, tenant text, operation text, name text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    is_event boolean := operation LIKE 'inbox/%';
BEGIN
    IF tenant IS NULL OR tenant !~ '^[A-Za-z0-9._:-]{1,64}$' THEN
        PERFORM redrive.refuse_in(function, 'tenant must be 1 to 64 letters, digits, ''.'', ''_'', ''-'' and '':''');
    ELSIF operation IS NULL OR operation !~ '^(inbox/)?[A-Za-z0-9._:-]{1,100}$' THEN
        PERFORM redrive.refuse_in(function, CASE function WHEN 'seen' THEN 'consumer' ELSE 'operation' END
            || ' must be 1 to 100 letters, digits, ''.'', ''_'', ''-'' and '':''');
    ELSIF is_event AND function = 'reserve' THEN
        PERFORM redrive.refuse_in(function, 'operation must not be an inbox: use redrive.seen');
    ELSIF operation = 'submit-task' THEN
        PERFORM redrive.refuse_in(function, 'operation must not be submit-task: use redrive.enqueue');
    ELSIF name IS NULL OR name !~ '^[!-~]{1,200}$' OR NOT is_event AND length(name) > 64 THEN
        PERFORM redrive.refuse_in(function, CASE function WHEN 'seen' THEN 'event_id' ELSE 'key' END
            || ' must be 1 to ' || CASE WHEN is_event THEN 200 ELSE 64 END || ' visible ASCII characters');
    END IF;
END
$$;

-- A duration in whole milliseconds, rounded up.
CREATE FUNCTION redrive.duration_ms(function text, argument text, given interval, longest interval) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF given IS NULL OR given < '1 second' OR given > longest THEN
        PERFORM redrive.refuse_in(function, argument || ' must be from 1 second to ' || longest);
    END IF;
    RETURN ceil(extract(epoch FROM given) * 1000);
END
$$;

-- Response headers as `[[name, value], …]`: from an object whose values are texts or lists of texts, or from such a list.
CREATE FUNCTION redrive.response_fields(function text, given jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    fields jsonb := '[]';
    field jsonb;
    bytes bigint := 0;
BEGIN
    IF jsonb_typeof(given) = 'object' THEN
        SELECT coalesce(jsonb_agg(jsonb_build_array(pair.key, value.item) ORDER BY pair.place, value.place), '[]')
        INTO fields
        FROM jsonb_each(given) WITH ORDINALITY AS pair (key, item, place)
        CROSS JOIN LATERAL jsonb_array_elements(
            CASE WHEN jsonb_typeof(pair.item) = 'array' THEN pair.item ELSE jsonb_build_array(pair.item) END
        ) WITH ORDINALITY AS value (item, place);
    ELSIF jsonb_typeof(given) = 'array' THEN
        fields := given;
    ELSIF jsonb_typeof(given) <> 'null' THEN
        PERFORM redrive.refuse_in(function, 'response_headers must be a JSON object of texts, or a list of [name, value]');
    END IF;
    IF jsonb_array_length(fields) > 100 THEN
        PERFORM redrive.refuse_in(function, 'response_headers must be at most 100 fields, got ' || jsonb_array_length(fields));
    END IF;
    FOR field IN SELECT jsonb_array_elements(fields) LOOP
        IF jsonb_typeof(field) <> 'array' OR jsonb_array_length(field) <> 2 OR jsonb_typeof(field -> 0) <> 'string'
            OR jsonb_typeof(field -> 1) <> 'string' OR field ->> 0 !~ '^[A-Za-z0-9!#$%&''*+.^_`|~-]+$'
            OR field ->> 1 ~ '[\x01-\x08\x0a-\x1f\x7f]' THEN
            PERFORM redrive.refuse_in(function, 'response_headers must be header names and texts without control characters');
        END IF;
        bytes := bytes + octet_length(field ->> 0) + octet_length(field ->> 1);
    END LOOP;
    IF bytes > 32768 THEN
        PERFORM redrive.refuse_in(function, 'response_headers must be at most 32768 bytes in all, got ' || bytes);
    END IF;
    RETURN fields;
END
$$;

-- What a reservation of a stored record comes to at a time. If the outcome is `reserved` and no lease is given, the record has
-- to be changed for it.
CREATE FUNCTION redrive.judge_reservation(
    stored redrive.idempotency_records, now_ms bigint, given_hash bytea, given_execution uuid, is_complete boolean
) RETURNS redrive.reservation LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer redrive.reservation;
BEGIN
    answer.outcome := 'reserved';
    answer.execution_id := given_execution;
    answer.epoch := stored.epoch + 1;
    IF stored.state = 'RELEASED' OR now_ms >= stored.expires_at THEN
        RETURN answer;
    ELSIF stored.request_hash <> given_hash THEN
        RETURN row('other_request', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::redrive.reservation;
    ELSIF is_complete AND stored.state = 'SUCCEEDED' AND stored.execution = given_execution
        AND stored.lease_until = stored.started_at AND stored.response_status IS NULL AND stored.resource_kind IS NULL THEN
        -- The same execution asks again for a record that was complete at once.
        answer.epoch := stored.epoch;
        answer.lease_until := to_timestamp(stored.lease_until / 1000.0);
    ELSIF stored.state IN ('SUCCEEDED', 'FAILED_FINAL') THEN
        RETURN row(
            CASE stored.state WHEN 'SUCCEEDED' THEN 'replay' ELSE 'failed' END, stored.execution, stored.epoch, NULL, NULL,
            stored.response_status,
            CASE WHEN stored.response_status IS NOT NULL THEN coalesce(stored.response_headers, '[]')::jsonb END,
            stored.body, stored.resource_kind, stored.resource_id
        )::redrive.reservation;
    ELSIF stored.state = 'IN_PROGRESS' AND stored.execution = given_execution THEN
        -- The same execution asks again.
        answer.epoch := stored.epoch;
    ELSIF stored.state = 'IN_PROGRESS' AND now_ms < stored.lease_until THEN
        RETURN row('in_progress', NULL, NULL, to_timestamp(stored.lease_until / 1000.0), NULL, NULL, NULL, NULL, NULL, NULL)
            ::redrive.reservation;
    ELSE
        answer.previous_state := stored.state;
    END IF;
    RETURN answer;
END
$$;

-- Decides a reservation at a time, by default the present. Only `reserve` and `seen` call it: whoever could give it a time
-- could take a record from its owner.
--
-- A row is locked only to change it. A caller that was told to wait, or got a result, holds no lock until the end of its
-- transaction: the owner could not report its result, and would lose the record to that very caller.
CREATE FUNCTION redrive.reserve_at(
    given_now_ms bigint, given_tenant text, given_operation text, given_name text, given_hash bytea, lease_ms bigint,
    given_retention_ms bigint, given_execution uuid, is_complete boolean
) RETURNS redrive.reservation LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    now_ms bigint := coalesce(given_now_ms, redrive.now_ms());
    new_state text := CASE WHEN is_complete THEN 'SUCCEEDED' ELSE 'IN_PROGRESS' END;
    stored redrive.idempotency_records;
    answer redrive.reservation;
    is_new boolean;
    started_ms bigint;
    -- Planned each time: the caller's session would remember a plan for a table that was empty.
    find text := 'SELECT * FROM redrive.idempotency_records WHERE tenant = $1 AND operation = $2 AND name = $3';
BEGIN
    FOR try IN 1 .. 5 LOOP
        -- Waits for a transaction that has inserted or changed the record and has not ended.
        INSERT INTO redrive.idempotency_records (
            tenant, operation, name, execution, epoch, lease_until, retention_ms, started_at, updated_at, expires_at, state,
            request_hash
        ) VALUES (
            given_tenant, given_operation, given_name, given_execution, 1, now_ms + lease_ms, given_retention_ms, now_ms, now_ms,
            now_ms + lease_ms + given_retention_ms, new_state, given_hash
        )
        ON CONFLICT (tenant, operation, name) DO NOTHING;
        is_new := FOUND;
        EXIT WHEN is_new;
        EXECUTE find INTO stored USING given_tenant, given_operation, given_name;
        CONTINUE WHEN stored.tenant IS NULL;
        now_ms := coalesce(given_now_ms, redrive.now_ms());
        answer := redrive.judge_reservation(stored, now_ms, given_hash, given_execution, is_complete);
        IF answer.outcome <> 'reserved' OR answer.lease_until IS NOT NULL THEN
            RETURN answer;
        END IF;
        -- Another transaction may have changed the record in between, so it is judged again.
        EXECUTE find || ' FOR UPDATE' INTO stored USING given_tenant, given_operation, given_name;
        EXIT WHEN stored.tenant IS NOT NULL;
    END LOOP;
    IF is_new THEN
        answer := row('reserved', given_execution, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::redrive.reservation;
        -- A wait has cost nothing of the lease, or less than a second of it.
        IF given_now_ms IS NOT NULL OR redrive.now_ms() < now_ms + 1000 THEN
            answer.lease_until := to_timestamp((now_ms + lease_ms) / 1000.0);
            RETURN answer;
        END IF;
    ELSIF stored.tenant IS NULL THEN
        RAISE EXCEPTION 'redrive.reserve: the record was removed while it was being reserved; try again'
            USING ERRCODE = 'serialization_failure';
    END IF;
    now_ms := coalesce(given_now_ms, redrive.now_ms());
    started_ms := now_ms;
    IF NOT is_new THEN
        answer := redrive.judge_reservation(stored, now_ms, given_hash, given_execution, is_complete);
        IF answer.outcome <> 'reserved' OR answer.lease_until IS NOT NULL THEN
            RETURN answer;
        ELSIF answer.epoch = stored.epoch THEN
            started_ms := stored.started_at;
        END IF;
    END IF;
    answer.lease_until := to_timestamp((now_ms + lease_ms) / 1000.0);
    UPDATE redrive.idempotency_records SET
        execution = given_execution, epoch = answer.epoch, lease_until = now_ms + lease_ms,
        retention_ms = given_retention_ms, started_at = started_ms, updated_at = now_ms,
        expires_at = now_ms + lease_ms + given_retention_ms, state = new_state, request_hash = given_hash,
        response_status = NULL, response_headers = NULL, resource_kind = NULL, resource_id = NULL, body_ref = NULL,
        body = NULL
    WHERE tenant = given_tenant AND operation = given_operation AND name = given_name;
    RETURN answer;
END
$$;

-- Decides a change of an owner at a time, by default the present. Returns `done`, `fenced`, `ended` or `absent`.
CREATE FUNCTION redrive.change_record_at(
    given_now_ms bigint, given_tenant text, given_operation text, given_name text, given_execution uuid, given_epoch bigint,
    new_state text, new_status int, new_headers jsonb, new_body bytea, new_kind text, new_id text
) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    stored redrive.idempotency_records;
    now_ms bigint;
    find text := 'SELECT * FROM redrive.idempotency_records WHERE tenant = $1 AND operation = $2 AND name = $3 FOR UPDATE';
BEGIN
    EXECUTE find INTO stored USING given_tenant, given_operation, given_name;
    now_ms := coalesce(given_now_ms, redrive.now_ms());
    IF stored.tenant IS NULL OR now_ms >= stored.expires_at THEN
        RETURN 'absent';
    ELSIF stored.execution <> given_execution OR stored.epoch <> given_epoch THEN
        RETURN CASE WHEN stored.state = 'RELEASED' AND stored.epoch <= given_epoch THEN 'absent' ELSE 'fenced' END;
    ELSIF stored.state <> 'IN_PROGRESS' THEN
        RETURN CASE WHEN stored.state = new_state
            AND stored.response_status IS NOT DISTINCT FROM new_status
            AND coalesce(stored.response_headers, '[]')::jsonb = coalesce(new_headers, '[]')
            AND stored.body_ref IS NULL AND coalesce(stored.body, '') = coalesce(new_body, '')
            AND stored.resource_kind IS NOT DISTINCT FROM new_kind AND stored.resource_id IS NOT DISTINCT FROM new_id
            THEN 'done' ELSE 'ended' END;
    END IF;
    UPDATE redrive.idempotency_records SET
        state = new_state, lease_until = now_ms, updated_at = now_ms, expires_at = now_ms + stored.retention_ms,
        response_status = new_status, response_headers = nullif(new_headers, '[]')::text, resource_kind = new_kind,
        resource_id = new_id, body_ref = NULL,
        body = CASE WHEN new_status IS NOT NULL THEN coalesce(new_body, '') END
    WHERE tenant = stored.tenant AND operation = stored.operation AND name = stored.name;
    RETURN 'done';
END
$$;

-- Ends a record in the present, or raises.
CREATE FUNCTION redrive.end_record(
    function text, given_tenant text, given_operation text, given_name text, given_execution uuid, given_epoch bigint,
    new_state text, new_status int, given_headers jsonb, new_body bytea, new_kind text, new_id text
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    headers jsonb := redrive.response_fields(function, given_headers);
    record_name text := quote_literal(given_operation || '/' || given_name);
BEGIN
    PERFORM redrive.check_record_key(function, given_tenant, given_operation, given_name);
    IF given_execution IS NULL OR given_epoch IS NULL THEN
        PERFORM redrive.refuse_in(function, 'execution_id and epoch must be those of the reservation, got NULL');
    ELSIF new_status NOT BETWEEN 100 AND 599 THEN
        PERFORM redrive.refuse_in(function, 'response_status must be from 100 to 599, got ' || new_status);
    ELSIF new_status IS NULL AND (headers <> '[]' OR new_body IS NOT NULL) THEN
        PERFORM redrive.refuse_in(function, 'response_headers and response_body need a response_status');
    ELSIF length(new_body) > 1048576 THEN
        PERFORM redrive.refuse_in(function, 'response_body must be at most 1048576 bytes, got ' || length(new_body));
    ELSIF (new_kind IS NULL) <> (new_id IS NULL) THEN
        PERFORM redrive.refuse_in(function, 'resource_type and resource_id must be given together');
    ELSIF length(new_kind) NOT BETWEEN 1 AND 100 OR new_kind ~ '[\x01-\x1f\x7f-\x9f]' THEN
        PERFORM redrive.refuse_in(function, 'resource_type must be 1 to 100 characters without control characters');
    ELSIF length(new_id) NOT BETWEEN 1 AND 500 OR new_id ~ '[\x01-\x1f\x7f-\x9f]' THEN
        PERFORM redrive.refuse_in(function, 'resource_id must be 1 to 500 characters without control characters');
    END IF;
    CASE redrive.change_record_at(
        NULL, given_tenant, given_operation, given_name, given_execution, given_epoch, new_state, new_status, headers,
        new_body, new_kind, new_id
    )
    WHEN 'done' THEN
        NULL;
    WHEN 'fenced' THEN
        RAISE EXCEPTION 'redrive.%: another execution owns the record %', function, record_name USING ERRCODE = 'RD003';
    WHEN 'absent' THEN
        RAISE EXCEPTION 'redrive.%: there is no record %', function, record_name USING ERRCODE = 'RD004';
    ELSE
        RAISE EXCEPTION 'redrive.%: the record % has ended before, in another way', function, record_name
            USING ERRCODE = 'RD005';
    END CASE;
END
$$;

-- Whoever has USAGE on the schema may call these. They run with the rights of the schema's owner, so that no right to the
-- table is needed.

-- Becomes the owner of a key, or says why not. See the type for the answer.
CREATE FUNCTION redrive.reserve(
    operation text, key text, request_hash bytea, lease interval DEFAULT '60 seconds',
    retention interval DEFAULT '24 hours', tenant text DEFAULT 'default', execution_id uuid DEFAULT gen_random_uuid()
) RETURNS redrive.reservation LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM redrive.check_record_key('reserve', tenant, operation, key);
    IF request_hash IS NULL OR length(request_hash) <> 32 THEN
        PERFORM redrive.refuse_in('reserve', 'request_hash must be 32 bytes (a SHA-256)');
    ELSIF execution_id IS NULL THEN
        PERFORM redrive.refuse_in('reserve', 'execution_id must be a UUID, got NULL');
    END IF;
    RETURN redrive.reserve_at(
        NULL, tenant, operation, key, request_hash, redrive.duration_ms('reserve', 'lease', lease, '24 hours'),
        redrive.duration_ms('reserve', 'retention', retention, '90 days'), execution_id, false
    );
END
$$;

-- The operation took place. Duplicates get this result.
CREATE FUNCTION redrive.complete(
    operation text, key text, execution_id uuid, epoch bigint, response_status int DEFAULT NULL,
    response_headers jsonb DEFAULT NULL, response_body bytea DEFAULT NULL, resource_type text DEFAULT NULL,
    resource_id text DEFAULT NULL, tenant text DEFAULT 'default'
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM redrive.end_record(
        'complete', tenant, operation, key, execution_id, epoch, 'SUCCEEDED', response_status, response_headers, response_body,
        resource_type, resource_id
    );
END
$$;

-- The execution failed. If it is retryable the next caller may execute the operation again, otherwise duplicates get this
-- result.
CREATE FUNCTION redrive.fail(
    operation text, key text, execution_id uuid, epoch bigint, retryable boolean, response_status int DEFAULT NULL,
    response_headers jsonb DEFAULT NULL, response_body bytea DEFAULT NULL, resource_type text DEFAULT NULL,
    resource_id text DEFAULT NULL, tenant text DEFAULT 'default'
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF retryable IS NULL THEN
        PERFORM redrive.refuse_in('fail', 'retryable must be true or false');
    ELSIF retryable AND num_nonnulls(response_status, response_headers, response_body, resource_type, resource_id) > 0 THEN
        PERFORM redrive.refuse_in('fail', 'a retryable failure has no result to keep');
    END IF;
    PERFORM redrive.end_record(
        'fail', tenant, operation, key, execution_id, epoch, CASE WHEN retryable THEN 'FAILED_RETRYABLE' ELSE 'FAILED_FINAL' END,
        response_status, response_headers, response_body, resource_type, resource_id
    );
END
$$;

-- Nothing was done, and the key is free again.
CREATE FUNCTION redrive.release(
    operation text, key text, execution_id uuid, epoch bigint, tenant text DEFAULT 'default'
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM redrive.end_record(
        'release', tenant, operation, key, execution_id, epoch, 'RELEASED', NULL, NULL, NULL, NULL, NULL
    );
END
$$;

-- Whether an event was seen before; it is recorded as seen if not. An event that this transaction records is new again if the
-- transaction rolls back. All events have the same hash, 32 zero bytes, as over the API.
CREATE FUNCTION redrive.seen(
    consumer text, event_id text, retention interval DEFAULT '7 days', tenant text DEFAULT 'default'
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer redrive.reservation;
BEGIN
    PERFORM redrive.check_record_key('seen', tenant, 'inbox/' || consumer, event_id);
    answer := redrive.reserve_at(
        NULL, tenant, 'inbox/' || consumer, event_id, decode(repeat('00', 32), 'hex'), 0,
        redrive.duration_ms('seen', 'retention', retention, '90 days'), gen_random_uuid(), true
    );
    IF answer.outcome = 'in_progress' THEN
        RAISE EXCEPTION 'redrive.seen: another execution is handling the event % of %', quote_literal(event_id),
            quote_literal(consumer) USING ERRCODE = 'RD006';
    END IF;
    RETURN answer.outcome <> 'reserved';
END
$$;

REVOKE EXECUTE ON FUNCTION redrive.reserve_at, redrive.change_record_at, redrive.end_record FROM PUBLIC;
