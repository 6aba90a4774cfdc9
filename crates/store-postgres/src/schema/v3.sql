-- Version 3: the view for people shows no secrets, and `redrive.enqueue` looks at `Host` as the API does.
--
-- URLs are shown without the user and the password, and without the values behind the question mark, where tokens are.
-- Which of those are secret is a setting of the nodes that the database does not know, so all of them are hidden. The
-- columns are the same, and so are the rights that were given on the view.
CREATE OR REPLACE VIEW redrive.task_overview AS
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

-- As in version 1, and a `Host` is given once and is not empty.
CREATE OR REPLACE FUNCTION redrive.header_fields(given jsonb, implied_type text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    fields jsonb;
    field jsonb;
    name text;
    has_host boolean := false;
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
        ELSIF lower(name COLLATE "C") = 'host' AND has_host THEN
            PERFORM redrive.refuse('headers: ' || name || ' must be given only once');
        ELSIF lower(name COLLATE "C") = 'host' AND field ->> 1 ~ '^[ \t]*$' THEN
            PERFORM redrive.refuse('headers: ' || name || ' must not be empty');
        END IF;
        has_host := has_host OR lower(name COLLATE "C") = 'host';
    END LOOP;
    IF implied_type IS NOT NULL AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(fields) AS known (pair) WHERE lower((known.pair ->> 0) COLLATE "C") = 'content-type'
    ) THEN
        fields := fields || jsonb_build_array(jsonb_build_array('content-type', implied_type));
    END IF;
    RETURN fields;
END
$$;
