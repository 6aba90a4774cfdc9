//! Invariant 8: the circuit breaker that several nodes share.
//!
//! Each node judges its own calls, so no node knows what all of them have heard, and an opening takes a while to reach
//! the others. But all of them read and replace one stored breaker, and the right to probe is a lease in it. So the model
//! follows what is stored, as it follows the leases of tasks, and judges the wire by it:
//!
//! | rule | reason |
//! | --- | --- |
//! | a process that has heard enough failures in a row sends nothing for the shortest pause, and so does one whose probe failed | its own breaker opens at once, whatever the others know |
//! | such an opening is stored soon | otherwise each node has a breaker of its own |
//! | while the stored breaker is not closed, only the process with the right to probe sends | an announcement may be lost, but every node looks for breakers that are not closed with each scan of the lanes |
//! | that process has no more probes than are allowed | the permits of a breaker that probes |
//! | the stored breaker probes only when its pause is over, changes hands only when the right has run out, and is closed only by the process with the right, after enough probes have succeeded | changes are numbered: a node that knows less cannot undo what others decided |
//!
//! What the model does not know makes a rule silent. Failures count only if their attempts began while the stored breaker
//! had been closed for a while: a node may otherwise be in another phase. A node whose calls to the store fail or are late
//! is excused until it has had the time to look again. A node that dies takes what it had not stored with it. Rows of
//! lanes without traffic are removed after some minutes.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::guards::Health;
use redrive_core::guards::breaker::Settings;
use redrive_core::guards::shared::{SharedBreaker, SharedBreakerState};
use redrive_core::{Lane, TaskId};

use super::Model;
use super::facts::Whose;
use crate::moment::Moment;

/// The longest time that an undisturbed process needs to store what happened to its breaker, and to read an answer.
const STORED_WITHIN: Duration = Duration::from_secs(3);
/// After this time without faults, no process still acts on an answer that it read before.
const SETTLED: Duration = Duration::from_secs(1);
/// A stored breaker may be removed this long after its pause, or its right, has ended; a little less than that.
const REMOVED_AFTER: Duration = Duration::from_secs(590);

/// What is known of the breaker of one lane.
#[derive(Debug, Default)]
pub(super) struct LaneBreaker {
    /// The stored breaker as it was last written, and what is known of it.
    written: SharedBreakerState,
    stored: Stored,
    /// Hard failures in a row that each process has certainly counted.
    streaks: BTreeMap<Whose, u32>,
    /// Processes whose own breaker has certainly opened.
    openings: BTreeMap<Whose, Opening>,
    on_wire: BTreeMap<(TaskId, u32), Begun>,
}

/// The stored breaker.
#[derive(Debug)]
enum Stored {
    Closed {
        since: Moment,
    },
    Open {
        since: Moment,
        until: Moment,
    },
    Probing(Probing),
    /// It may have been removed.
    Unknown,
}

impl Default for Stored {
    fn default() -> Self {
        Stored::Closed { since: Moment::default() }
    }
}

/// The right to probe.
#[derive(Debug)]
struct Probing {
    /// Since when the breaker has not been closed.
    since: Moment,
    /// The name of the process with the right, and which one it is.
    by: String,
    holder: Whose,
    granted: Moment,
    until: Moment,
    /// How many probes have succeeded since the breaker last opened, of all processes, and of this one since it has the right.
    succeeded: u32,
    succeeded_here: u32,
    /// Whether a probe has failed: the process has opened its own breaker.
    has_failed: bool,
    /// When the process has closed its own breaker.
    closed: Option<Moment>,
}

/// The opening of a process's own breaker.
#[derive(Debug, Clone, Copy)]
struct Opening {
    at: Moment,
    /// It is open until then at least.
    until: Moment,
    /// Whether the stored breaker has not been closed since.
    is_stored: bool,
}

/// An attempt on the wire.
#[derive(Debug, Clone, Copy)]
struct Begun {
    whose: Whose,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It began while the breaker was certainly closed, which it has been since this moment.
    Closed(Moment),
    /// It is a probe under the right that was granted at this moment.
    Probe(Moment),
    /// Its outcome may count or not.
    Uncertain,
}

