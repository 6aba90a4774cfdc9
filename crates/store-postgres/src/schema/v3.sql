-- Version 3: the view for people shows no secrets.
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
