//! Changes by the owner of a record, compared and set on its execution and epoch; and deletion by an operator.

use std::time::Duration;

use super::record::{Completion, Owner, Record, State};
use crate::time::Timestamp;

/// A change that only the owner may make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The operation took place.
    Complete(Completion),
    /// The operation failed for good; duplicates get this result.
    FailFinal(Completion),
    /// The execution failed; the next caller may execute the operation again.
    FailRetryable,
    /// The owner needs more time: the lease ends this long from now.
    Renew(Duration),
    /// The owner has done nothing and gives the record up.
    Release,
}

impl Change {
    /// The state after the change.
    pub const fn state(&self) -> State {
        match self {
            Change::Complete(_) => State::Succeeded,
            Change::FailFinal(_) => State::FailedFinal,
            Change::FailRetryable => State::FailedRetryable,
            Change::Renew(_) => State::InProgress,
            Change::Release => State::Released,
        }
    }
}

/// The answer to a [`Change`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// The change was made, now or by an earlier call of the same owner whose answer was lost. The record after it.
    Done(Box<Record>),
    /// Another execution owns the record, or did: nothing was changed.
    Fenced,
    /// The same owner has ended the record before, in another way: nothing was changed.
    AlreadyEnded(State),
    /// There is no record with this key.
    Absent,
}

/// Decides a change. Returns the answer and, if the record changes, the record to store.
///
/// An owner whose lease is over may still change the record, as long as no other execution has taken over: what it
/// reports is the truth. A change that was made before is answered like the first time.
pub fn change(stored: Option<&Record>, owner: Owner, change: &Change, now: Timestamp) -> (Changed, Option<Record>) {
    // A record that was given up still tells its last owner what happened.
    let Some(record) = stored.filter(|record| now < record.expires_at) else { return (Changed::Absent, None) };
    if record.owner != owner {
        let was_replaced = record.state != State::Released || record.owner.epoch > owner.epoch;
        return (if was_replaced { Changed::Fenced } else { Changed::Absent }, None);
    }
    if record.state != State::InProgress {
        let is_repeated = record.state == change.state() && record.completion == *change.completion();
        return match is_repeated {
            true => (Changed::Done(Box::new(record.clone())), None),
            false => (Changed::AlreadyEnded(record.state), None),
        };
    }
    let mut changed = Record { state: change.state(), updated_at: now, ..record.clone() };
    match change {
        Change::Renew(lease) => changed.lease_until = now.after(*lease),
        _ => changed.lease_until = now,
    }
    changed.completion = change.completion().clone();
    changed.expires_at = changed.lease_until.after(record.retention);
    (Changed::Done(Box::new(changed.clone())), Some(changed))
}

impl Change {
    fn completion(&self) -> &Completion {
        const NONE: &Completion = &Completion { response: None, resource: None };
        match self {
            Change::Complete(completion) | Change::FailFinal(completion) => completion,
            Change::FailRetryable | Change::Renew(_) | Change::Release => NONE,
        }
    }
}

/// Deletes a record for an operator. The row is kept without its result until it expires, so that the next owner gets a
/// higher epoch than every owner before.
pub fn delete(record: &Record, now: Timestamp) -> Record {
    Record { state: State::Released, updated_at: now, completion: Completion::default(), ..record.clone() }
}
