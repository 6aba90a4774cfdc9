//! Idempotency records.
//!
//! Reservations and changes run in batches. A batch is one transaction: it inserts the records that are absent, locks and
//! reads the others, decides every item with the pure functions of `redrive_core::idempotency`, and writes what has
//! changed. That is two round trips, or three if there are both absent and present records.
//!
//! A transaction of another program may hold a record for long, because it has called `redrive.reserve` and has not
//! ended. A batch that waits for it fails after the lock timeout of the writers, and each key is tried alone beside the
//! next batches. If the key is still held, its reservations are answered "in progress", and its changes fail.

pub(crate) mod change;
pub(crate) mod clean;
pub(crate) mod counts;
pub(crate) mod delete;
pub(crate) mod keys;
pub(crate) mod list;
pub(crate) mod read;
pub(crate) mod reserve;
mod slots;