/// The limits and the present.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    settings: Settings,
    now: Moment,
    slack: Duration,
    /// How soon every node knows that the stored breaker is not closed.
    known_within: Duration,
}

impl Bounds {
    fn opening(&self) -> Opening {
        let shortest = self.settings.open.mul_f64(1.0 - self.settings.spread);
        Opening { at: self.now, until: self.now.after(shortest), is_stored: false }
    }

    /// Whether this moment is certainly still to come.
    fn is_before(&self, moment: Moment) -> bool {
        self.now.after(self.slack) < moment
    }
}

impl Model {
    /// A process replaced the stored breaker of a lane.
    pub fn breaker_stored(&mut self, whose: Whose, lane: &Lane, new: &SharedBreaker) {
        let Some(bounds) = self.breaker_bounds() else { return };
        let breaker = self.shared_breakers.entry(lane.clone()).or_default();
        if let Some(what) = breaker.is_replaced(whose, &new.state, bounds) {
            self.broken(8, None, format!("lane {lane}: {what}"));
        }
    }

    /// A call of this node to the store fails, is late, or loses its answer, until then.
    pub fn store_trouble(&mut self, node: usize, until: Moment) {
        let latest = self.store_troubles.entry(node).or_default();
        *latest = until.max(*latest);
    }

    /// An attempt begins, over a store that several nodes share. Returns what is wrong.
    pub(super) fn passes_shared(&mut self, whose: Whose, lane: &Lane, attempt: (TaskId, u32)) -> Option<String> {
        let bounds = self.breaker_bounds()?;
        let troubles = &self.store_troubles;
        let is_well_for = |node: usize, time| troubles.get(&node).is_none_or(|end| end.after(time) <= bounds.now);
        self.shared_breakers.entry(lane.clone()).or_default().passes(whose, attempt, is_well_for, bounds)
    }

    /// An attempt is over.
    pub(super) fn shared_breaker_hears(&mut self, lane: &Lane, attempt: (TaskId, u32), health: Option<Health>) {
        let Some(bounds) = self.breaker_bounds() else { return };
        if let Some(breaker) = self.shared_breakers.get_mut(lane) {
            breaker.hears(attempt, health, bounds);
        }
    }

    /// A process died, or was stopped: what it had not stored is lost.
    pub(super) fn shared_breakers_forget(&mut self, whose: Whose) {
        for breaker in self.shared_breakers.values_mut() {
            breaker.streaks.remove(&whose);
            breaker.openings.remove(&whose);
        }
    }

    fn breaker_bounds(&self) -> Option<Bounds> {
        let settings = self.rules.guards?.breaker.filter(|_| self.rules.are_guards_shared)?;
        let known_within = self.rules.scan_every + STORED_WITHIN + SETTLED;
        Some(Bounds { settings, now: self.now, slack: self.rules.slack, known_within })
    }
}

impl LaneBreaker {
    /// Returns what is wrong if an attempt begins that the breaker must hold back.
    fn passes(
        &mut self,
        whose: Whose,
        attempt: (TaskId, u32),
        is_well_for: impl Fn(usize, Duration) -> bool,
        bounds: Bounds,
    ) -> Option<String> {
        self.forget_removed(bounds);
        let node = whose.node;
        let wrong = self.ignores_its_opening(whose, bounds).or_else(|| self.keeps_an_opening(&is_well_for, bounds));
        let (kind, unheld) = match &self.stored {
            Stored::Closed { since } => {
                let is_certain = since.after(SETTLED) <= bounds.now && is_well_for(node, SETTLED);
                (if is_certain { Kind::Closed(*since) } else { Kind::Uncertain }, None)
            }
            Stored::Probing(right) if right.is_held_by(whose, bounds) => (Kind::Probe(right.granted), None),
            Stored::Probing(Probing { since, .. }) | Stored::Open { since, .. } => (Kind::Uncertain, Some(*since)),
            Stored::Unknown => (Kind::Uncertain, None),
        };
        let is_closing =
            matches!(&self.stored, Stored::Probing(Probing { holder, closed: Some(_), .. }) if *holder == whose);
        let must_know = |since: &Moment| since.after(bounds.known_within) <= bounds.now;
        let must_wait = unheld.filter(must_know).filter(|_| !is_closing && is_well_for(node, bounds.known_within));
        let sent_without_right = must_wait.map(|since| {
            format!("an attempt of node {node}, which has no right to probe, while the breaker has not been closed since {since}")
        });
        self.on_wire.insert(attempt, Begun { whose, kind });
        wrong.or(sent_without_right).or_else(|| self.has_too_many_probes(kind, bounds))
    }

