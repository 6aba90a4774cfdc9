//! Storing new tasks: one statement for a whole batch of submissions.
//!
//! A unique index decides which task gets a key: the second of two transactions waits for the first, and fails. A
//! second statement then reads which task owns a taken key. This also settles a commit whose answer was lost: a key
//! that belongs to the very task that was submitted was taken by that commit.

use std::collections::HashSet;

use redrive_core::idempotency::{Resubmitted, resubmit};
use redrive_core::{BodyRef, CorrelationId, Status};
use redrive_store::{Error, Lease, NewTask, Submitted, rules};
use tokio_postgres::types::Type;

use crate::codec::{Cells, EncodedRequest, Uuid, micros, millis, status_code, whole_millis};
use crate::connection::Connection;
use crate::ops::by_key;
use crate::postgres_error::PostgresError;

/// How often to try again for a key that was taken but has no owner: its owner was cleaned away in between.
const TRIES: usize = 5;

/// A new task with everything that can be computed before its batch is sent.
#[derive(Debug)]
pub(crate) struct EncodedTask {
    pub(crate) new: NewTask,
    request: EncodedRequest,
    lease: Option<Lease>,
}

impl EncodedTask {
    pub(crate) fn new(new: NewTask) -> Result<Self, Error> {
        let request = EncodedRequest::new(&new.request)?;
        let lease = rules::first_lease(&new.task, new.start);
        Ok(EncodedTask { new, request, lease })
    }

    /// The answer for a stored task.
    fn created(&self) -> Submitted {
        let (task, lease) = rules::first_state(&self.new);
        Submitted::Created(Box::new(task), lease)
    }

    /// The approximate size in bytes on the wire.
    pub(crate) fn size(&self) -> usize {
        self.new.request.body.inline().map_or(0, bytes::Bytes::len) + 1_024
    }
}

/// Rows are inserted in the order of their keys, so that two batches with the same keys do not deadlock. The version
/// that a task pins and the blob that it refers to are locked against deletion until the commit. A key that another
/// transaction takes at the same time is a unique violation: the statement is rolled back and tried again as a whole.
const SUBMIT: &str = "
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::text[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[],
        $9::text[], $10::bytea[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::bytea[],
        $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::text[], $24::text[],
        $25::text[]
    ) WITH ORDINALITY AS given (
        tenant, id, created_at, max_attempts, attempt_timeout_ms, policy_version, policy, dependency,
        idempotency_key, fingerprint, target_url, method, headers, overrides, labels, body,
        due_at, deadline_at, backoff_us, lease_since, lease_until, body_ref, correlation_id, trace_parent, place
    )
), pinned AS MATERIALIZED (
    SELECT wanted.tenant, wanted.policy, wanted.policy_version
    FROM (SELECT DISTINCT tenant, policy, policy_version FROM given ORDER BY tenant, policy, policy_version) AS wanted
    CROSS JOIN LATERAL (
        SELECT FROM redrive.policy_versions
        WHERE policy_versions.tenant = wanted.tenant AND policy_versions.policy = wanted.policy
          AND policy_versions.version = wanted.policy_version AND NOT policy_versions.deleted
        FOR KEY SHARE
    ) AS version
), stored AS MATERIALIZED (
    SELECT wanted.tenant, wanted.body_ref
    FROM (
        SELECT DISTINCT tenant COLLATE \"C\" AS tenant, body_ref COLLATE \"C\" AS body_ref FROM given
        WHERE body_ref IS NOT NULL
        ORDER BY 1, 2
    ) AS wanted
    CROSS JOIN LATERAL (
        SELECT FROM redrive.blobs
        WHERE blobs.tenant = wanted.tenant AND blobs.body = wanted.body_ref AND NOT blobs.condemned
        FOR KEY SHARE
    ) AS blob
), judged AS MATERIALIZED (
    SELECT given.*, given.body_ref IS NULL OR EXISTS (
        SELECT FROM stored WHERE stored.tenant = given.tenant AND stored.body_ref = given.body_ref
    ) AS is_stored, EXISTS (
        SELECT FROM pinned
        WHERE pinned.tenant = given.tenant AND pinned.policy = given.policy
          AND pinned.policy_version = given.policy_version
    ) AS is_pinned, EXISTS (
        SELECT FROM redrive.tasks
        WHERE tasks.tenant = given.tenant AND tasks.idempotency_key = given.idempotency_key
    ) AS is_taken
    FROM given
), kept AS (
    INSERT INTO redrive.tasks (
        tenant, id, created_at, max_attempts, attempt_timeout_ms, policy_version, policy, dependency,
        idempotency_key, fingerprint, target_url, method, headers, overrides, labels, correlation_id, trace_parent,
        body_ref, body
    )
    SELECT tenant, id, created_at, max_attempts, attempt_timeout_ms, policy_version, policy, dependency,
           idempotency_key, fingerprint, target_url, method, headers, overrides, labels, correlation_id, trace_parent,
           body_ref, body
    FROM judged
    WHERE is_pinned AND is_stored AND NOT is_taken
    ORDER BY tenant, idempotency_key
), queued AS (
    INSERT INTO redrive.live (
        tenant, id, due_at, lease_since, lease_until, token, attempt_number, attempts_before, run, run_started_at,
        deadline_at, attempt_timeout_ms, backoff_us, policy_version, cancel_requested, dependency, policy, node,
        max_attempts
    )
    SELECT tenant, id, due_at, lease_since, lease_until, (lease_until IS NOT NULL)::int, (lease_until IS NOT NULL)::int,
           0, 1, created_at, deadline_at, attempt_timeout_ms, backoff_us, policy_version, false, dependency, policy,
           CASE WHEN lease_until IS NOT NULL THEN $23::text END, max_attempts
    FROM judged
    WHERE is_pinned AND is_stored AND NOT is_taken
), counted AS (
    INSERT INTO redrive.task_counts (tenant, policy, policy_version, status, tasks)
    SELECT tenant, policy, policy_version, CASE WHEN lease_until IS NULL THEN 2 ELSE 3 END, count(*)
    FROM judged
    WHERE is_pinned AND is_stored AND NOT is_taken
    GROUP BY 1, 2, 3, 4
)
SELECT place, is_pinned, is_stored FROM judged WHERE is_taken OR NOT is_pinned OR NOT is_stored";

