//! Idempotency records.
//!
//! What a call does to a record is decided by the pure functions of [`redrive_core::idempotency`]. A record is found by its
//! key: by the writer, because only the writer has the newest keys. Changes are written at once, so that a later item of the
//! same call sees them.

pub(crate) mod change;
pub(crate) mod clean;
pub(crate) mod counts;
pub(crate) mod delete;
pub(crate) mod find;
pub(crate) mod list;
pub(crate) mod reserve;
mod rows;
