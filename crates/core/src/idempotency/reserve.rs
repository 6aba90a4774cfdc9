//! Reserving a record: which of several callers executes the operation.

use std::time::Duration;

use super::RequestHash;
use super::record::{Completion, Epoch, ExecutionId, Owner, Record, State};
use crate::time::Timestamp;

/// A request to become the owner of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    /// The hash of the request.
    pub request_hash: RequestHash,
    /// The execution that is to own the record.
    pub execution: ExecutionId,
    /// How long no other execution may take over.
    pub lease: Duration,
    /// How long the record is kept after its end.
    pub retention: Duration,
    /// Whether the record ends SUCCEEDED at once: its effect is part of the same transaction, or is applied afterwards
    /// without a way to report it.
    pub is_complete: bool,
}

/// The answer to a [`Reserve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// The execution owns the record: it executes the operation.
    Granted {
        /// Its fencing number.
        epoch: Epoch,
        /// When another execution may take over.
        lease_until: Timestamp,
        /// The execution before it, if its outcome is unknown.
        previous: Option<Previous>,
    },
    /// Another execution is at work.
    InProgress {
        /// When it began.
        started_at: Timestamp,
        /// When another execution may take over.
        lease_until: Timestamp,
    },
    /// The operation has ended: its result.
    Ended(Box<Record>),
    /// The key stands for another request. Nothing of its record is disclosed.
    OtherRequest,
}

/// An execution that did not report a final result. Its effect may have taken place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Previous {
    /// The execution and its epoch.
    pub owner: Owner,
    /// IN_PROGRESS if its lease ran out, FAILED_RETRYABLE if it reported a failure.
    pub state: State,
}

/// Decides a reservation. Returns the answer and, if the record changes, the record to store.
///
/// The request is compared before anything else: a caller that holds the key of another request learns only that.
pub fn reserve(stored: Option<&Record>, ask: &Reserve, now: Timestamp) -> (Reserved, Option<Record>) {
    let Some(record) = stored.filter(|record| record.is_present(now)) else {
        let epoch = stored.map_or(Epoch::FIRST, |record| record.owner.epoch.next());
        return grant(ask, epoch, None, now);
    };
    if record.request_hash != ask.request_hash {
        return (Reserved::OtherRequest, None);
    }
    match record.state {
        // The answer to an earlier call was lost: the same execution may apply the effect, and no other execution was told so.
        State::Succeeded if ask.is_complete && record.was_complete_at_once_by(ask.execution) => {
            let (epoch, lease_until) = (record.owner.epoch, record.lease_until);
            (Reserved::Granted { epoch, lease_until, previous: None }, None)
        }
        State::Succeeded | State::FailedFinal => (Reserved::Ended(Box::new(record.clone())), None),
        // The answer to an earlier call was lost: the same execution asks again.
        State::InProgress if record.owner.execution == ask.execution => {
            let (answer, again) = grant(ask, record.owner.epoch, None, now);
            (answer, again.map(|again| Record { started_at: record.started_at, ..again }))
        }
        State::InProgress if record.is_leased(now) => {
            (Reserved::InProgress { started_at: record.started_at, lease_until: record.lease_until }, None)
        }
        State::InProgress | State::FailedRetryable | State::Released => {
            let previous = Previous { owner: record.owner, state: record.state };
            grant(ask, record.owner.epoch.next(), Some(previous), now)
        }
    }
}

fn grant(ask: &Reserve, epoch: Epoch, previous: Option<Previous>, now: Timestamp) -> (Reserved, Option<Record>) {
    let (state, lease) = match ask.is_complete {
        true => (State::Succeeded, Duration::ZERO),
        false => (State::InProgress, ask.lease),
    };
    let lease_until = now.after(lease);
    let record = Record {
        request_hash: ask.request_hash,
        state,
        owner: Owner { execution: ask.execution, epoch },
        lease_until,
        retention: ask.retention,
        started_at: now,
        updated_at: now,
        expires_at: lease_until.after(ask.retention),
        completion: Completion::default(),
    };
    (Reserved::Granted { epoch, lease_until, previous }, Some(record))
}
