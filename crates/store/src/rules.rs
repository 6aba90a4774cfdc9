//! The rules for what a call does to one task, which every backend follows, as pure functions.
//!
//! PostgreSQL applies [`settled_as`] and [`attempts_after`] in SQL, next to the row; the conformance suite checks that
//! the outcomes are the same.

use redrive_core::idempotency::{Resubmitted, resubmit};
use redrive_core::request::Fingerprint;
use redrive_core::{Class, Reason, Status, Task, Timestamp};

use crate::{Lease, NewTask, Start, Submitted, Token};

/// A new task as it is stored, with its first lease if it starts claimed.
pub fn first_state(new: &NewTask) -> (Task, Option<Lease>) {
    let mut task = new.task.clone();
    let lease = first_lease(&new.task, new.start);
    if lease.is_some() {
        task.status = Status::InFlight;
        task.attempt_number += 1;
    }
    (task, lease)
}

/// The lease of a task that starts claimed.
pub fn first_lease(task: &Task, start: Start) -> Option<Lease> {
    match start {
        Start::Pending => None,
        Start::Claimed(terms, now) => {
            let until = terms.until(now, task.next_attempt_at, task.attempt_timeout);
            Some(Lease { token: Token(1), since: now, until })
        }
    }
}

/// The answer to a submission whose key belongs to this task.
pub fn resubmitted(owner: Box<Task>, stored: Fingerprint, given: Fingerprint) -> Submitted {
    match resubmit(owner.id, stored, given) {
        Resubmitted::Same => Submitted::Replayed(owner),
        Resubmitted::Other => Submitted::KeyReused(owner.id),
        Resubmitted::OtherVersion => Submitted::KeyOfVersion(owner, stored),
    }
}

/// The status and reason that a settlement leads to: a requested cancel wins unless the attempt succeeded.
pub fn settled_as(status: Status, reason: Option<Reason>, cancel_requested: bool) -> (Status, Option<Reason>) {
    match status {
        Status::Succeeded => (status, reason),
        _ if cancel_requested => (Status::Cancelled, Some(Reason::Cancelled)),
        _ => (status, reason),
    }
}

/// The number of attempts after a settlement: a claim that was not sent is not counted.
pub fn attempts_after(attempt_number: u32, was_sent: bool) -> u32 {
    attempt_number.saturating_sub(u32::from(!was_sent))
}

/// The class of a pending task that has made `attempt_number` attempts, `attempts_before` of them in earlier runs.
pub fn class_after(attempt_number: u32, attempts_before: u32) -> Class {
    if attempt_number > attempts_before { Class::Retry } else { Class::First }
}

/// The effect of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// The task was pending and has ended CANCELLED.
    Ended,
    /// The task is in flight and its cancel is requested now: the attempt under way may still succeed.
    Requested,
    /// The task had ended before; nothing changes.
    AlreadyEnded,
}

/// Cancels a task.
pub fn cancel(task: &mut Task, now: Timestamp) -> Cancel {
    match task.status {
        Status::Pending => {
            task.status = Status::Cancelled;
            task.reason = Some(Reason::Cancelled);
            task.ended_at = Some(now);
            task.next_attempt_at = None;
            Cancel::Ended
        }
        Status::InFlight => {
            task.cancel_requested = true;
            Cancel::Requested
        }
        _ => Cancel::AlreadyEnded,
    }
}

/// Ends a pending task because the retry budget of its dependency is spent, if it has made this number of attempts and is
/// not to be cancelled. Returns whether it has ended.
pub fn suppress(task: &mut Task, attempt_number: u32, now: Timestamp) -> bool {
    let waits = task.status == Status::Pending && task.attempt_number == attempt_number && !task.cancel_requested;
    if waits {
        exhaust(task, Reason::Budget, now);
    }
    waits
}

/// Ends a pending task as EXHAUSTED, without an attempt. Its last error stays.
pub fn exhaust(task: &mut Task, reason: Reason, now: Timestamp) {
    task.status = Status::Exhausted;
    task.reason = Some(reason);
    task.next_attempt_at = None;
    task.ended_at = Some(now);
}

/// The effect of bringing a task forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BringForward {
    /// The task was due later and is due now.
    Moved,
    /// The task was due before; nothing changes.
    AlreadyDue,
    /// An attempt is under way; nothing changes.
    InFlight,
    /// The task had ended before; nothing changes.
    AlreadyEnded,
}

