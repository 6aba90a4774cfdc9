-- Applies one event, once, however often it is delivered:
-- psql shop -qAt -v key=order-7 -v order=order-7 -v amount=100.00 -f receive.sql
--
-- `key` is the Idempotency-Key of the request, which is the same on every attempt. If psql fails, answer 503, so that the
-- sender comes again.
\set ON_ERROR_STOP on

BEGIN;
-- Recorded in the same transaction as its effect: a crash leaves both or neither. A second transaction with the same key waits
-- here until the first one ends. RD006: a program is applying it over HTTP (see ../python).
SELECT redrive.seen('orders', :'key') AS is_duplicate \gset
\if :is_duplicate
\else
    UPDATE orders SET status = 'announced' WHERE id = :'order';
\endif
COMMIT;
\if :is_duplicate
\else
    \echo :order: paid :amount
\endif
