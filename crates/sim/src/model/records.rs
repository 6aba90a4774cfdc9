//! Invariants 10 and 14: idempotency records.
//!
//! Every call is judged at the moment at which it takes effect in the store, by the time that it was made with. Calls for
//! one record exclude each other, so the model knows each record, whatever happens to answers and processes:
//!
//! - **10.** A key, an operation and a tenant have one request and one result: it is given to every caller with the same
//!   request until it expires, and to no other caller. At most one execution owns the record while its lease lasts.
//! - **14.** Epochs only grow. A change by an owner that was replaced changes nothing and says so; a change by the owner
//!   is made. A final result does not change until the record has expired or was deleted.
//!
//! A record that has expired counts as absent, whether or not it was cleaned away. Cleaning it is visible only in its
//! epoch, which then begins again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::Timestamp;
use redrive_core::idempotency::{
    Change, Changed, Completion, Epoch, Owner, Previous, Record, RecordKey, RequestHash, Reserve, Reserved, State,
};
use redrive_store::{DeletedRecord, SeenRecord};

use super::Model;
use crate::moment::Moment;

/// All records.
#[derive(Debug, Default)]
pub(super) struct Records {
    rows: BTreeMap<RecordKey, Row>,
    /// Records that were cleaned away or not: of two that expired at the same time, only one was.
    unknown: BTreeSet<RecordKey>,
}

/// A record as it must be stored.
#[derive(Debug, Clone)]
struct Row {
    hash: RequestHash,
    owner: Owner,
    state: State,
    lease_until: Timestamp,
    retention: Duration,
    updated_at: Timestamp,
    expires_at: Timestamp,
    completion: Completion,
    /// Whether its reservation was complete at once.
    is_complete: bool,
}

/// What is wrong: an invariant, and what happened.
type Wrong = (u8, String);

impl Model {
    /// A reservation took effect.
    pub fn record_reserved(&mut self, key: &RecordKey, ask: &Reserve, now: Timestamp, answer: &Reserved) {
        let wrong = self.records.reserved(key, ask, now, answer);
        self.record_is_right(key, wrong);
    }

    /// A change by an owner, or by an execution that takes itself for one, took effect.
    pub fn record_changed(&mut self, key: &RecordKey, owner: Owner, change: &Change, now: Timestamp, answer: &Changed) {
        let wrong = self.records.changed(key, owner, change, now, answer);
        self.record_is_right(key, wrong);
    }

    /// A record was read.
    pub fn record_shown(&mut self, key: &RecordKey, now: Timestamp, shown: Option<&Record>) {
        let wrong = self.records.shown(key, now, shown);
        self.record_is_right(key, wrong);
    }

    /// A record was shown in a list, which has no bodies.
    pub fn record_listed(&mut self, key: &RecordKey, now: Timestamp, listed: &Record) {
        let stored = self.records.rows.get(key).map(|row| row.completion.clone());
        let whole = stored.map(|completion| Record { completion, ..listed.clone() });
        let is_same = |whole: &Record| whole.clone().without_body() == *listed;
        let shown = whole.filter(is_same).unwrap_or_else(|| listed.clone());
        self.record_shown(key, now, Some(&shown));
    }

    /// An operator deleted a record, or tried to.
    pub fn record_deleted(
        &mut self,
        key: &RecordKey,
        seen: Option<SeenRecord>,
        now: Timestamp,
        answer: &DeletedRecord,
    ) {
        let wrong = self.records.deleted(key, seen, now, answer);
        self.record_is_right(key, wrong);
    }

    /// Records that had expired were removed.
    pub fn records_cleaned(&mut self, now: Timestamp, limit: usize, removed: usize) {
        let expired = self.records.clean(now, removed);
        self.must(removed == expired.min(limit), 14, None, || {
            format!("{removed} records were cleaned away; {expired} had expired, and at most {limit} were asked for")
        });
    }

    fn record_is_right(&mut self, key: &RecordKey, wrong: Option<Wrong>) {
        if let Some((invariant, what)) = wrong.filter(|_| !self.records.unknown.contains(key)) {
            self.broken(invariant, None, format!("record {key}: {what}"));
        }
    }
}