    /// A process that has opened its own breaker sends nothing while it is open, unless it has got the right to probe since.
    fn ignores_its_opening(&self, whose: Whose, bounds: Bounds) -> Option<String> {
        let Opening { at, until, .. } = *self.openings.get(&whose)?;
        let has_right = matches!(&self.stored, Stored::Probing(right) if right.holder == whose && right.granted > at);
        let is_open = bounds.now > at && bounds.is_before(until);
        (is_open && !has_right).then(|| format!("an attempt of node {}, whose breaker opened at {at}", whose.node))
    }

    /// An opening is stored soon, by a process that lives and whose store works.
    fn keeps_an_opening(&self, is_well_for: impl Fn(usize, Duration) -> bool, bounds: Bounds) -> Option<String> {
        let is_kept = |(whose, opening): &(&Whose, &Opening)| {
            let age = bounds.now.since(opening.at);
            !opening.is_stored && age > STORED_WITHIN && is_well_for(whose.node, age + SETTLED)
        };
        let (whose, opening) = self.openings.iter().find(is_kept)?;
        let is_closed = matches!(self.stored, Stored::Closed { .. });
        is_closed
            .then(|| format!("the breaker of node {} opened at {} and is stored as closed", whose.node, opening.at))
    }

    fn has_too_many_probes(&self, kind: Kind, bounds: Bounds) -> Option<String> {
        let (Stored::Probing(right), Kind::Probe(_)) = (&self.stored, kind) else { return None };
        let on_wire = self.on_wire.values().filter(|begun| begun.kind == kind && begun.whose == right.holder).count();
        let most = bounds.settings.probes.max(1).saturating_sub(right.succeeded_here) as usize;
        let has_closed = right.closed.is_some();
        (on_wire > most && !has_closed).then(|| format!("{on_wire} probes at once, not {most}"))
    }

    fn hears(&mut self, attempt: (TaskId, u32), health: Option<Health>, bounds: Bounds) {
        let Some(Begun { whose, kind }) = self.on_wire.remove(&attempt) else { return };
        let Some(health) = health else { return };
        if health == Health::Well {
            self.streaks.remove(&whose);
        }
        match (&mut self.stored, kind) {
            (Stored::Closed { since }, Kind::Closed(began)) if *since == began && health == Health::Failing => {
                let streak = self.streaks.entry(whose).or_default();
                *streak += 1;
                if *streak >= bounds.settings.failures_in_a_row {
                    self.openings.entry(whose).or_insert(bounds.opening());
                }
            }
            (Stored::Probing(right), Kind::Probe(granted)) if right.holder == whose && right.granted == granted => {
                if right.has_failed || right.closed.is_some() {
                    return;
                }
                if health != Health::Well {
                    right.has_failed = true;
                    self.openings.insert(whose, Opening { is_stored: true, ..bounds.opening() });
                    return;
                }
                (right.succeeded, right.succeeded_here) = (right.succeeded + 1, right.succeeded_here + 1);
                right.closed = (right.succeeded >= bounds.settings.probes).then_some(bounds.now);
            }
            _ => {}
        }
    }

