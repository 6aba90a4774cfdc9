//! Observer: receives every event. The model checks it, the trace hashes it, the tally counts it.

use std::fmt::Write as _;
use std::hash::Hash;

use redrive_core::guards::Health;
use redrive_core::guards::shared::SharedBreaker;
use redrive_core::idempotency::{Changed, ExecutionId, RecordKey, Reserved};
use redrive_core::{Body, IdempotencyKey, Lane, Outcome, Status, Task, TaskId, TenantId, Timestamp};
use redrive_engine::transport::Outbound;
use redrive_store::{
    ClaimedTask, DeletedRecord, NewTask, RaisedAlert, RecordChange, Reservation, SeenRecord, Settled, Settlement,
};

use crate::model::{Model, Said, Whose};
use crate::moment::Moment;
use crate::tally::Tally;
use crate::trace::Trace;

/// Receives every event of a world.
pub struct Observer {
    /// Checks the invariants.
    pub model: Model,
    /// Hashes the events.
    pub trace: Trace,
    /// Counts the events.
    pub tally: Tally,
    /// Records outside of the world what clients were told.
    pub(super) witness: Option<Witness>,
}

/// What a client was told, recorded outside of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// A submission was acknowledged: this task exists, under this key.
    Kept(TenantId, TaskId, IdempotencyKey),
    /// A read returned that a task has ended like this.
    Ended(TenantId, TaskId, Status),
    /// A client began to request a replay: from now on the task may be running again.
    Replaying(TenantId, TaskId),
}

/// Records what clients were told, before anything else happens.
pub type Witness = Box<dyn FnMut(&Told) + Send>;

impl Observer {
    /// Records what a client was told.
    pub(super) fn told(&mut self, told: &Told) {
        if let Some(witness) = &mut self.witness {
            witness(told);
        }
    }

    /// Records an event in the trace only.
    pub fn note(&mut self, at: Moment, facts: impl Hash, item: Option<&str>, text: impl FnOnce() -> String) {
        self.trace.note(at, facts, item, |line| *line = text());
    }

    pub(super) fn connects(&mut self, at: Moment, whose: Whose, outbound: &Outbound) {
        let (task, attempt) = (outbound.task, outbound.attempt);
        let item = item_of(outbound);
        self.trace.note(at, (7, whose, task, attempt), item.as_deref(), |line| {
            let to = &outbound.lane.dependency;
            write!(line, "{} connects to {to} for attempt {attempt} of {}", Name(whose), Short(task)).ok();
        });
        self.model.connects(whose, outbound);
    }

    pub(super) fn withdrawn(&mut self, at: Moment, whose: Whose, outbound: &Outbound) {
        self.tally.withdrawn += 1;
        let (task, attempt) = (outbound.task, outbound.attempt);
        let item = item_of(outbound);
        self.trace.note(at, (8, whose, task, attempt), item.as_deref(), |line| {
            write!(line, "{} withdraws attempt {attempt} of {} before its first byte", Name(whose), Short(task)).ok();
        });
        self.model.withdrawn(whose, &outbound.lane, task, attempt);
    }

    pub(super) fn ended_overdue(&mut self, at: Moment, whose: Whose, task: &Task) {
        self.tally.overdue += 1;
        let item = self.model.item(task.id).map(str::to_owned);
        self.trace.note(at, (9, whose, task.id), item.as_deref(), |line| {
            write!(line, "{} ends {}, which waited past its deadline", Name(whose), Short(task.id)).ok();
        });
        self.model.ended_overdue(task);
    }

    pub(super) fn ended_suppressed(&mut self, at: Moment, whose: Whose, task: &Task) {
        self.tally.suppressed += 1;
        let item = self.model.item(task.id).map(str::to_owned);
        self.trace.note(at, (10, whose, task.id), item.as_deref(), |line| {
            write!(line, "{} ends {}, whose retry budget is spent", Name(whose), Short(task.id)).ok();
        });
        self.model.ended_suppressed(task);
    }

    pub(super) fn departed(&mut self, at: Moment, whose: Whose, outbound: &Outbound) {
        self.tally.sends += 1;
        let (task, attempt) = (outbound.task, outbound.attempt);
        let item = item_of(outbound);
        self.trace.note(at, (1, whose, task, attempt), item.as_deref(), |line| {
            write!(line, "{} sends attempt {attempt} of {}", Name(whose), Short(task)).ok();
        });
        self.model.departed(whose, outbound);
    }

