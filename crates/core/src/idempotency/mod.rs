//! Idempotency records: at most one execution of an operation commits its effect, and duplicates get its result.
//!
//! A record belongs to a tenant, an operation and an idempotency key. It is a small state machine:
//!
//! ```text
//! ABSENT ──reserve──▶ IN_PROGRESS ──complete──▶ SUCCEEDED
//!    ▲                 ▲  │  │  └──fail, final──▶ FAILED_FINAL
//!    │                 │  │  └──fail, retryable──▶ FAILED_RETRYABLE ──┐
//!    │                 │  └──release──▶ RELEASED ─────────────────────┤
//!    │                 └──reserve: a new owner with a higher epoch ◀──┴── or the lease is over
//!    └── expired (every state)
//! ```
//!
//! The owner of a record is an execution and its *epoch*, a number that grows with every new owner. Only the current
//! owner changes the record, so an owner that was suspended past its lease cannot overwrite the result of the next one.
//!
//! All functions are pure: they get the record as it is stored and the time, and return the answer and the record to
//! store. A record that has expired is treated as absent, whether or not it was deleted already. Its epoch goes on, as
//! long as the row exists.
//!
//! Not here: how records are stored (`redrive-store`), how a request is hashed ([`request_hash`]).

mod change;
mod record;
pub mod request_hash;
mod reserve;
mod submission;

pub use change::{Change, Changed, change, delete};
pub use record::{
    Completion, Epoch, ExecutionId, Operation, Owner, Record, RecordKey, Resource, ResourceError, Response, State,
};
pub use request_hash::RequestHash;
pub use reserve::{Previous, Reserve, Reserved, reserve};
pub use submission::{Resubmitted, SUBMIT_TASK, record_of, resubmit};

#[cfg(test)]
mod tests;
