-- Pays an order and announces it, both or neither:
-- psql shop -qAt -v order=order-7 -v amount=100.00 -v url=http://127.0.0.1:9000/orders -f submit.sql
\set ON_ERROR_STOP on

BEGIN;
INSERT INTO orders (id, amount, status) VALUES (:'order', :'amount', 'paid') ON CONFLICT DO NOTHING;
-- The key names the order, not this transaction: run again after a crash, it is the same task. A key of another request is the
-- error RD001, which also rolls the payment back. Enqueue last: until the transaction ends, others wait for its key.
SELECT redrive.enqueue(
    target_url => :'url',
    body => jsonb_build_object('order', :'order'::text, 'amount', :'amount'::text),
    idempotency_key => :'order'
) AS task \gset
COMMIT;

-- Wait for the result, but after the commit: before it, nothing is sent. A program waits with one request instead:
-- GET /retry-tasks/ID with Prefer: wait=30.
SELECT set_config('orders.task', :'task', false) \g /dev/null
DO $$
DECLARE
    result text;
BEGIN
    FOR look IN 1..300 LOOP
        SELECT status INTO STRICT result FROM redrive.task_overview WHERE task = current_setting('orders.task')::uuid;
        EXIT WHEN result NOT IN ('PENDING', 'IN_FLIGHT');
        PERFORM pg_sleep(0.1);
    END LOOP;
END
$$;
SELECT format('%s: %s after %s attempt(s)', :'order', status, attempts), status = 'SUCCEEDED' AS is_delivered
FROM redrive.task_overview WHERE task = :'task' \gset result_
\echo :result_format
\if :result_is_delivered
\else
    -- A dead letter, or not ended yet: `redrive tasks show ID`, `redrive tasks replay ID`.
    DO $$ BEGIN RAISE EXCEPTION 'the announcement was not delivered'; END $$;
\endif