impl Records {
    fn reserved(&mut self, key: &RecordKey, ask: &Reserve, now: Timestamp, answer: &Reserved) -> Option<Wrong> {
        let row = self.rows.get(key);
        let present = row.filter(|row| row.is_present(now));
        let same = present.filter(|row| row.hash == ask.request_hash);
        let wrong = match answer {
            Reserved::OtherRequest => {
                let is_other = present.is_some() && same.is_none();
                (!is_other).then(|| (10, "a request was taken for another one".to_owned()))
            }
            Reserved::Ended(record) => match same.filter(|row| row.state.is_final()) {
                None => Some((10, format!("a caller got a result that is not its own: {:?}", record.state))),
                Some(row) => row.differs(record).map(|what| (10, format!("the result was not replayed: {what}"))),
            },
            Reserved::InProgress { lease_until, .. } => {
                let is_leased = |row: &&Row| {
                    row.is_leased(now) && row.owner.execution != ask.execution && row.lease_until == *lease_until
                };
                let is_held = same.is_some_and(|row| is_leased(&row));
                (!is_held).then(|| (10, "a caller was held back, and no other execution has a lease".to_owned()))
            }
            Reserved::Granted { epoch, lease_until, previous } => {
                let granted = Granted { epoch: *epoch, lease_until: *lease_until, previous: *previous };
                granted.is_wrong(row, ask, now)
            }
        };
        let is_repeated = same.is_some_and(|row| row.was_completed_by(ask));
        if let Reserved::Granted { epoch, lease_until, .. } = answer
            && !is_repeated
        {
            self.unknown.remove(key);
            self.rows.insert(key.clone(), Row::granted(ask, *epoch, *lease_until, now));
        }
        wrong
    }

    fn changed(
        &mut self,
        key: &RecordKey,
        owner: Owner,
        change: &Change,
        now: Timestamp,
        answer: &Changed,
    ) -> Option<Wrong> {
        let wrong = |what: &str| Some((14, what.to_owned()));
        let row = self.rows.get_mut(key).filter(|row| now < row.expires_at);
        match (answer, row) {
            (Changed::Absent, None) => None,
            (Changed::Absent, Some(row)) if row.state == State::Released && row.owner.epoch <= owner.epoch => None,
            (Changed::Absent, Some(_)) => wrong("an owner was told that there is no such record"),
            (Changed::Fenced, Some(row)) if row.owner != owner => None,
            (Changed::Fenced, _) => wrong("its owner was fenced, and no other execution has taken over"),
            (Changed::AlreadyEnded(state), Some(row)) if row.owner == owner && row.state == *state => {
                let is_wrong = *state == State::InProgress || row.is_ended_by(change);
                is_wrong.then(|| (14, "a change that was made before was not answered like the first time".to_owned()))
            }
            (Changed::AlreadyEnded(_), _) => wrong("an owner was told of an end that is not its own"),
            (Changed::Done(_), None) => wrong("a record that does not exist was changed"),
            (Changed::Done(_), Some(row)) if row.owner != owner => {
                wrong("a change by an owner that was replaced was made")
            }
            (Changed::Done(record), Some(row)) => {
                let is_ended = row.state != State::InProgress;
                if is_ended && !row.is_ended_by(change) {
                    return Some((14, format!("it had ended {}, and was changed", row.state.name())));
                }
                if !is_ended {
                    row.apply(change, now);
                }
                row.differs(record).map(|what| (14, format!("a change was not made as it was asked for: {what}")))
            }
        }
    }

    fn shown(&self, key: &RecordKey, now: Timestamp, shown: Option<&Record>) -> Option<Wrong> {
        let present = self.rows.get(key).filter(|row| row.is_present(now));
        match (present, shown) {
            (None, None) => None,
            (Some(_), None) => Some((10, "it is gone before it has expired".to_owned())),
            (None, Some(_)) => Some((10, "it is shown, and has expired or was given up".to_owned())),
            (Some(row), Some(record)) => row.differs(record).map(|what| (14, format!("it has changed: {what}"))),
        }
    }

    fn deleted(
        &mut self,
        key: &RecordKey,
        seen: Option<SeenRecord>,
        now: Timestamp,
        answer: &DeletedRecord,
    ) -> Option<Wrong> {
        let shown = match answer {
            DeletedRecord::Done(record) | DeletedRecord::Changed(record) => Some(&**record),
            DeletedRecord::Absent => None,
        };
        let wrong = self.shown(key, now, shown);
        let row = self.rows.get_mut(key).filter(|_| shown.is_some())?;
        let is_as_seen = seen.is_none_or(|seen| seen == row.version());
        let is_deleted = matches!(answer, DeletedRecord::Done(_));
        if is_deleted {
            (row.state, row.completion, row.updated_at) = (State::Released, Completion::default(), now);
        }
        let mistaken = || (14, "it was deleted although it had changed, or kept although it had not".to_owned());
        wrong.or_else(|| (is_deleted != is_as_seen).then(mistaken))
    }

    /// Removes as many of the expired records as the store did. Returns how many had expired.
    fn clean(&mut self, now: Timestamp, removed: usize) -> usize {
        let expired = self.rows.iter().filter(|(_, row)| row.expires_at <= now);
        let mut expired: Vec<_> = expired.map(|(key, row)| (row.expires_at, key.clone())).collect();
        expired.sort();
        let last = removed.checked_sub(1).and_then(|last| expired.get(last)).map(|(at, _)| *at);
        let next = expired.get(removed).map(|(at, _)| *at);
        for (at, key) in expired.iter().take(removed) {
            if last == next && Some(*at) == last {
                continue;
            }
            self.rows.remove(key);
        }
        if last.is_some() && last == next {
            let tied = expired.iter().filter(|(at, _)| Some(*at) == last);
            self.unknown.extend(tied.map(|(_, key)| key.clone()));
        }
        expired.len()
    }
}