    pub(super) fn over(
        &mut self,
        at: Moment,
        whose: Whose,
        outbound: &Outbound,
        said: Option<Said>,
        health: Option<Health>,
    ) {
        let (task, attempt) = (outbound.task, outbound.attempt);
        let item = item_of(outbound);
        self.trace.note(at, (2, whose, task, attempt, said), item.as_deref(), |line| {
            match said {
                Some(said) => write!(line, "{} hears of attempt {attempt} of {}: {said:?}", Name(whose), Short(task)),
                None => write!(line, "{} hears nothing of attempt {attempt} of {}", Name(whose), Short(task)),
            }
            .ok();
        });
        self.model.over(whose, &outbound.lane, task, attempt, said, health);
    }

    pub(super) fn created(&mut self, at: Moment, whose: Whose, new: &NewTask) {
        let (id, item) = (new.task.id, item_in(&new.request.body));
        self.trace.note(at, (6, whose, id), item.as_deref(), |line| {
            write!(line, "the store keeps {} for {}", Short(id), Name(whose)).ok();
        });
        self.model.stored(new);
    }

    pub(super) fn claimed(&mut self, at: Moment, whose: Whose, claimed: &ClaimedTask) {
        let (task, lease) = (&claimed.task, claimed.lease);
        let item = item_in(&claimed.request.body);
        self.trace.note(at, (3, whose, task.id, lease.token.0, task.attempt_number), item.as_deref(), |line| {
            let number = task.attempt_number;
            let until = Moment::of_wall(lease.until);
            write!(
                line,
                "the store gives {} token {} of {} for attempt {number} until {until}",
                Name(whose),
                lease.token.0,
                Short(task.id)
            )
            .ok();
        });
        self.model.leased(claimed);
        self.model.claimed(whose, claimed);
    }

    pub(super) fn settled(&mut self, at: Moment, whose: Whose, settlement: &Settlement, settled: Settled) {
        let id = settlement.id;
        let outcome = settlement.attempt.as_ref().map(|attempt| attempt.outcome);
        match settled {
            Settled::LeaseLost => self.tally.leases_lost += 1,
            Settled::Done(_) if outcome == Some(Outcome::Unknown) => self.tally.takeovers += 1,
            Settled::Done(_) => self.tally.given_back += u64::from(settlement.attempt.is_none()),
        }
        let item = self.model.item(id).map(str::to_owned);
        let facts = (4, whose, id, settlement.token.0, format!("{settled:?}"));
        self.trace.note(at, facts, item.as_deref(), |line| {
            let (token, next) = (settlement.token.0, &settlement.next);
            let what = outcome.map_or("nothing sent", Outcome::as_str);
            let next = match next {
                redrive_store::Next::RetryAt { at, .. } => format!("retry at {}", Moment::of_wall(*at)),
                redrive_store::Next::End { status, reason, .. } => {
                    format!("{} {}", status.as_str(), reason.map_or("", |reason| reason.as_str()))
                }
            };
            write!(line, "{} settles token {token} of {}: {what}, {next}: {settled:?}", Name(whose), Short(id)).ok();
        });
        self.model.settled(settlement, settled);
    }

    /// A process replaced the stored breaker of a lane; `is_news` unless it only renewed its right to probe.
    pub(super) fn breaker_stored(&mut self, at: Moment, whose: Whose, lane: &Lane, new: &SharedBreaker, is_news: bool) {
        if is_news {
            self.trace.note(at, (11, whose, lane, new.epoch), None, |line| {
                write!(line, "{} stores the breaker of {lane}: {:?}", Name(whose), new.state).ok();
            });
        }
        self.model.breaker_stored(whose, lane, new);
    }

    pub(super) fn record_reserved(
        &mut self,
        at: Moment,
        whose: Whose,
        Reservation { key, ask }: &Reservation,
        now: Timestamp,
        answer: &Reserved,
    ) {
        self.tally.reservations += 1;
        self.trace.note(at, (12, whose, key, ask.execution, format!("{answer:?}")), None, |line| {
            let by = ShortExecution(ask.execution);
            write!(line, "{} reserves {key} for {by}, by its clock at {}: ", Name(whose), Moment::of_wall(now)).ok();
            match answer {
                Reserved::Granted { epoch, lease_until, .. } => {
                    write!(line, "granted with epoch {epoch} until {}", Moment::of_wall(*lease_until)).ok();
                }
                Reserved::InProgress { lease_until, .. } => {
                    write!(line, "in progress until {}", Moment::of_wall(*lease_until)).ok();
                }
                Reserved::Ended(record) => {
                    write!(line, "ended {} by {}", record.state.name(), ShortExecution(record.owner.execution)).ok();
                }
                Reserved::OtherRequest => line.push_str("another request"),
            }
        });
        self.model.record_reserved(key, ask, now, answer);
    }

