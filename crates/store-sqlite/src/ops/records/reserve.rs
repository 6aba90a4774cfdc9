//! Reserving records.

use redrive_core::Timestamp;
use redrive_core::idempotency::{self, Reserved};
use redrive_store::Reservation;

use super::{find, rows};
use crate::keys::KeyHash;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// A reservation and the hash of its key, computed before the writer runs it.
#[derive(Debug)]
pub(crate) struct HashedReservation {
    reservation: Reservation,
    hash: KeyHash,
}

impl HashedReservation {
    pub(crate) fn new(reservation: Reservation) -> Self {
        HashedReservation { hash: KeyHash::of_record(&reservation.key), reservation }
    }
}

pub(crate) fn reserve(
    writer: &mut Writer,
    reservation: &HashedReservation,
    now: Timestamp,
) -> Result<Reserved, SqliteError> {
    let HashedReservation { reservation: Reservation { key, ask }, hash } = reservation;
    let stored = find::by_key(writer, key, *hash)?;
    let (answer, changed) = idempotency::reserve(stored.as_ref().map(|row| &row.record), ask, now);
    match (changed, stored) {
        (Some(record), Some(stored)) => rows::update(&writer.connection, stored.id, &record, None)?,
        (Some(record), None) => rows::insert(writer, key, *hash, &record)?,
        (None, _) => {}
    }
    Ok(answer)
}
