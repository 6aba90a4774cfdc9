//! Deleting a record for an operator.

use redrive_core::Timestamp;
use redrive_core::idempotency;
use redrive_store::{DeletedRecord, SeenRecord};

use super::keys::{EncodedKey, Keys};
use super::slots::{LOCK, Slot, closed, commit, fill};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

pub(crate) const DOING: &str = "deleting a record";

/// One transaction.
pub(crate) async fn delete(
    connection: &mut Connection,
    key: &EncodedKey,
    seen: Option<SeenRecord>,
    now: Timestamp,
) -> Result<DeletedRecord, PostgresError> {
    let outcome = run(connection, key, seen, now).await;
    closed(connection, outcome).await
}

async fn run(
    connection: &mut Connection,
    key: &EncodedKey,
    seen: Option<SeenRecord>,
    now: Timestamp,
) -> Result<DeletedRecord, PostgresError> {
    let keys = Keys::of(std::iter::once(key.text()));
    let rows = connection.begin_with(LOCK, &keys.columns(0..1).arguments()).await?;
    let mut slots = [Slot::Absent];
    fill(&mut slots, &[0], &rows, DOING)?;
    let [slot] = &mut slots;
    let answer = match slot {
        Slot::Unreadable(error) => return Err(PostgresError::Corrupt(error.to_string())),
        Slot::Present(record) if record.is_present(now) => {
            let record = record.clone();
            if seen.is_some_and(|seen| seen != SeenRecord::of(&record)) {
                DeletedRecord::Changed(Box::new(record))
            } else {
                slot.change(Some(idempotency::delete(&record, now)));
                DeletedRecord::Done(Box::new(record))
            }
        }
        _ => DeletedRecord::Absent,
    };
    commit(connection, &keys, &slots, false).await?;
    Ok(answer)
}