    pub(super) fn record_changed(
        &mut self,
        at: Moment,
        whose: Whose,
        RecordChange { key, owner, change }: &RecordChange,
        now: Timestamp,
        answer: &Changed,
    ) {
        self.tally.fenced += u64::from(*answer == Changed::Fenced);
        self.trace.note(at, (13, whose, key, owner.execution, owner.epoch, format!("{answer:?}")), None, |line| {
            let by = ShortExecution(owner.execution);
            let (epoch, state, now) = (owner.epoch, change.state().name(), Moment::of_wall(now));
            write!(line, "{} has {by} with epoch {epoch} make {key} {state}, by its clock at {now}: ", Name(whose))
                .ok();
            match answer {
                Changed::Done(_) => line.push_str("done"),
                other => write!(line, "{other:?}").unwrap_or_default(),
            }
        });
        self.model.record_changed(key, *owner, change, now, answer);
    }

    pub(super) fn record_deleted(
        &mut self,
        at: Moment,
        whose: Whose,
        (key, seen): (&RecordKey, Option<SeenRecord>),
        now: Timestamp,
        answer: &DeletedRecord,
    ) {
        self.trace.note(at, (14, whose, key, format!("{answer:?}")), None, |line| {
            let result = match answer {
                DeletedRecord::Done(_) => "done",
                DeletedRecord::Changed(_) => "it has changed",
                DeletedRecord::Absent => "there is none",
            };
            write!(line, "{} deletes {key}: {result}", Name(whose)).ok();
        });
        self.model.record_deleted(key, seen, now, answer);
    }

    pub(super) fn records_cleaned(&mut self, at: Moment, whose: Whose, now: Timestamp, limit: usize, removed: usize) {
        self.trace.note(at, (15, whose, removed), None, |line| {
            write!(line, "{} cleans {removed} records away", Name(whose)).ok();
        });
        self.model.records_cleaned(now, limit, removed);
    }

    pub(super) fn alert(&mut self, at: Moment, id: TaskId, run: u32) {
        self.tally.alerts += 1;
        let item = self.model.item(id).map(str::to_owned);
        self.trace.note(at, (5, id, run), item.as_deref(), |line| {
            write!(line, "an alert is raised for {}", Short(id)).ok();
        });
        self.model.alert(id, run);
    }

    /// A notification has arrived at its sink.
    pub(super) fn sink_hears(&mut self, at: Moment, outbound: &Outbound) {
        self.tally.notifications += 1;
        self.trace.note(at, (16, outbound.task, &outbound.lane), None, |line| {
            let document = String::from_utf8_lossy(outbound.request.body.inline().map_or(&[], |bytes| bytes));
            write!(line, "{} hears by {}: {document}", outbound.lane.dependency, Short(outbound.task)).ok();
        });
        self.model.sink_hears(outbound);
    }

    /// The notes of these dead letters were removed: their alerts will not be raised again.
    pub(super) fn alerts_confirmed(&mut self, at: Moment, whose: Whose, alerts: &[RaisedAlert]) {
        for alert in alerts {
            let item = self.model.item(alert.id).map(str::to_owned);
            self.trace.note(at, (17, whose, alert.id, alert.run), item.as_deref(), |line| {
                write!(line, "{} confirms the alert of {}", Name(whose), Short(alert.id)).ok();
            });
            self.model.alert_confirmed(alert);
        }
    }

    pub(super) fn panicked(&mut self, text: String) {
        self.model.panicked(format!("a panic: {text}"));
    }

    pub(super) fn stood_still(&mut self, at: Moment) {
        self.model.at(at).stood_still();
    }

    pub(super) fn never_closed(&mut self, at: Moment) {
        if self.model.violation().is_none() {
            self.model.at(at).unreadable();
        }
    }
}

/// Formats a process for people.
pub(super) struct Name(pub(super) Whose);

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Whose { node, life } = self.0;
        write!(f, "node {node}")?;
        if life > 1 { write!(f, " (life {life})") } else { Ok(()) }
    }
}

/// Formats the end of a task's id, which identifies the tasks of one item.
struct Short(TaskId);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.0.to_string();
        write!(f, "task …{}", &id[id.len() - 4..])
    }
}

/// Formats the beginning of an execution's id.
struct ShortExecution(ExecutionId);

impl std::fmt::Display for ShortExecution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "execution {}…", &self.0.to_string()[..4])
    }
}

fn item_of(outbound: &Outbound) -> Option<String> {
    item_in(&outbound.request.body)
}

/// The item whose name is in a body.
fn item_in(body: &Body) -> Option<String> {
    let name = std::str::from_utf8(body.inline()?).ok()?.strip_prefix("the body of ")?;
    name.split(' ').next().map(str::to_owned)
}
