//! The model: what must be true of Redrive, written to be obviously right.
//!
//! Its input is only what is visible from outside: the requests of clients and their answers, what arrived at the
//! dependencies and what they answered, reads through the API, the alerts in the log, and the writes to the store. It
//! does not depend on how Redrive works. After every such fact it checks the invariants of ARCHITECTURE.md, by number.
//! The first one that is broken is the run's [`Violation`].
//!
//! | file | what it checks |
//! | --- | --- |
//! | `submits` | answers to submissions: one task per key (10), nothing acknowledged is lost (1) |
//! | `sends` | what goes on the wire: how often (2), what (3), when (4, 6), how much at once (7, 8) |
//! | `guards` | what the retry budget and the breaker of one node let through (8) |
//! | `shared_breaker` | what the breaker of several nodes lets through (8) |
//! | `records` | calls for idempotency records: one result (10), owners and epochs (14) |
//! | `views` | what reads return: ends are final (1), tenants are isolated (12) |
//! | `leases` | calls to the store: fencing (5), the length of leases (7) |
//! | `waits` | tasks that wait to be sent: fairness and last attempts (8), deadlines (13) |
//! | `alerts` | what sinks are told of dead letters, and when their notes are removed (9) |
//! | `finish` | the state after all faults are over (1, 9, 11, 13) |
//!
//! Not here: what is done to Redrive (`plan`, `world`).

mod alerts;
mod facts;
mod finish;
mod guards;
mod leases;
mod records;
mod rules;
mod sends;
mod shared_breaker;
mod submits;
mod views;
mod waits;

pub use alerts::AlertRules;
pub use facts::{Asker, Departure, Said, Whose};
pub use rules::{Fairness, Rules};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use redrive_core::{Lane, TaskId, TenantId, Timestamp};
use redrive_store::Token;

use crate::moment::Moment;
use crate::plan::Item;
use alerts::Alerts;
use facts::{Facts, Wanted};
use guards::GuardedLane;
use records::Records;
use shared_breaker::LaneBreaker;
use waits::{PendingTask, Queue};

/// An invariant that was broken.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Its number; zero for a failure that is no single invariant, such as a panic.
    pub invariant: u8,
    /// When it was noticed.
    pub at: Moment,
    /// The task that it is about, if it is about one.
    pub task: Option<TaskId>,
    /// The item for which the task was submitted.
    pub item: Option<String>,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {} at {}: {}", self.invariant, self.at, self.what)?;
        if let Some(item) = &self.item {
            write!(f, " (item {item}")?;
            if let Some(task) = &self.task {
                write!(f, ", task {task}")?;
            }
            write!(f, ")")?;
        }
        Ok(())
    }
}

/// All facts so far.
#[derive(Debug)]
pub struct Model {
    rules: Rules,
    now: Moment,
    wanted: BTreeMap<String, Wanted>,
    tasks: BTreeMap<TaskId, Facts>,
    /// The task runs that raised an alert.
    alerts: BTreeSet<(TaskId, u32)>,
    /// What sinks were told.
    alerts_told: Alerts,
    /// The number of attempts on the wire, by process and lane.
    on_wire: BTreeMap<(Whose, Lane), usize>,
    on_wire_in_all: BTreeMap<Whose, usize>,
    /// The newest token of each task, and whether it has been settled.
    tokens: BTreeMap<TaskId, (Token, bool)>,
    /// The tasks that have not ended, and those of them that wait, by deadline and by lane.
    waiting: BTreeMap<TaskId, PendingTask>,
    deadlines: BTreeSet<(Moment, TaskId)>,
    queues: BTreeMap<Lane, Queue>,
    /// What the guards of each lane have let through.
    guarded: BTreeMap<Lane, GuardedLane>,
    /// The breakers that several nodes share.
    shared_breakers: BTreeMap<Lane, LaneBreaker>,
    /// Until when the latest call of a node to the store that failed or was late lasts.
    store_troubles: BTreeMap<usize, Moment>,
    /// The idempotency records.
    records: Records,
    /// How many lanes each tenant has.
    lanes_of: BTreeMap<TenantId, usize>,
    /// How many lanes are quick.
    quick_lanes: usize,
    /// Last attempts that are claimed and not started yet.
    last_claims: BTreeMap<(Whose, Lane), BTreeSet<TaskId>>,
    /// When all waits were last checked.
    looked: Moment,
    /// The tasks of each item.
    by_name: BTreeMap<String, Vec<TaskId>>,
    /// The newest lease of each task: for which attempt, and until when; `None` once it is settled.
    leases: BTreeMap<TaskId, Option<(u32, Timestamp)>>,
    /// When a process was last suspended, or died.
    disturbed: BTreeMap<Whose, Moment>,
    violation: Option<Violation>,
}

