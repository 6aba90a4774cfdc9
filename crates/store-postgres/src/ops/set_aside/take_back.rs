//! Taking back rows that this program can read.
//!
//! A row is first read as it would be after it was taken back, so that a row that is still unreadable costs no write.

use redrive_core::{BodyRef, Dependency};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{BLOB, POLICY_VERSION, TASK};
use crate::codec::{Cells, LIVE_TASK_COLUMN_COUNT, REQUEST_COLUMN_COUNT, Uuid, any_task, request_columns};
use crate::connection::Connection;
use crate::ops::find::{detail_columns, read_detail};
use crate::ops::policies;
use crate::postgres_error::PostgresError;

/// How many records are read in one step.
const STEP: i64 = 200;

/// Which rows may be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// All rows that can be read.
    All,
    /// All except those that PostgreSQL refused to change: reading them does not show whether it still refuses.
    NotRefused,
}

/// The primary key of a record in `redrive.set_aside`. The order of the keys is the order of a scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordKey {
    kind: String,
    tenant: String,
    name: String,
}

const NOTES: &str = "
SELECT kind, tenant, name, is_refused FROM redrive.set_aside
WHERE (kind, tenant, name) > ($1, $2, $3)
ORDER BY kind, tenant, name
LIMIT $4";

/// Takes back the next rows after a key. Returns how many were taken back, and where to continue.
pub(crate) async fn take_back(
    connection: &Connection,
    after: &RecordKey,
    which: Which,
) -> Result<(usize, Option<RecordKey>), PostgresError> {
    let [kind, tenant, name] = after.key();
    let notes = connection.query(NOTES, &[kind, tenant, name, (&STEP, Type::INT8)]).await?;
    let (mut taken_back, mut last) = (0, None);
    for row in &notes {
        let mut cells = Cells::of(row);
        let note = RecordKey { kind: cells.get()?, tenant: cells.get()?, name: cells.get()? };
        let is_refused: bool = cells.get()?;
        if !(is_refused && which == Which::NotRefused) {
            taken_back += usize::from(take_one_back(connection, &note).await?);
        }
        last = Some(note);
    }
    let is_more = i64::try_from(notes.len()).is_ok_and(|notes| notes == STEP);
    Ok((taken_back, last.filter(|_| is_more)))
}

/// Takes one row back; returns whether that worked. A row that PostgreSQL refuses to read or to change stays set aside
/// and does not affect the others.
async fn take_one_back(connection: &Connection, note: &RecordKey) -> Result<bool, PostgresError> {
    let taken_back = async {
        let is_understood = is_understood(connection, note).await?;
        if is_understood {
            connection.query(TAKE_BACK, &note.key()).await?;
        }
        Ok::<_, PostgresError>(is_understood)
    };
    match taken_back.await {
        Err(failure) if failure.is_about_a_row() || failure.is_lock_timeout() => {
            tracing::debug!(%failure, name = note.name, "a row that was set aside could not be taken back");
            Ok(false)
        }
        taken_back => taken_back,
    }
}

impl RecordKey {
    fn key(&self) -> [crate::connection::Argument<'_>; 3] {
        [(&self.kind, Type::TEXT), (&self.tenant, Type::TEXT), (&self.name, Type::TEXT)]
    }
}

/// Takes the row back. A task that was settled in the meantime is not hidden any more and stays unchanged.
const TAKE_BACK: &str = "
WITH note AS MATERIALIZED (
    DELETE FROM redrive.set_aside WHERE kind = $1 AND tenant = $2 AND name = $3
    RETURNING tenant, CASE WHEN kind = 'task' THEN name::uuid END AS id, was_lease_since, was_lease_until, was_node,
              was_unannounced
), shown AS (
    UPDATE redrive.live SET
        lease_since = note.was_lease_since, lease_until = note.was_lease_until, node = note.was_node
    FROM note
    WHERE live.tenant = note.tenant AND live.id = note.id AND num_nulls(live.lease_since) = 1
      AND num_nulls(live.lease_until) = 0
)
UPDATE redrive.dead_letters SET announced = false
FROM note
WHERE note.was_unannounced AND dead_letters.tenant = note.tenant AND dead_letters.id = note.id";