    /// Follows a change of the stored breaker. Returns what is wrong with it.
    fn is_replaced(&mut self, writer: Whose, new: &SharedBreakerState, bounds: Bounds) -> Option<String> {
        self.forget_removed(bounds);
        if self.written == *new && !matches!(self.stored, Stored::Unknown) {
            // Something else of the lane has changed.
            return None;
        }
        self.written = new.clone();
        let now = bounds.now;
        let wrong = self.is_wrong_change(writer, new, bounds);
        let since = match self.stored {
            Stored::Open { since, .. } | Stored::Probing(Probing { since, .. }) => since,
            Stored::Closed { .. } | Stored::Unknown => now,
        };
        match (new, &mut self.stored) {
            (SharedBreakerState::Closed, Stored::Closed { .. }) => return wrong,
            (SharedBreakerState::Closed, stored) => {
                *stored = Stored::Closed { since: now };
                self.openings.clear();
                return wrong;
            }
            (SharedBreakerState::Open { until, .. }, stored) => {
                *stored = Stored::Open { since, until: Moment::of_wall(*until) };
            }
            (SharedBreakerState::Probing { by, until, .. }, Stored::Probing(right)) if right.by == *by => {
                right.until = Moment::of_wall(*until);
            }
            (SharedBreakerState::Probing { by, until, succeeded, .. }, stored) => {
                let succeeded = match &stored {
                    Stored::Probing(right) => right.succeeded,
                    // It was not removed: what is stored is believed.
                    Stored::Unknown => *succeeded,
                    Stored::Open { .. } | Stored::Closed { .. } => 0,
                };
                *stored = Stored::Probing(Probing {
                    since,
                    by: by.clone(),
                    holder: writer,
                    granted: now,
                    until: Moment::of_wall(*until),
                    succeeded,
                    succeeded_here: 0,
                    has_failed: false,
                    closed: None,
                });
            }
        }
        self.streaks.clear();
        self.openings.values_mut().for_each(|opening| opening.is_stored = true);
        wrong
    }

    fn is_wrong_change(&self, writer: Whose, new: &SharedBreakerState, bounds: Bounds) -> Option<String> {
        let node = writer.node;
        match (&self.stored, new) {
            (Stored::Unknown, _) | (Stored::Closed { .. }, SharedBreakerState::Closed) => None,
            (Stored::Closed { .. }, SharedBreakerState::Probing { .. }) => {
                Some(format!("node {node} has the right to probe a breaker that is closed"))
            }
            (Stored::Open { .. }, SharedBreakerState::Closed) => {
                Some(format!("node {node} closed a breaker that is open"))
            }
            (Stored::Open { until, .. }, SharedBreakerState::Probing { .. }) => bounds
                .is_before(*until)
                .then(|| format!("node {node} has the right to probe a breaker that is open until {until}")),
            (Stored::Open { until, .. }, SharedBreakerState::Open { until: new, .. }) => {
                let new = Moment::of_wall(*new);
                (new < *until).then(|| format!("a breaker that is open until {until} is open until {new} only"))
            }
            (Stored::Probing(right), SharedBreakerState::Probing { by, .. }) if *by != right.by => {
                let is_early = bounds.is_before(right.until);
                is_early.then(|| format!("node {node} took over the right to probe, which lasts until {}", right.until))
            }
            (Stored::Probing(right), _) if right.holder != writer => {
                Some(format!("node {node} ended the probes of node {}", right.holder.node))
            }
            (Stored::Probing(right), SharedBreakerState::Closed) => {
                let (succeeded, needed) = (right.succeeded, bounds.settings.probes);
                (succeeded < needed).then(|| format!("the breaker closed after {succeeded} probes, not {needed}"))
            }
            (Stored::Probing(_) | Stored::Closed { .. }, SharedBreakerState::Open { until, .. }) => {
                let (opening, until) = (self.openings.get(&writer)?, Moment::of_wall(*until).after(bounds.slack));
                (until < opening.until).then(|| format!("the breaker of node {node} is open until {until} only"))
            }
            (Stored::Probing(_), SharedBreakerState::Probing { .. }) => None,
        }
    }

    fn forget_removed(&mut self, bounds: Bounds) {
        let end = match &self.stored {
            Stored::Open { until, .. } | Stored::Probing(Probing { until, .. }) => *until,
            Stored::Closed { .. } | Stored::Unknown => return,
        };
        if end.after(REMOVED_AFTER) <= bounds.now {
            *self = LaneBreaker { stored: Stored::Unknown, ..LaneBreaker::default() };
        }
    }
}

impl Probing {
    fn is_held_by(&self, whose: Whose, bounds: Bounds) -> bool {
        let has_run_out = self.until.after(bounds.slack) < bounds.now;
        self.holder == whose && !self.has_failed && !has_run_out
    }
}