/// The outcome for one task, or why it failed.
pub(crate) type Answer = Result<Submitted, Error>;

/// Stores tasks and returns the outcome of each, in order.
pub(crate) async fn submit(
    connection: &Connection,
    node: &str,
    tasks: &[&EncodedTask],
) -> Result<Vec<Answer>, PostgresError> {
    let mut answers: Vec<Option<Answer>> = vec![None; tasks.len()];
    let mut open: Vec<usize> = (0..tasks.len()).collect();
    for round in 0..TRIES {
        // The tasks of the first round are committed, whatever happens to the others. So a later failure leaves the
        // outcome in doubt.
        let failed = |failure| if round == 0 { failure } else { PostgresError::halfway(failure) };
        // Of two tasks with the same key the first one is inserted; the second then finds the key taken.
        let (ahead, behind) = first_of_each_key(tasks, &open);
        let batch: Vec<&EncodedTask> = ahead.iter().map(|&at| tasks[at]).collect();
        let refused = insert(connection, node, &batch).await.map_err(failed)?;
        let mut left: Vec<_> = behind.into_iter().map(|at| (at, Refused::Taken)).collect();
        for (at, refused) in ahead.into_iter().zip(refused) {
            match refused {
                None => answers[at] = Some(Ok(tasks[at].created())),
                Some(refused) => left.push((at, refused)),
            }
        }
        if left.is_empty() {
            break;
        }
        left.sort_unstable_by_key(|(at, _)| *at);
        open = ask_owners(connection, tasks, &left, &mut answers).await.map_err(PostgresError::halfway)?;
        if open.is_empty() {
            break;
        }
    }
    let gone = || Err(Error::Unavailable("submitting: a key is taken by a task that is not there".to_owned()));
    Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(gone)).collect())
}

/// Why a task was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// Its key, or its id, is taken.
    Taken,
    /// The policy version that it pins is gone.
    PolicyGone,
    /// The blob that its body refers to is gone.
    BodyGone,
}

/// Splits these into the first task with each key, and the others.
fn first_of_each_key(tasks: &[&EncodedTask], open: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut seen = HashSet::with_capacity(open.len());
    open.iter().partition(|&&at| {
        let task = &tasks[at].new.task;
        seen.insert((&task.lane.tenant, &task.idempotency_key))
    })
}

/// Answers the tasks whose keys have an owner; the others are tried again.
async fn ask_owners(
    connection: &Connection,
    tasks: &[&EncodedTask],
    left: &[(usize, Refused)],
    answers: &mut [Option<Answer>],
) -> Result<Vec<usize>, PostgresError> {
    let keys: Vec<_> =
        left.iter().map(|(at, _)| (&tasks[*at].new.task.lane.tenant, &tasks[*at].new.task.idempotency_key)).collect();
    let owners = by_key::owners(connection, &keys).await?;
    let mut again = Vec::new();
    for ((at, refused), owner) in left.iter().zip(owners) {
        let new = &tasks[*at].new;
        answers[*at] = match owner {
            // A commit whose answer was lost: this very task took the key.
            Some(owner) if owner.id == new.task.id => Some(Ok(tasks[*at].created())),
            // Whether the request is the same is known only if the owner can be read.
            Some(owner) => Some(Ok(match (owner.task, owner.fingerprint) {
                (Ok((task, stored)), _) => rules::resubmitted(Box::new(task), stored, new.fingerprint),
                (Err(_), Some(stored)) if resubmit(owner.id, stored, new.fingerprint) == Resubmitted::Other => {
                    Submitted::KeyReused(owner.id)
                }
                (Err(_), _) => Submitted::KeyUnreadable(owner.id),
            })),
            None if *refused == Refused::PolicyGone => Some(Ok(Submitted::PolicyGone)),
            None if *refused == Refused::BodyGone => Some(Ok(Submitted::BodyGone)),
            None => {
                again.push(*at);
                None
            }
        };
    }
    Ok(again)
}