/// An execution became the owner of a record.
#[derive(Debug, PartialEq)]
struct Granted {
    epoch: Epoch,
    lease_until: Timestamp,
    previous: Option<Previous>,
}

impl Granted {
    fn is_wrong(&self, row: Option<&Row>, ask: &Reserve, now: Timestamp) -> Option<Wrong> {
        let present = row.filter(|row| row.is_present(now));
        let is_again =
            present.is_some_and(|row| row.state == State::InProgress && row.owner.execution == ask.execution);
        if let Some(row) = present.filter(|row| row.hash == ask.request_hash && row.was_completed_by(ask)) {
            let expected = Granted { epoch: row.owner.epoch, lease_until: row.lease_until, previous: None };
            return (*self != expected).then(|| (10, format!("a repeat was granted {self:?}, not {expected:?}")));
        }
        if let Some(row) = present {
            if row.hash != ask.request_hash {
                return Some((10, "another request with its key was granted".to_owned()));
            }
            if row.state.is_final() {
                return Some((10, format!("it has ended {}, and another execution was granted", row.state.name())));
            }
            if !is_again && row.is_leased(now) {
                return Some((
                    10,
                    format!("two executions own it: the lease of one lasts until {}", Moment::of_wall(row.lease_until)),
                ));
            }
        }
        let lease = if ask.is_complete { Duration::ZERO } else { ask.lease };
        if self.lease_until != now.after(lease) {
            return Some((10, format!("a lease of {lease:?} lasts until {}", Moment::of_wall(self.lease_until))));
        }
        let grows = row.is_none_or(|row| match is_again {
            true => self.epoch == row.owner.epoch,
            false => self.epoch > row.owner.epoch,
        });
        if !grows || self.epoch < Epoch::FIRST {
            let before = row.map(|row| row.owner.epoch.0);
            return Some((14, format!("epoch {} was given after {before:?}", self.epoch)));
        }
        let unknown = present.filter(|_| !is_again);
        let expected = unknown.map(|row| Previous { owner: row.owner, state: row.state });
        let what = || format!("the execution before was said to be {:?}, and was {expected:?}", self.previous);
        (self.previous != expected).then(|| (14, what()))
    }
}

impl Row {
    fn granted(ask: &Reserve, epoch: Epoch, lease_until: Timestamp, now: Timestamp) -> Self {
        Row {
            hash: ask.request_hash,
            owner: Owner { execution: ask.execution, epoch },
            state: if ask.is_complete { State::Succeeded } else { State::InProgress },
            lease_until,
            retention: ask.retention,
            updated_at: now,
            expires_at: lease_until.after(ask.retention),
            completion: Completion::default(),
            is_complete: ask.is_complete,
        }
    }

    /// Whether this execution has reserved the record before, and complete at once.
    fn was_completed_by(&self, ask: &Reserve) -> bool {
        self.is_complete && ask.is_complete && self.state == State::Succeeded && self.owner.execution == ask.execution
    }

    fn is_present(&self, now: Timestamp) -> bool {
        self.state != State::Released && now < self.expires_at
    }

    fn is_leased(&self, now: Timestamp) -> bool {
        self.state == State::InProgress && now < self.lease_until
    }

    fn version(&self) -> SeenRecord {
        let Row { owner, state, updated_at, lease_until, .. } = *self;
        SeenRecord { epoch: owner.epoch, state, updated_at, lease_until }
    }

    /// Whether it has ended by this change.
    fn is_ended_by(&self, change: &Change) -> bool {
        self.state != State::InProgress && self.state == change.state() && self.completion == result_of(change)
    }

    fn apply(&mut self, change: &Change, now: Timestamp) {
        self.state = change.state();
        self.completion = result_of(change);
        self.lease_until = if let Change::Renew(lease) = change { now.after(*lease) } else { now };
        self.updated_at = now;
        self.expires_at = self.lease_until.after(self.retention);
    }

    /// What is different in a record that was shown.
    fn differs(&self, record: &Record) -> Option<String> {
        let is_same = record.request_hash == self.hash
            && record.owner == self.owner
            && record.state == self.state
            && record.completion == self.completion
            && (record.lease_until, record.expires_at) == (self.lease_until, self.expires_at)
            && record.updated_at == self.updated_at;
        (!is_same).then(|| format!("it must be {self:?}, and is {record:?}"))
    }
}

fn result_of(change: &Change) -> Completion {
    match change {
        Change::Complete(result) | Change::FailFinal(result) => result.clone(),
        Change::FailRetryable | Change::Renew(_) | Change::Release => Completion::default(),
    }
}
