//! Idempotency records, of operations and of consumers' inboxes.
//!
//! What a call does to one record is decided by the pure functions of [`redrive_core::idempotency`]. A store reads the
//! row, asks them, and writes what they return, in one transaction. Calls for the same record exclude each other.
//!
//! Whether a record has expired is decided when it is read, by the time of the call. [`clean`](Records::clean) only frees
//! the space.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use redrive_core::idempotency::{
    Change, Changed, Epoch, Operation, Owner, Record, RecordKey, Reserve, Reserved, State,
};
use redrive_core::{TenantId, Timestamp};

use crate::{Answers, Error};

/// The most bytes of inline bodies in the answers to one call of [`Records::reserve`]. The first body is always there.
pub const MOST_BODY_BYTES: u64 = 8 * 1024 * 1024;

/// Counts the bodies in the answers to one call, up to [`MOST_BODY_BYTES`].
#[derive(Debug, Default)]
pub struct BodyAllowance {
    used: u64,
}

impl BodyAllowance {
    /// Whether the answers may have one more body of this length. If so, it counts.
    pub fn admits(&mut self, length: u64) -> bool {
        let used = self.used.saturating_add(length);
        let is_admitted = self.used == 0 || used <= MOST_BODY_BYTES;
        if is_admitted {
            self.used = used;
        }
        is_admitted
    }

    /// The same answer, without the bytes of its body if there is no room for them.
    #[must_use]
    pub fn limit(&mut self, answer: Reserved) -> Reserved {
        match answer {
            Reserved::Ended(record) => {
                let body = record.completion.response.as_ref().and_then(|response| response.body.inline());
                let is_admitted = body.is_none_or(|bytes| self.admits(bytes.len() as u64));
                Reserved::Ended(if is_admitted { record } else { Box::new(record.without_body()) })
            }
            answer => answer,
        }
    }
}

/// Stores idempotency records.
#[async_trait]
pub trait Records: Send + Sync {
    /// Decides [reservations](redrive_core::idempotency::reserve) in one commit. Items for the same record are decided in
    /// their order. The bodies of results together have at most [`MOST_BODY_BYTES`]; the others are
    /// [left out](redrive_core::Body::LeftOut), and are read with [`read`](Records::read).
    async fn reserve(&self, reservations: Vec<Reservation>, now: Timestamp) -> Result<Answers<Reserved>, Error>;

    /// Makes [changes](redrive_core::idempotency::change) of owners in one commit. Items for the same record are made in
    /// their order. A response whose body is stored is accepted only if its blob is [kept](crate::Blobs::adopt), which is
    /// checked in the same transaction.
    async fn change(&self, changes: Vec<RecordChange>, now: Timestamp) -> Result<Answers<RecordChanged>, Error>;

    /// One record, if it is present at `now`.
    async fn read(&self, key: RecordKey, now: Timestamp) -> Result<Option<Record>, Error>;

    /// A page of the records that are present, in the order of their operations' texts; within an operation, each store
    /// has an order of its own. A page may be short, even empty, and still have a `next`, because one call looks at a
    /// bounded number of rows. The bytes of bodies are [left out](redrive_core::Body::LeftOut).
    async fn list(&self, query: RecordQuery) -> Result<RecordPage, Error>;

    /// [Deletes](redrive_core::idempotency::delete) a record if it is still the one that the caller has seen.
    async fn delete(&self, key: RecordKey, seen: Option<SeenRecord>, now: Timestamp) -> Result<DeletedRecord, Error>;

    /// How many rows each operation of the tenant has in each state, in the order of the operations' texts after `after`, at
    /// most `limit` operations. Each number is counted up to `most`. Rows that have expired are counted until they are
    /// cleaned; rows that were given up are not counted.
    async fn counts(
        &self,
        tenant: TenantId,
        after: Option<Operation>,
        limit: usize,
        most: u32,
    ) -> Result<Vec<OperationCounts>, Error>;

    /// Removes records that have expired at `now`, those that expired first, at most `limit`. Returns how many it removed:
    /// fewer than `limit` if there are no more.
    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error>;
}

/// The calls for a single record.
impl dyn Records + '_ {
    /// Decides one [reservation](Records::reserve).
    pub async fn reserve_one(&self, key: RecordKey, ask: Reserve, now: Timestamp) -> Result<Reserved, Error> {
        crate::tasks::only(self.reserve(vec![Reservation { key, ask }], now).await?)
    }

    /// Makes one [change](Records::change).
    pub async fn change_one(
        &self,
        key: RecordKey,
        owner: Owner,
        change: Change,
        now: Timestamp,
    ) -> Result<RecordChanged, Error> {
        crate::tasks::only(self.change(vec![RecordChange { key, owner, change }], now).await?)
    }
}

/// A request to own a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Which record.
    pub key: RecordKey,
    /// For which request, and by whom.
    pub ask: Reserve,
}

/// A change by the owner of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChange {
    /// Which record.
    pub key: RecordKey,
    /// Who changes it.
    pub owner: Owner,
    /// What is changed.
    pub change: Change,
}

/// The answer to a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordChanged {
    /// What was decided.
    Decided(Changed),
    /// The blob that the response's body refers to is not kept any more: it must be uploaded again. Nothing was changed.
    BodyGone,
}