/// Inserts what can be inserted; returns for each task, in order, why it was not.
async fn insert(
    connection: &Connection,
    node: &str,
    tasks: &[&EncodedTask],
) -> Result<Vec<Option<Refused>>, PostgresError> {
    fn column<'a, T>(tasks: &[&'a EncodedTask], value: impl Fn(&'a EncodedTask) -> T) -> Vec<T> {
        tasks.iter().map(|prepared| value(prepared)).collect()
    }
    let rows = connection
        .query(
            SUBMIT,
            &[
                (&column(tasks, |row| row.new.task.lane.tenant.as_str()), Type::TEXT_ARRAY),
                (&column(tasks, |row| Uuid::from(row.new.task.id)), Type::UUID_ARRAY),
                (&column(tasks, |row| millis(row.new.task.created_at)), Type::INT8_ARRAY),
                (&column(tasks, |row| i64::from(row.new.task.max_attempts)), Type::INT8_ARRAY),
                (&column(tasks, |row| whole_millis(row.new.task.attempt_timeout)), Type::INT8_ARRAY),
                (&column(tasks, |row| i64::from(row.new.task.policy.version)), Type::INT8_ARRAY),
                (&column(tasks, |row| row.new.task.policy.id.as_str()), Type::TEXT_ARRAY),
                (&column(tasks, |row| row.new.task.lane.dependency.as_str()), Type::TEXT_ARRAY),
                (&column(tasks, |row| row.new.task.idempotency_key.as_str()), Type::TEXT_ARRAY),
                (&column(tasks, |row| row.new.fingerprint.to_bytes()), Type::BYTEA_ARRAY),
                (&column(tasks, |row| row.new.request.target_url.as_str()), Type::TEXT_ARRAY),
                (&column(tasks, |row| row.new.request.method.as_str()), Type::TEXT_ARRAY),
                (&column(tasks, |row| row.request.headers.as_deref()), Type::TEXT_ARRAY),
                (&column(tasks, |row| row.request.overrides.as_deref()), Type::TEXT_ARRAY),
                (&column(tasks, |row| row.request.labels.as_deref()), Type::TEXT_ARRAY),
                (&column(tasks, |row| row.new.request.body.inline().map_or(&[][..], |body| body)), Type::BYTEA_ARRAY),
                (&column(tasks, |row| millis(due(row))), Type::INT8_ARRAY),
                (&column(tasks, |row| millis(row.new.task.deadline_at)), Type::INT8_ARRAY),
                (&column(tasks, |row| row.new.task.backoff.map(micros)), Type::INT8_ARRAY),
                (&column(tasks, |row| row.lease.map(|lease| millis(lease.since))), Type::INT8_ARRAY),
                (&column(tasks, |row| row.lease.map(|lease| millis(lease.until))), Type::INT8_ARRAY),
                (&column(tasks, |row| row.new.request.body.stored().map(BodyRef::to_record)), Type::TEXT_ARRAY),
                (&node, Type::TEXT),
                (
                    &column(tasks, |row| row.new.task.correlation_id.as_ref().map(CorrelationId::as_str)),
                    Type::TEXT_ARRAY,
                ),
                (&column(tasks, |row| row.new.task.trace_parent.map(|parent| parent.to_string())), Type::TEXT_ARRAY),
            ],
        )
        .await?;
    let mut refused = vec![None; tasks.len()];
    for row in &rows {
        let mut cells = Cells::of(row);
        let place: i64 = cells.get()?;
        let (is_pinned, is_stored): (bool, bool) = (cells.get()?, cells.get()?);
        let slot = usize::try_from(place - 1).ok().and_then(|place| refused.get_mut(place));
        *slot.ok_or_else(|| PostgresError::corrupt("submitting", format_args!("place {place}")))? =
            Some(match (is_pinned, is_stored) {
                (false, _) => Refused::PolicyGone,
                (true, false) => Refused::BodyGone,
                (true, true) => Refused::Taken,
            });
    }
    Ok(refused)
}

fn due(row: &EncodedTask) -> redrive_core::Timestamp {
    row.new.task.next_attempt_at.unwrap_or(row.new.task.created_at)
}

/// The numbers that the statements above contain as literals.
const _: () = assert!(status_code(Status::Pending) == 2 && status_code(Status::InFlight) == 3);