/// Makes a pending task due at `now`, unless it is due earlier.
pub fn bring_forward(task: &mut Task, now: Timestamp) -> BringForward {
    match task.status {
        Status::Pending if task.next_attempt_at.is_some_and(|due| due <= now) => BringForward::AlreadyDue,
        Status::Pending => {
            task.next_attempt_at = Some(now);
            BringForward::Moved
        }
        Status::InFlight => BringForward::InFlight,
        _ => BringForward::AlreadyEnded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::samples::{TERMS, at, task};

    #[test]
    fn a_requested_cancel_wins_unless_the_attempt_succeeded() {
        let cancelled = (Status::Cancelled, Some(Reason::Cancelled));
        for (status, reason, with_cancel) in [
            (Status::Succeeded, None, (Status::Succeeded, None)),
            (Status::Pending, None, cancelled),
            (Status::Failed, Some(Reason::NotRetryable), cancelled),
            (Status::Exhausted, Some(Reason::Attempts), cancelled),
        ] {
            assert_eq!(settled_as(status, reason, false), (status, reason), "{status:?}");
            assert_eq!(settled_as(status, reason, true), with_cancel, "{status:?}");
        }
    }

    #[test]
    fn only_what_was_sent_counts() {
        // attempts counted by the claim, sent, attempts after it
        for (counted, was_sent, after) in [(1, true, 1), (1, false, 0), (3, false, 2), (0, false, 0)] {
            assert_eq!(attempts_after(counted, was_sent), after);
        }
        assert_eq!(class_after(0, 0), Class::First);
        assert_eq!(class_after(1, 0), Class::Retry);
        assert_eq!(class_after(4, 4), Class::First, "a new run begins among the first attempts");
    }

    #[test]
    fn a_task_that_starts_claimed_is_in_flight_under_token_1() {
        let mut new = task(1).due(at(0)).claimed(at(3)).0;
        let (stored, lease) = first_state(&new);
        assert_eq!((stored.status, stored.attempt_number), (Status::InFlight, 1));
        let until = TERMS.until(at(3), new.task.next_attempt_at, new.task.attempt_timeout);
        assert_eq!(lease, Some(Lease { token: Token(1), since: at(3), until }));
        new.start = Start::Pending;
        assert_eq!(first_state(&new), (new.task.clone(), None));
    }

    #[test]
    fn a_cancel_ends_a_pending_task_and_marks_one_in_flight() {
        let pending = task(1).due(at(9)).0.task;
        let mut ended = pending.clone();
        assert_eq!(cancel(&mut ended, at(5)), Cancel::Ended);
        assert_eq!((ended.status, ended.ended_at, ended.next_attempt_at), (Status::Cancelled, Some(at(5)), None));
        assert_eq!(cancel(&mut ended, at(6)), Cancel::AlreadyEnded);
        let mut in_flight = Task { status: Status::InFlight, ..pending };
        assert_eq!(cancel(&mut in_flight, at(5)), Cancel::Requested);
        assert_eq!((in_flight.status, in_flight.cancel_requested), (Status::InFlight, true));
    }

    #[test]
    fn only_a_task_that_waits_with_the_same_number_of_attempts_is_suppressed() {
        let pending = Task { attempt_number: 2, ..task(1).due(at(9)).0.task };
        let mut ended = pending.clone();
        assert!(suppress(&mut ended, 2, at(5)));
        assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Budget)));
        assert_eq!((ended.ended_at, ended.next_attempt_at, ended.attempt_number), (Some(at(5)), None, 2));
        let in_flight = Task { status: Status::InFlight, ..pending.clone() };
        let marked = Task { cancel_requested: true, ..pending.clone() };
        for (before, attempts) in [(pending.clone(), 1), (pending, 3), (in_flight, 2), (marked, 2), (ended, 2)] {
            let mut task = before.clone();
            assert!(!suppress(&mut task, attempts, at(6)), "{before:?}");
            assert_eq!(task, before);
        }
    }

    #[test]
    fn only_a_later_due_time_is_brought_forward() {
        let mut waiting = task(1).due(at(9)).0.task;
        assert_eq!(bring_forward(&mut waiting, at(5)), BringForward::Moved);
        assert_eq!(waiting.next_attempt_at, Some(at(5)));
        assert_eq!(bring_forward(&mut waiting, at(7)), BringForward::AlreadyDue);
        assert_eq!(waiting.next_attempt_at, Some(at(5)));
    }
}
