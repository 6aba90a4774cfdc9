-- An outbox: what business transactions want sent, until `redrive outbox relay` has handed it to Redrive.
--
-- Insert in the transaction of the business write: the request is sent if and only if that commits.
--
--   BEGIN;
--   UPDATE orders SET status = 'paid' WHERE id = 7;
--   INSERT INTO {table} (target_url, headers, body, idempotency_key) VALUES (
--       'https://example.com/orders', '{"content-type": "application/json"}',
--       convert_to('{"order": 7, "status": "paid"}', 'UTF8'), 'order-7-paid'
--   );
--   COMMIT;
--
-- Who inserts needs INSERT on the table; the relay needs SELECT, UPDATE and DELETE.
CREATE TABLE {table} (
    -- Rows are handed over in this order.
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The absolute http or https URL to call.
    target_url      text NOT NULL,
    method          text NOT NULL DEFAULT 'POST',
    -- An object of texts or lists of texts, or a list of [name, value] where the order counts.
    headers         jsonb,
    -- Bytes of any kind; what they are is for a content-type header to say.
    body            bytea,
    -- The policy to retry by; NULL is Redrive's default.
    policy_id       text,
    -- 1 to 64 visible ASCII characters, carried by every attempt. NULL: the relay makes one of the id, always the same.
    idempotency_key text,
    -- The downstream that the URL belongs to; NULL is the URL's origin.
    dependency      text,
    -- When the first attempt may begin; NULL is at once.
    not_before      timestamptz,
    -- An object of texts, for finding the task again.
    labels          jsonb,
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- Why Redrive refused the row. The relay skips it until the row is corrected and this is set to NULL.
    refused         text
);
-- Every row is deleted soon after it came: vacuum by what has died, not by how much there is.
ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- However many were refused, the next ones are found at once.
CREATE INDEX ON {table} (id) WHERE refused IS NULL;
