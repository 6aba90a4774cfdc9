//! Ending or rescheduling attempts: one statement for a whole batch of settlements.
//!
//! The row of each task is locked first, in the order of the ids, and matched by the token of its lease: a second
//! settlement finds nothing. The outcome of a task whose cancel was requested depends on that row.

use std::borrow::Cow;
use std::collections::HashSet;

use redrive_core::attempt::LastError;
use redrive_core::{Attempt, Body, BodyRef, Dependency, Lane, Outcome, Reason, Status, Timestamp};
use redrive_store::{Error, LaneDue, Next, Settled, Settlement};
use tokio_postgres::types::Type;

use crate::codec::{Cells, Uuid, escape, json, micros, millis, status, status_code};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// A settlement with everything that can be computed before its batch is sent.
#[derive(Debug)]
pub(crate) struct EncodedSettlement {
    pub(crate) end: Settlement,
    status: Status,
    reason: Option<Reason>,
    retry_at: Option<i64>,
    backoff_us: Option<i64>,
    dns_failures: Option<i64>,
    answer_status: Option<i64>,
    answer_headers: Option<String>,
    answer_truncated: Option<bool>,
}

impl EncodedSettlement {
    pub(crate) fn new(end: Settlement) -> Result<Self, Error> {
        let (status, reason, retry_at, backoff_us, dns_failures) = match &end.next {
            Next::RetryAt { at, backoff, dns_failures } => {
                (Status::Pending, None, Some(millis(*at)), backoff.map(micros), Some(i64::from(*dns_failures)))
            }
            Next::End { status, reason, .. } => (*status, *reason, None, None, None),
        };
        let answer = match &end.next {
            Next::End { answer, .. } => answer.as_deref(),
            Next::RetryAt { .. } => None,
        };
        Ok(EncodedSettlement {
            status,
            reason,
            retry_at,
            backoff_us,
            dns_failures,
            answer_status: answer.map(|answer| answer.status.into()),
            answer_headers: match answer {
                Some(answer) => json(&answer.headers, answer.headers.is_empty())?,
                None => None,
            },
            answer_truncated: answer.map(|answer| answer.truncated),
            end,
        })
    }

    /// The approximate size in bytes on the wire.
    pub(crate) fn size(&self) -> usize {
        self.inline_answer().map_or(0, <[u8]>::len) + 512
    }

    fn attempt(&self) -> Option<&Attempt> {
        self.end.attempt.as_ref()
    }

    fn error(&self) -> Option<&LastError> {
        self.attempt().and_then(|attempt| attempt.error.as_ref())
    }

    fn answer_body(&self) -> Option<&Body> {
        match &self.end.next {
            Next::End { answer, .. } => answer.as_ref().map(|answer| &answer.body),
            Next::RetryAt { .. } => None,
        }
    }

    /// The bytes of an inline answer.
    fn inline_answer(&self) -> Option<&[u8]> {
        self.answer_body().map(|body| body.inline().map_or(&[][..], |bytes| bytes))
    }
}

