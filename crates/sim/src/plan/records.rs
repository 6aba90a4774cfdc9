//! Records: a world of clients that use idempotency records. Owners work, stall past their leases, crash, and come back
//! with their old epoch, beside duplicates, other requests with the same key, operators that delete, and cleaners.
//!
//! Leases and retentions are short and keys are few, so that a world of some minutes has many owners for each record.

use std::time::Duration;

use redrive_core::RecordName;
use redrive_core::guards;
use redrive_core::idempotency::{Operation, RecordKey};

use super::draw::tenant;
use super::family::{Families, Family};
use super::shape::{Ask, Shape};
use crate::moment::Moment;
use crate::random::Random;

const SECOND: Duration = Duration::from_secs(1);
/// The share of worlds whose clients use records.
const RECORDED: f64 = 0.08;
/// The operations: the second one is a consumer's inbox.
const OPERATIONS: [&str; 2] = ["create-payment", "inbox/billing"];

/// What one client does with a record.
#[derive(Debug, Clone)]
pub struct RecordErrand {
    /// Its number; what it draws while it runs depends on this and on the plan's seed.
    pub number: usize,
    /// When it begins.
    pub at: Moment,
    /// How long the client waits for an answer.
    pub patience: Duration,
    /// What it does.
    pub work: RecordWork,
}

/// What a client does with a record.
#[derive(Debug, Clone)]
pub enum RecordWork {
    /// Execute the operation, if it may.
    Execute(Execution),
    /// Read it, and list the records of its operation.
    Read(RecordKey),
    /// Delete it.
    Delete {
        /// Which record.
        key: RecordKey,
        /// Whether only the version that was read before is deleted.
        is_conditional: bool,
    },
    /// Remove records that have expired.
    Clean {
        /// At most this many.
        limit: usize,
    },
}

/// One execution of an operation.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The record.
    pub key: RecordKey,
    /// The request: 0, or another number for another request with the same key.
    pub request: u8,
    /// The lease that it asks for.
    pub lease: Duration,
    /// The retention that it asks for.
    pub retention: Duration,
    /// Whether the record ends with the reservation.
    pub is_complete: bool,
    /// Whether it waits for the end of another execution's lease.
    pub is_patient: bool,
    /// Whether it sends a duplicate with an execution of its own in the same call.
    pub has_twin: bool,
    /// What it does as the owner. An execution that has crashed does nothing more.
    pub steps: Vec<RecordStep>,
}

/// A step of an execution that owns a record, or did.
#[derive(Debug, Clone)]
pub struct RecordStep {
    /// How long after the step before.
    pub after: Duration,
    /// What it does.
    pub act: RecordAct,
    /// Whether it acts with the first epoch that it got, not with the latest.
    pub is_stale: bool,
}

/// What an owner does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordAct {
    /// Complete it, with one of two results.
    Complete(u8),
    /// Fail it for good, with one of two results.
    FailFinal(u8),
    /// Fail it; the next caller may try again.
    FailRetryable,
    /// Extend the lease.
    Renew,
    /// Give it up.
    Release,
    /// Reserve it again with the same execution.
    Again,
    /// Reserve it with another execution.
    Duplicate,
}

impl Families {
    /// Draws the families of a world whose clients use records; `None` for any other world.
    pub(super) fn draw_recorded(random: &mut Random) -> Option<Families> {
        let is_recorded = random.chance(RECORDED);
        let unsettling = [Family::Crash, Family::Stop, Family::Pause, Family::Clock, Family::Store];
        let families = Families::of(unsettling.into_iter().filter(|_| random.chance(0.4)));
        is_recorded.then(|| families.and(Family::Records))
    }
}

impl Shape {
    /// The same nodes with few tasks, for some minutes.
    pub(super) fn with_records(mut self, random: &mut Random, ask: &Ask) -> Self {
        if ask.hours.is_none() {
            self.trouble = random.duration(60 * SECOND, 900 * SECOND);
        }
        self.errands = self.errands.min(3);
        self.engine.guards = guards::Settings::off();
        self
    }
}

/// What the clients do with records.
pub(super) fn errands(random: &mut Random, shape: &Shape) -> Vec<RecordErrand> {
    let end = shape.trouble.as_micros() as u64 * 9 / 10;
    let lease = random.duration(SECOND / 2, 40 * SECOND);
    // Shorter than a lease in some worlds: an owner that stalls comes back when its record has expired.
    let retention = lease.mul_f64(*random.pick(&[0.3, 1.0, 4.0, 30.0]));
    let keys: Vec<RecordKey> = (0..random.within(1..=4)).filter_map(|name| key(random, name)).collect();
    let mut at = Moment::default();
    (0..random.within(15..=90) as usize)
        .map(|number| {
            // Bursts: some begin close to one another, or about a lease later.
            at = match random.below(10) {
                0..=3 if number > 0 => at.after(random.duration(Duration::from_micros(10), SECOND)),
                4..=6 if number > 0 => at.after(lease.mul_f64(0.8 + 0.4 * random.unit())),
                _ => Moment(random.within(0..=end)),
            }
            .min(Moment(end));
            let key = random.pick(&keys).clone();
            let work = match random.below(20) {
                0 => RecordWork::Delete { key, is_conditional: random.chance(0.5) },
                1 | 2 => RecordWork::Clean { limit: *random.pick(&[1, 2, 100]) },
                3..=5 => RecordWork::Read(key),
                _ => RecordWork::Execute(execution(random, key, lease, retention)),
            };
            let patience = random.duration(SECOND / 5, 20 * SECOND);
            RecordErrand { number, at, patience, work }
        })
        .collect()
}

/// Tenants and operations have the same names of keys: these are different records.
fn key(random: &mut Random, name: u64) -> Option<RecordKey> {
    let operation: Operation = random.pick(&OPERATIONS).parse().ok()?;
    let name = RecordName::try_new(format!("key-{}", name / 2)).ok()?;
    Some(RecordKey { tenant: tenant(random.below(2)), operation, name })
}

fn execution(random: &mut Random, key: RecordKey, lease: Duration, retention: Duration) -> Execution {
    let is_hasty = random.chance(0.3);
    let count = random.below(5);
    let steps = (0..count).map(|_| {
        let after = match random.below(10) {
            0..=4 => lease.mul_f64(random.unit()),
            5..=7 => lease.mul_f64(0.8 + 2.0 * random.unit()),
            8 => (lease + retention).mul_f64(0.9 + random.unit()),
            _ => Duration::from_micros(random.within(1..=5_000)),
        };
        let after = if is_hasty { after / 10 } else { after };
        RecordStep { after, act: act(random), is_stale: random.chance(0.25) }
    });
    Execution {
        steps: steps.collect(),
        key,
        request: u8::from(random.chance(0.2)),
        lease: lease.mul_f64(0.5 + random.unit()),
        retention: retention.mul_f64(0.5 + random.unit()),
        is_complete: random.chance(0.08),
        is_patient: random.chance(0.5),
        has_twin: random.chance(0.1),
    }
}

fn act(random: &mut Random) -> RecordAct {
    let result = u8::from(random.chance(0.3));
    match random.below(14) {
        0..=4 => RecordAct::Complete(result),
        5 => RecordAct::FailFinal(result),
        6 | 7 => RecordAct::FailRetryable,
        8 | 9 => RecordAct::Renew,
        10 => RecordAct::Release,
        11 | 12 => RecordAct::Again,
        _ => RecordAct::Duplicate,
    }
}