async fn is_understood(connection: &Connection, note: &RecordKey) -> Result<bool, PostgresError> {
    let read = match note.kind.as_str() {
        TASK => read_task(connection, note).await,
        POLICY_VERSION => read_policy_version(connection, note).await,
        BLOB => Ok(BodyRef::from_record(&note.name).is_ok()),
        // A newer program has kinds that this one cannot read.
        _ => Ok(false),
    };
    match read {
        Err(failure) if failure.is_about_a_value() => Ok(false),
        read => read,
    }
}

/// The task with the lease that it had before it was set aside.
const AS_IT_WAS: &str = concat!(
    "SELECT ",
    detail_columns!(),
    ", live.dependency, live.class, live.id IS NOT NULL, tasks.id IS NOT NULL
     FROM (SELECT * FROM redrive.set_aside WHERE kind = 'task' AND tenant = $1 AND name = $2::uuid::text) AS note
     LEFT JOIN LATERAL (
         SELECT * FROM redrive.tasks WHERE tasks.tenant = $1 AND tasks.id = $2 LIMIT 1
     ) AS tasks ON true
     LEFT JOIN LATERAL (
         SELECT live.id, live.due_at, live.token, live.attempt_number, live.attempts_before, live.run,
                live.run_started_at, live.deadline_at, live.backoff_us, live.cancel_requested, live.dependency,
                live.error_kind, live.error_message, live.class, live.dns_failures,
                CASE WHEN live.lease_since IS NULL THEN note.was_lease_since ELSE live.lease_since END AS lease_since,
                CASE WHEN live.lease_since IS NULL THEN note.was_lease_until ELSE live.lease_until END AS lease_until
         FROM redrive.live
         WHERE live.tenant = $1 AND live.id = $2
         LIMIT 1
     ) AS live ON true
     LEFT JOIN LATERAL (
         SELECT * FROM redrive.log
         WHERE live.id IS NULL AND log.tenant = $1 AND log.id = $2
         ORDER BY log.token DESC
         LIMIT 1
     ) AS ended ON true"
);

/// Where the additional columns of `live` start.
const LIVE_COLUMNS: usize = LIVE_TASK_COLUMN_COUNT + REQUEST_COLUMN_COUNT + ANSWER_COLUMN_COUNT;
const ANSWER_COLUMN_COUNT: usize = 5;

async fn read_task(connection: &Connection, note: &RecordKey) -> Result<bool, PostgresError> {
    let id: redrive_core::TaskId =
        note.name.parse().map_err(|_| PostgresError::corrupt(format_args!("task {}", note.name), "is no task id"))?;
    let rows = connection.query(AS_IT_WAS, &[(&note.tenant, Type::TEXT), (&Uuid::from(id), Type::UUID)]).await?;
    // Another process has taken it back.
    let Some(row) = rows.first() else { return Ok(false) };
    let (is_live, is_kept): (bool, bool) =
        (Cells::from(row, LIVE_COLUMNS + 2).get()?, Cells::from(row, LIVE_COLUMNS + 3).get()?);
    if !is_kept {
        // A live row without its task cannot be used. If there is no live row either, the task was cleaned away.
        return Ok(!is_live);
    }
    let detail = read_detail(row)?;
    if is_live {
        check_live(row, &detail.task)?;
    }
    Ok(true)
}

/// Checks the columns of `live` that claims and scans also read.
fn check_live(row: &Row, task: &redrive_core::Task) -> Result<(), PostgresError> {
    let mut cells = Cells::from(row, LIVE_COLUMNS);
    let dependency = cells.parsed(|text| Dependency::try_new(text).ok())?;
    if dependency != task.lane.dependency {
        return Err(cells.wrong("is not that of the task"));
    }
    cells.class().map(drop)
}

async fn read_policy_version(connection: &Connection, note: &RecordKey) -> Result<bool, PostgresError> {
    let parsed = note.name.split_once(' ').and_then(|(version, policy)| Some((version.parse().ok()?, policy)));
    let Some((version, policy)) = parsed else { return Ok(false) };
    // A version that was deleted and cleaned away needs no record any more.
    policies::read_version(connection, &note.tenant, policy, version).await.map(|_| true)
}
