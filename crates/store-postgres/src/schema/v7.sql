-- Version 7: idempotency records, SQL functions that use them in the caller's own transaction (records.sql), and fingerprints
-- of version 2, a correlation id and the caller's trace in `redrive.enqueue` (fingerprint.sql).

-- The caller's own id of the work that a task belongs to.
ALTER TABLE redrive.tasks ADD COLUMN correlation_id text;

-- The caller's own trace and span, as a `traceparent` of version 00.
ALTER TABLE redrive.tasks ADD COLUMN trace_parent text;

-- A record is inserted when it is reserved and updated when it ends. Each update changes `expires_at` and `state`, which
-- are indexed, so it writes new index entries. The room in a page keeps both versions of a row in it.
CREATE TABLE redrive.idempotency_records (
    tenant           text COLLATE "C" NOT NULL,
    operation        text COLLATE "C" NOT NULL, -- an operation's name, or 'inbox/' and a consumer's name
    name             text COLLATE "C" NOT NULL, -- an idempotency key, or an event's id
    execution        uuid NOT NULL,
    epoch            bigint NOT NULL,
    lease_until      bigint NOT NULL,
    retention_ms     bigint NOT NULL,
    started_at       bigint NOT NULL,
    updated_at       bigint NOT NULL,
    expires_at       bigint NOT NULL,
    state            text COLLATE "C" NOT NULL, -- IN_PROGRESS, SUCCEEDED, FAILED_RETRYABLE, FAILED_FINAL, RELEASED
    request_hash     bytea NOT NULL,
    response_status  bigint, -- NULL: there is no response
    response_headers text,
    resource_kind    text,
    resource_id      text,
    body_ref         text COLLATE "C",
    body             bytea,
    PRIMARY KEY (tenant, operation, name)
) WITH (fillfactor = 80);
CREATE INDEX idempotency_records_expired ON redrive.idempotency_records (expires_at);
-- For counts: rows with equal values share one index entry, so it is small.
CREATE INDEX idempotency_records_by_state ON redrive.idempotency_records (tenant, operation, state)
WHERE state <> 'RELEASED';
-- For lists of the executions under way, in their order. A record leaves it when it ends.
CREATE INDEX idempotency_records_in_progress ON redrive.idempotency_records (tenant, operation, name, updated_at)
WHERE state = 'IN_PROGRESS';
CREATE INDEX idempotency_records_by_body ON redrive.idempotency_records (tenant, body_ref) WHERE body_ref IS NOT NULL;
ALTER TABLE redrive.idempotency_records SET (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.2,
    autovacuum_analyze_threshold = 10000
);
ALTER TABLE redrive.idempotency_records ALTER COLUMN body SET STORAGE EXTERNAL;

-- Programs of version 6 work beside newer ones during a rolling upgrade and do not know that records refer to blobs. What they
-- condemn is kept if a record refers to it: their statement does not return the row, so they do not delete its object.
CREATE FUNCTION redrive.keep_blob_of_record() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    PERFORM FROM redrive.idempotency_records WHERE tenant = NEW.tenant AND body_ref = NEW.body LIMIT 1;
    RETURN CASE WHEN FOUND THEN NULL ELSE NEW END;
END
$$;
CREATE TRIGGER keep_blob_of_record BEFORE UPDATE OF condemned ON redrive.blobs
FOR EACH ROW WHEN (NEW.condemned AND NOT OLD.condemned) EXECUTE FUNCTION redrive.keep_blob_of_record();

