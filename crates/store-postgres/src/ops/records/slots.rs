//! The rows of a batch's keys: locked and read, decided on, and written.

use redrive_core::idempotency::Record;
use redrive_store::Error;
use tokio_postgres::Row;

use super::keys::Keys;
use crate::codec::{Cells, RecordArrays, record, record_columns};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// Reads the rows of the given keys, in their order. `$lock` is the row's lock, or `LIMIT 1`.
macro_rules! rows {
    ($columns:expr, $lock:literal) => {
        concat!(
            "SELECT given.place, ",
            $columns,
            "
             FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS given (tenant, operation, name, place)
             CROSS JOIN LATERAL (
                 SELECT * FROM redrive.idempotency_records AS record
                 WHERE record.tenant = given.tenant AND record.operation = given.operation AND record.name = given.name
                 ",
            $lock,
            "
             ) AS record"
        )
    };
}

/// The columns of a record, with a small body only: a reservation does not change a record that has one.
macro_rules! light_columns {
    () => {
        record_columns!("CASE WHEN octet_length(record.body) <= 8192 THEN record.body END")
    };
}

/// Reads rows as they are committed.
pub(super) const READ: &str = rows!(record_columns!(), "LIMIT 1");
/// Locks rows, and waits for other transactions.
pub(super) const LOCK: &str = rows!(record_columns!(), "FOR UPDATE");
/// Locks the rows that no other transaction has locked.
pub(super) const LOCK_FREE: &str = rows!(record_columns!(), "FOR UPDATE SKIP LOCKED");

/// The same without large bodies.
pub(super) const READ_LIGHT: &str = rows!(light_columns!(), "LIMIT 1");
pub(super) const LOCK_LIGHT: &str = rows!(light_columns!(), "FOR UPDATE");
pub(super) const LOCK_FREE_LIGHT: &str = rows!(light_columns!(), "FOR UPDATE SKIP LOCKED");

/// Writes rows that exist and are locked. An INSERT whose row always exists finds it by its key; an UPDATE with a join
/// might walk the table if the planner believes that it is small.
const WRITE: &str = "
INSERT INTO redrive.idempotency_records (
    tenant, operation, name, request_hash, state, execution, epoch, lease_until, retention_ms, started_at, updated_at,
    expires_at, response_status, response_headers, body_ref, body, resource_kind, resource_id
)
SELECT * FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::uuid[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::text[], $16::bytea[], $17::text[],
    $18::text[]
)
ON CONFLICT (tenant, operation, name) DO UPDATE SET
    request_hash = excluded.request_hash, state = excluded.state, execution = excluded.execution,
    epoch = excluded.epoch, lease_until = excluded.lease_until, retention_ms = excluded.retention_ms,
    started_at = excluded.started_at, updated_at = excluded.updated_at, expires_at = excluded.expires_at,
    response_status = excluded.response_status, response_headers = excluded.response_headers,
    body_ref = excluded.body_ref, body = excluded.body, resource_kind = excluded.resource_kind,
    resource_id = excluded.resource_id";

/// What is known of one key.
#[derive(Debug, Clone)]
pub(super) enum Slot {
    /// There is no row, or this batch has inserted it.
    Absent,
    /// The row.
    Present(Record),
    /// The row has been changed to this by the batch, which is not written yet.
    Changed(Record),
    /// The row cannot be read: every item for it fails.
    Unreadable(Error),
    /// Another transaction has locked the row. What it has committed before.
    Held(Box<Slot>),
}

impl Slot {
    /// The record as the items so far have left it.
    pub(super) fn record(&self) -> Result<Option<&Record>, Error> {
        match self {
            Slot::Absent => Ok(None),
            Slot::Present(record) | Slot::Changed(record) => Ok(Some(record)),
            Slot::Held(committed) => committed.record(),
            Slot::Unreadable(error) => Err(error.clone()),
        }
    }

    pub(super) fn change(&mut self, changed: Option<Record>) {
        if let Some(record) = changed {
            *self = Slot::Changed(record);
        }
    }
}

/// Marks the slots at `places`, whose rows were not locked, as held if the rows are there.
pub(super) async fn fill_held(
    connection: &Connection,
    keys: &Keys<'_>,
    slots: &mut [Slot],
    places: &[usize],
    (read, doing): (&'static str, &str),
) -> Result<(), PostgresError> {
    let missed: Vec<usize> = places.iter().copied().filter(|place| matches!(slots[*place], Slot::Absent)).collect();
    if missed.is_empty() {
        return Ok(());
    }
    let rows = connection.query(read, &keys.columns(missed.iter().copied()).arguments()).await?;
    fill(slots, &missed, &rows, doing)?;
    for place in missed {
        if !matches!(slots[place], Slot::Absent) {
            slots[place] = Slot::Held(Box::new(std::mem::replace(&mut slots[place], Slot::Absent)));
        }
    }
    Ok(())
}

/// Fills the slots from the rows of a statement that was asked for the keys at `places`.
pub(super) fn fill(slots: &mut [Slot], places: &[usize], rows: &[Row], doing: &str) -> Result<(), PostgresError> {
    for row in rows {
        let mut cells = Cells::of(row);
        let place: i64 = cells.get()?;
        let at = usize::try_from(place - 1).ok().and_then(|place| places.get(place));
        let at = *at.ok_or_else(|| cells.wrong(format_args!("place {place}")))?;
        slots[at] = match record(&mut cells) {
            Ok(record) => Slot::Present(record),
            Err(failure) => Slot::Unreadable(failure.into_error(doing)),
        };
    }
    Ok(())
}

/// Writes the changed slots and commits. If nothing has changed, and nothing was inserted, there is nothing to commit.
pub(super) async fn commit(
    connection: &mut Connection,
    keys: &Keys<'_>,
    slots: &[Slot],
    has_inserted: bool,
) -> Result<(), PostgresError> {
    let (mut places, mut records) = (Vec::new(), RecordArrays::default());
    for (place, slot) in slots.iter().enumerate() {
        if let Slot::Changed(record) = slot {
            places.push(place);
            records.push(record).map_err(|error| PostgresError::corrupt("a record", error))?;
        }
    }
    if places.is_empty() {
        return if has_inserted { connection.end(Ok(())).await } else { connection.roll_back().await };
    }
    let (keys, records) = (keys.columns(places.into_iter()), records);
    let arguments: Vec<_> = keys.arguments().into_iter().chain(records.arguments()).collect();
    connection.commit_with(WRITE, &arguments).await.map(drop)
}

/// Rolls back what a failed batch may have left open, and returns its outcome.
pub(super) async fn closed<T>(
    connection: &mut Connection,
    outcome: Result<T, PostgresError>,
) -> Result<T, PostgresError> {
    if outcome.is_err()
        && let Err(failure) = connection.roll_back().await
    {
        tracing::debug!(%failure, "rolling back a batch of records");
    }
    outcome
}