impl Model {
    /// A model of a world in which these items will be submitted.
    pub fn new(rules: Rules, items: impl Iterator<Item = Item>) -> Self {
        let wanted: BTreeMap<String, Wanted> = items.map(|item| (item.name.clone(), Wanted::new(item))).collect();
        Model {
            rules,
            now: Moment::default(),
            wanted,
            tasks: BTreeMap::new(),
            alerts: BTreeSet::new(),
            alerts_told: Alerts::default(),
            on_wire: BTreeMap::new(),
            on_wire_in_all: BTreeMap::new(),
            tokens: BTreeMap::new(),
            waiting: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            queues: BTreeMap::new(),
            guarded: BTreeMap::new(),
            shared_breakers: BTreeMap::new(),
            store_troubles: BTreeMap::new(),
            records: Records::default(),
            lanes_of: BTreeMap::new(),
            quick_lanes: 0,
            last_claims: BTreeMap::new(),
            looked: Moment::default(),
            by_name: BTreeMap::new(),
            leases: BTreeMap::new(),
            disturbed: BTreeMap::new(),
            violation: None,
        }
    }

    /// The first invariant that was broken, if one was.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Sets the current time: called before every fact.
    pub fn at(&mut self, now: Moment) -> &mut Self {
        self.now = now;
        self.look_at_waits();
        self
    }

    /// A process was suspended or died: its attempts may have been taken over.
    pub fn disturbed(&mut self, whose: Whose) {
        self.disturbed.insert(whose, self.now);
        self.guards_restart();
        self.shared_breakers_forget(whose);
    }

    /// A process panicked.
    pub fn panicked(&mut self, what: String) {
        self.broken(0, None, what);
    }

    /// The item for which a task was submitted, if it is known.
    pub fn item(&self, id: TaskId) -> Option<&str> {
        self.tasks.get(&id).map(|facts| facts.name.as_str())
    }

    /// The service reported that its store is corrupt.
    pub fn corrupt(&mut self, what: &str) {
        self.broken(1, None, format!("the store is said to be corrupt: {what}"));
    }

    /// The API could not be read to the end although all faults were over.
    pub fn unreadable(&mut self) {
        self.broken(13, None, "everything is well, and the API cannot be read to the end".to_owned());
    }

    /// A process ran without end at one moment of time.
    pub fn stood_still(&mut self) {
        self.broken(13, None, "a process goes on for ever without waiting for anything: a busy loop".to_owned());
    }

    fn broken(&mut self, invariant: u8, task: Option<TaskId>, what: String) {
        if self.violation.is_none() {
            let item = task.and_then(|task| self.tasks.get(&task)).map(|facts| facts.name.clone());
            self.violation = Some(Violation { invariant, at: self.now, task, item, what });
        }
    }

    /// Records a violation unless `holds`.
    fn must(&mut self, holds: bool, invariant: u8, task: impl Into<Option<TaskId>>, what: impl FnOnce() -> String) {
        if !holds {
            let what = what();
            self.broken(invariant, task.into(), what);
        }
    }
}
