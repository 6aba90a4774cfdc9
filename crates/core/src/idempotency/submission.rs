//! The record of a submission to Redrive itself: operation `submit-task`.
//!
//! The task's row is the record, so a submission needs no row of its own. The record is SUCCEEDED from the commit that
//! stores the task, its resource is the task, and it exists as long as the task's row does.

use std::time::Duration;

use super::record::{Completion, Epoch, ExecutionId, Owner, Record, Resource, State};
use super::reserve::{Reserve, Reserved, reserve};
use super::{RequestHash, ResourceError};
use crate::id::TaskId;
use crate::request::Fingerprint;
use crate::time::Timestamp;

/// The name of the operation.
pub const SUBMIT_TASK: &str = "submit-task";

/// The type of the resource that a submission makes.
const RESOURCE: &str = "retry-task";

/// The record that the row of a task is.
pub fn record_of(task: TaskId, fingerprint: Fingerprint, created_at: Timestamp) -> Result<Record, ResourceError> {
    Ok(Record {
        request_hash: RequestHash(fingerprint.hash),
        state: State::Succeeded,
        owner: owner(task),
        lease_until: created_at,
        retention: Duration::MAX,
        started_at: created_at,
        updated_at: created_at,
        // The row is there, so the record is: a task is deleted by its own retention.
        expires_at: Timestamp::MAX,
        completion: Completion { response: None, resource: Some(Resource::try_new(RESOURCE, task.to_string())?) },
    })
}

fn owner(task: TaskId) -> Owner {
    Owner { execution: ExecutionId::from_u128(task.as_u128()), epoch: Epoch::FIRST }
}

/// The answer to a submission whose key belongs to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resubmitted {
    /// The same request: the caller gets the task.
    Same,
    /// Another request.
    Other,
    /// The stored fingerprint has another version: the caller makes a fingerprint of that version and compares again.
    OtherVersion,
}

/// Decides a submission whose key belongs to a task with the fingerprint `stored`, by the rules of a reservation.
pub fn resubmit(task: TaskId, stored: Fingerprint, given: Fingerprint) -> Resubmitted {
    if stored.version != given.version {
        return Resubmitted::OtherVersion;
    }
    let Ok(record) = record_of(task, stored, Timestamp::from_millis(0)) else { return Resubmitted::Other };
    let ask = Reserve {
        request_hash: RequestHash(given.hash),
        execution: ExecutionId::from_u128(0),
        lease: Duration::ZERO,
        retention: Duration::ZERO,
        is_complete: true,
    };
    match reserve(Some(&record), &ask, record.started_at) {
        (Reserved::Ended(_), _) => Resubmitted::Same,
        _ => Resubmitted::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::FingerprintVersion;

    #[test]
    fn a_task_is_the_record_of_its_submission() {
        let task = TaskId::from_parts(7, 9);
        let print = |version, byte| Fingerprint { version, hash: [byte; 32] };
        let (one, two) = (FingerprintVersion::V1, FingerprintVersion::V2);
        for (stored, given, expected) in [
            (print(two, 1), print(two, 1), Resubmitted::Same),
            (print(two, 1), print(two, 2), Resubmitted::Other),
            (print(one, 1), print(one, 1), Resubmitted::Same),
            (print(one, 1), print(two, 1), Resubmitted::OtherVersion),
            (print(two, 1), print(one, 2), Resubmitted::OtherVersion),
        ] {
            assert_eq!(resubmit(task, stored, given), expected, "{stored:?} {given:?}");
        }
        let record = record_of(task, print(two, 1), Timestamp::from_millis(5)).unwrap();
        assert!(record.is_present(Timestamp::from_millis(u64::MAX / 4)));
        assert_eq!(record.completion.resource.unwrap().id(), task.to_string());
    }
}
