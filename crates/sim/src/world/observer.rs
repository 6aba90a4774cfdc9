//! Who is told what happens: the model judges it, the trace hashes it, the tally counts it.

use std::fmt::Write as _;
use std::hash::Hash;

use redrive_core::{Outcome, TaskId};
use redrive_engine::transport::Outbound;
use redrive_store::{Claimed, NewTask, Settled, Settlement};

use crate::model::{Model, Said, Whose};
use crate::moment::Moment;
use crate::tally::Tally;
use crate::trace::Trace;

/// Who is told what happens.
pub struct Observer {
    /// Judges.
    pub model: Model,
    /// Hashes.
    pub trace: Trace,
    /// Counts.
    pub tally: Tally,
}

impl Observer {
    /// Something happened that is only to be traced.
    pub fn note(&mut self, at: Moment, facts: impl Hash, item: Option<&str>, text: impl FnOnce() -> String) {
        self.trace.note(at, facts, item, |line| *line = text());
    }

    pub(super) fn departed(&mut self, at: Moment, whose: Whose, outbound: &Outbound) {
        self.tally.sends += 1;
        let (task, attempt) = (outbound.task, outbound.attempt);
        let item = item_of(outbound);
        self.trace.note(at, (1, whose, task, attempt), item.as_deref(), |line| {
            write!(line, "{} sends attempt {attempt}", Name(whose)).ok();
        });
        self.model.departed(whose, outbound);
    }

    pub(super) fn over(&mut self, at: Moment, whose: Whose, outbound: &Outbound, said: Option<Said>) {
        let (task, attempt) = (outbound.task, outbound.attempt);
        let item = item_of(outbound);
        self.trace.note(at, (2, whose, task, attempt, said), item.as_deref(), |line| {
            match said {
                Some(said) => write!(line, "{} hears of attempt {attempt}: {said:?}", Name(whose)),
                None => write!(line, "{} hears nothing of attempt {attempt}", Name(whose)),
            }
            .ok();
        });
        self.model.over(whose, &outbound.lane, task, attempt, said);
    }

    pub(super) fn created(&mut self, at: Moment, whose: Whose, new: &NewTask) {
        let (id, item) = (new.task.id, item_in(&new.request.body));
        self.trace.note(at, (6, whose, id), item.as_deref(), |line| {
            write!(line, "the store keeps a task for {}", Name(whose)).ok();
        });
    }

    pub(super) fn claimed(&mut self, at: Moment, whose: Whose, claimed: &Claimed) {
        let (task, lease) = (&claimed.task, claimed.lease);
        let item = item_in(&claimed.request.body);
        self.trace.note(at, (3, whose, task.id, lease.token.0, task.attempt_number), item.as_deref(), |line| {
            let number = task.attempt_number;
            let until = Moment::of_wall(lease.until);
            write!(line, "the store gives {} token {} for attempt {number} until {until}", Name(whose), lease.token.0)
                .ok();
        });
        self.model.leased(task.id, lease, task.attempt_timeout, lease.since);
    }

    pub(super) fn settled(&mut self, at: Moment, whose: Whose, settlement: &Settlement, settled: Settled) {
        let id = settlement.id;
        let outcome = settlement.attempt.as_ref().map(|attempt| attempt.outcome);
        match settled {
            Settled::LeaseLost => self.tally.leases_lost += 1,
            Settled::Done(_) if outcome == Some(Outcome::Unknown) => self.tally.takeovers += 1,
            Settled::Done(_) => {}
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
            write!(line, "{} settles token {token}: {what}, {next}: {settled:?}", Name(whose)).ok();
        });
        self.model.settled(settlement, settled);
    }

    pub(super) fn alert(&mut self, at: Moment, id: TaskId) {
        self.tally.alerts += 1;
        let item = self.model.item(id).map(str::to_owned);
        self.trace.note(at, (5, id), item.as_deref(), |line| line.push_str("an alert is raised"));
        self.model.alert(id);
    }

    pub(super) fn panicked(&mut self, text: String) {
        self.model.panicked(format!("a panic: {text}"));
    }

    pub(super) fn never_closed(&mut self, at: Moment) {
        if self.model.violation().is_none() {
            self.model.at(at).unreadable();
        }
    }
}

/// A process, for people.
pub(super) struct Name(pub(super) Whose);

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Whose { node, life } = self.0;
        write!(f, "node {node}")?;
        if life > 1 { write!(f, " (life {life})") } else { Ok(()) }
    }
}

fn item_of(outbound: &Outbound) -> Option<String> {
    item_in(&outbound.request.body)
}

/// The item that a body says it belongs to.
fn item_in(body: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(body).ok()?.strip_prefix("the body of ")?;
    name.split(' ').next().map(str::to_owned)
}