/// Rows are found by their keys and never by a join to the queue, which the planner may believe to be small. Tasks that
/// become pending again are written by an INSERT whose row always exists already, and tasks that end are deleted row by
/// row. `num_nulls` keeps the planner from using the index of leases. `status` is the requested status, `becomes` the
/// resulting one. If the blob of an answer is gone, the rest of the answer is kept.
const SETTLE: &str = "
WITH stored AS MATERIALIZED (
    SELECT wanted.tenant, wanted.body_ref
    FROM (
        SELECT DISTINCT tenant COLLATE \"C\" AS tenant, body_ref COLLATE \"C\" AS body_ref
        FROM unnest($1::text[], $21::text[]) AS given (tenant, body_ref)
        WHERE body_ref IS NOT NULL
        ORDER BY 1, 2
    ) AS wanted
    CROSS JOIN LATERAL (
        SELECT FROM redrive.blobs
        WHERE blobs.tenant = wanted.tenant AND blobs.body = wanted.body_ref AND NOT blobs.condemned
        FOR KEY SHARE
    ) AS blob
), held AS MATERIALIZED (
    SELECT given.*, live.policy, live.policy_version, live.dependency, live.attempts_before, live.run, live.run_started_at,
           live.deadline_at, live.attempt_timeout_ms, live.cancel_requested,
           coalesce(given.next_dns_failures, live.dns_failures) AS dns_failures,
           live.attempt_number - (given.outcome IS NULL)::int AS attempts_made,
           CASE WHEN given.retry_at IS NULL THEN live.backoff_us ELSE given.next_backoff_us END AS task_backoff_us,
           given.answer_body_ref IS NULL OR EXISTS (
               SELECT FROM stored WHERE stored.tenant = given.tenant AND stored.body_ref = given.answer_body_ref
           ) AS is_stored,
           coalesce(given.error_kind, live.error_kind) AS last_error_kind,
           coalesce(given.error_message, live.error_message) AS last_error_message,
           CASE WHEN given.status <> 4 AND live.cancel_requested THEN 7 ELSE given.status END AS becomes
    FROM unnest(
        $1::text[], $2::uuid[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[], $7::bigint[],
        $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::bigint[], $15::text[], $16::text[],
        $17::bigint[], $18::text[], $19::boolean[], $20::bytea[], $21::text[], $22::bigint[], $23::bigint[]
    ) WITH ORDINALITY AS given (
        tenant, id, token, at, status, reason, retry_at, next_backoff_us,
        number, started_at, duration_us, backoff_us, outcome, response_status, error_kind, error_message,
        answer_status, answer_headers, answer_truncated, answer_body, answer_body_ref, next_dns_failures,
        number_in_run, place
    )
    CROSS JOIN LATERAL (
        SELECT * FROM redrive.live
        WHERE live.tenant = given.tenant AND live.id = given.id AND live.token = given.token
          AND num_nulls(live.lease_until) = 0
        FOR UPDATE
    ) AS live
), gone AS MATERIALIZED (
    SELECT redrive.drop_live(array_agg(tenant), array_agg(id)) FROM held WHERE becomes <> 2
), waits AS (
    INSERT INTO redrive.live (
        tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at, attempt_timeout_ms,
        backoff_us, policy_version, cancel_requested, dependency, policy, error_kind, error_message,
        class, dns_failures
    )
    SELECT tenant, id, retry_at, token, attempts_made, attempts_before, run, run_started_at, deadline_at,
           attempt_timeout_ms, task_backoff_us, policy_version, cancel_requested, dependency, policy, last_error_kind,
           last_error_message, (attempts_made > attempts_before)::int, dns_failures
    FROM held
    WHERE becomes = 2
    ON CONFLICT (tenant, id) DO UPDATE SET
        due_at = excluded.due_at, lease_since = NULL, lease_until = NULL, node = NULL,
        attempt_number = excluded.attempt_number, backoff_us = excluded.backoff_us,
        error_kind = excluded.error_kind, error_message = excluded.error_message, class = excluded.class,
        dns_failures = excluded.dns_failures
), logged AS (
    INSERT INTO redrive.log (
        tenant, id, token, number, started_at, duration_us, backoff_us, outcome, response_status, error_kind,
        error_message, status, reason, ended_at, attempt_number, attempts_before, run, run_started_at, deadline_at,
        task_backoff_us, cancel_requested, last_error_kind, last_error_message,
        answer_status, answer_headers, answer_truncated, answer_body, answer_body_ref, dns_failures, number_in_run
    )
    SELECT tenant, id, token, coalesce(number, attempts_made), started_at, duration_us, backoff_us, outcome,
           response_status, error_kind, error_message, becomes,
           CASE WHEN becomes = status THEN reason ELSE 'cancelled' END, at, attempts_made, attempts_before, run,
           run_started_at, deadline_at, task_backoff_us, cancel_requested, last_error_kind, last_error_message,
           answer_status, answer_headers, answer_truncated OR NOT is_stored, answer_body,
           CASE WHEN is_stored THEN answer_body_ref END, nullif(dns_failures, 0), number_in_run
    FROM held
    WHERE becomes <> 2
    UNION ALL
    SELECT tenant, id, token, number, started_at, duration_us, backoff_us, outcome, response_status, error_kind,
           error_message, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           NULL, NULL, NULL, NULL, NULL, NULL, number_in_run
    FROM held
    WHERE becomes = 2 AND outcome IS NOT NULL
), dead AS (
    INSERT INTO redrive.dead_letters (tenant, id, ended_at, run)
    SELECT tenant, id, at, run FROM held WHERE becomes IN (5, 6)
), counted AS (
    INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
    SELECT held.tenant, held.policy, held.policy_version, change.status, sum(change.step)
    FROM held CROSS JOIN LATERAL (VALUES (3, -1), (held.becomes, 1)) AS change (status, step)
    GROUP BY 1, 2, 3, 4
)
SELECT place, becomes::smallint, deadline_at, dependency, (attempts_made > attempts_before)::int::smallint
FROM held
WHERE (SELECT count(*) FROM gone) = 1";

/// Settles each item; returns the outcomes in order, and the tasks that are pending again.
pub(crate) async fn settle(
    connection: &Connection,
    ends: &[&EncodedSettlement],
) -> Result<(Vec<Settled>, Vec<WaitsAgain>), PostgresError> {
    let (mut answers, mut waiting) = (vec![Settled::LeaseLost; ends.len()], Vec::new());
    let order = in_order_of_ids(ends);
    let batch: Vec<&EncodedSettlement> = order.iter().map(|&at| ends[at]).collect();
    for row in &run(connection, &batch).await? {
        let mut cells = Cells::of(row);
        let place: i64 = cells.get()?;
        let code: i16 = cells.get()?;
        let status = status(code).ok_or_else(|| cells.wrong(format_args!("status {code}")))?;
        let at = usize::try_from(place - 1).ok().and_then(|place| order.get(place));
        let at = *at.ok_or_else(|| cells.wrong(format_args!("place {place}")))?;
        answers[at] = Settled::Done(status);
        if status == Status::Pending {
            waiting.extend(read_waiting(&mut cells, &ends[at].end));
        }
    }
    Ok((answers, waiting))
}

/// A task that is pending again.
#[derive(Debug)]
pub(crate) struct WaitsAgain {
    pub(crate) due: LaneDue,
    pub(crate) deadline: Timestamp,
}

/// Reads a task that is pending again. `None` for an unreadable lane, from which nothing is claimed.
fn read_waiting(cells: &mut Cells<'_>, end: &Settlement) -> Option<WaitsAgain> {
    let Next::RetryAt { at, .. } = &end.next else { return None };
    let deadline = cells.timestamp().unwrap_or_default();
    let dependency = cells.parsed(|text| Dependency::try_new(text).ok()).ok()?;
    let lane = Lane { tenant: end.tenant.clone(), dependency };
    Some(WaitsAgain { due: LaneDue { lane, class: cells.class().ok()?, next_due: Some(*at) }, deadline })
}

/// The order in which rows are locked, the same in every call, so that no deadlock occurs. Of two settlements of the
/// same claim the first wins, and the second is not sent.
fn in_order_of_ids(ends: &[&EncodedSettlement]) -> Vec<usize> {
    let mut seen = HashSet::with_capacity(ends.len());
    let mut order: Vec<usize> =
        (0..ends.len()).filter(|&at| seen.insert((ends[at].end.id, ends[at].end.token.0))).collect();
    order.sort_by(|&one, &other| {
        let key = |at: usize| (&ends[at].end.tenant, ends[at].end.id);
        key(one).cmp(&key(other))
    });
    order
}

async fn run(connection: &Connection, ends: &[&EncodedSettlement]) -> Result<Vec<tokio_postgres::Row>, PostgresError> {
    fn column<'a, T>(ends: &[&'a EncodedSettlement], value: impl Fn(&'a EncodedSettlement) -> T) -> Vec<T> {
        ends.iter().map(|prepared| value(prepared)).collect()
    }
    let messages = column(ends, |row| row.error().map(|error| escape(&error.message)));
    let messages: Vec<Option<&str>> = messages.iter().map(|message| message.as_ref().map(Cow::as_ref)).collect();
    connection
        .query(
            SETTLE,
            &[
                (&column(ends, |row| row.end.tenant.as_str()), Type::TEXT_ARRAY),
                (&column(ends, |row| Uuid::from(row.end.id)), Type::UUID_ARRAY),
                (&column(ends, |row| row.end.token.0.cast_signed()), Type::INT8_ARRAY),
                (&column(ends, |row| millis(row.end.at)), Type::INT8_ARRAY),
                (&column(ends, |row| status_code(row.status)), Type::INT2_ARRAY),
                (&column(ends, |row| row.reason.map(Reason::as_str)), Type::TEXT_ARRAY),
                (&column(ends, |row| row.retry_at), Type::INT8_ARRAY),
                (&column(ends, |row| row.backoff_us), Type::INT8_ARRAY),
                (&column(ends, |row| row.attempt().map(|attempt| i64::from(attempt.number))), Type::INT8_ARRAY),
                (&column(ends, |row| row.attempt().map(|attempt| millis(attempt.started_at))), Type::INT8_ARRAY),
                (&column(ends, |row| row.attempt().and_then(|attempt| attempt.duration).map(micros)), Type::INT8_ARRAY),
                (&column(ends, |row| row.attempt().and_then(|attempt| attempt.backoff).map(micros)), Type::INT8_ARRAY),
                (&column(ends, |row| row.attempt().map(|attempt| Outcome::as_str(attempt.outcome))), Type::TEXT_ARRAY),
                (
                    &column(ends, |row| row.attempt().and_then(|attempt| attempt.response_status).map(i64::from)),
                    Type::INT8_ARRAY,
                ),
                (&column(ends, |row| row.error().map(|error| error.kind.as_str())), Type::TEXT_ARRAY),
                (&messages, Type::TEXT_ARRAY),
                (&column(ends, |row| row.answer_status), Type::INT8_ARRAY),
                (&column(ends, |row| row.answer_headers.as_deref()), Type::TEXT_ARRAY),
                (&column(ends, |row| row.answer_truncated), Type::BOOL_ARRAY),
                (&column(ends, EncodedSettlement::inline_answer), Type::BYTEA_ARRAY),
                (
                    &column(ends, |row| row.answer_body().and_then(Body::stored).map(BodyRef::to_record)),
                    Type::TEXT_ARRAY,
                ),
                (&column(ends, |row| row.dns_failures), Type::INT8_ARRAY),
                (&column(ends, |row| row.attempt().map(|attempt| i64::from(attempt.number_in_run))), Type::INT8_ARRAY),
            ],
        )
        .await
}