/// A filter for records.
#[derive(Debug, Clone)]
pub struct RecordQuery {
    /// Only records of this tenant.
    pub tenant: TenantId,
    /// Which operations.
    pub operations: OperationFilter,
    /// Only records in this state.
    pub state: Option<State>,
    /// Only records that last changed before this moment.
    pub updated_before: Option<Timestamp>,
    /// Only records behind this place: the `next` of the previous page.
    pub after: Option<RecordCursor>,
    /// At most this many records.
    pub limit: usize,
    /// The present moment: records that have expired are left out.
    pub now: Timestamp,
}

/// Which operations a list of records is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationFilter {
    /// All operations; no inbox.
    AllNamed,
    /// One operation, or the inbox of one consumer.
    One(Operation),
}

impl OperationFilter {
    /// Whether records of this operation are listed.
    pub fn permits(&self, operation: &Operation) -> bool {
        match self {
            OperationFilter::AllNamed => matches!(operation, Operation::Named(_)),
            OperationFilter::One(one) => one == operation,
        }
    }
}

/// A page of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordPage {
    /// The records.
    pub records: Vec<(RecordKey, Record)>,
    /// Where the next page begins, if there may be one.
    pub next: Option<RecordCursor>,
}

/// A place in a list of records: an operation, and a place within it whose meaning only the store that made it knows. It
/// stays valid when the records around it are gone.
///
/// Written as one text: the operation, a blank, and the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordCursor {
    operation: Operation,
    place: String,
}

/// A text is not a cursor of a list of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a cursor from the previous page")]
pub struct InvalidRecordCursor;

impl RecordCursor {
    /// The place within this operation.
    pub fn new(operation: Operation, place: impl Into<String>) -> Self {
        RecordCursor { operation, place: place.into() }
    }

    /// The operation.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// The place within the operation.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for RecordCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.place)
    }
}

impl FromStr for RecordCursor {
    type Err = InvalidRecordCursor;

    fn from_str(text: &str) -> Result<Self, InvalidRecordCursor> {
        // The text of an operation has no blank.
        let (operation, place) = text.split_once(' ').ok_or(InvalidRecordCursor)?;
        Ok(RecordCursor::new(operation.parse().map_err(|_| InvalidRecordCursor)?, place))
    }
}

/// The version of a record that a caller has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenRecord {
    /// The epoch of its owner.
    pub epoch: Epoch,
    /// Its state.
    pub state: State,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its lease ends: a renewal may come in the millisecond of the change before it.
    pub lease_until: Timestamp,
}

impl SeenRecord {
    /// The version of this record.
    pub fn of(record: &Record) -> Self {
        let Record { owner, state, updated_at, lease_until, .. } = *record;
        SeenRecord { epoch: owner.epoch, state, updated_at, lease_until }
    }
}

/// The answer to the deletion of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletedRecord {
    /// It was deleted; this is what it was.
    Done(Box<Record>),
    /// It has changed since the caller saw it; this is what it is now. Nothing was changed.
    Changed(Box<Record>),
    /// There is no such record.
    Absent,
}

/// How many records an operation has in each state, each number up to a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationCounts {
    /// The operation.
    pub operation: Operation,
    /// Executions under way, or abandoned.
    pub in_progress: u32,
    /// Operations that took place.
    pub succeeded: u32,
    /// Executions that failed and may be made again.
    pub failed_retryable: u32,
    /// Operations that failed for good.
    pub failed_final: u32,
}

impl OperationCounts {
    /// An operation without records.
    pub fn none(operation: Operation) -> Self {
        OperationCounts { operation, in_progress: 0, succeeded: 0, failed_retryable: 0, failed_final: 0 }
    }

    /// The number of records in this state; `None` for records that were given up, which are not counted.
    pub fn of_mut(&mut self, state: State) -> Option<&mut u32> {
        match state {
            State::InProgress => Some(&mut self.in_progress),
            State::Succeeded => Some(&mut self.succeeded),
            State::FailedRetryable => Some(&mut self.failed_retryable),
            State::FailedFinal => Some(&mut self.failed_final),
            State::Released => None,
        }
    }
}

impl RecordQuery {
    /// Whether this record is in the list.
    pub fn permits(&self, key: &RecordKey, record: &Record) -> bool {
        key.tenant == self.tenant
            && self.operations.permits(&key.operation)
            && record.is_present(self.now)
            && self.state.is_none_or(|state| record.state == state)
            && self.updated_before.is_none_or(|before| record.updated_at < before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_admitted_up_to_the_bound_and_the_first_one_always() {
        // the lengths of the bodies, which of them are admitted
        for (lengths, expected) in [
            ([MOST_BODY_BYTES + 1, 1, 0], [true, false, false]),
            ([MOST_BODY_BYTES - 1, 2, 1], [true, false, true]),
            ([0, MOST_BODY_BYTES, 1], [true, true, false]),
        ] {
            let mut allowance = BodyAllowance::default();
            assert_eq!(lengths.map(|length| allowance.admits(length)), expected, "{lengths:?}");
        }
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for text in ["pay 17", "inbox/billing event-1", "pay a%b", "pay "] {
            assert_eq!(text.parse::<RecordCursor>().unwrap().to_string(), text);
        }
        for text in ["", "pay", " 17", "a/b 17"] {
            assert_eq!(text.parse::<RecordCursor>(), Err(InvalidRecordCursor), "{text:?}");
        }
    }
}
