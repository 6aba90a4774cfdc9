//! The limits that the model checks against.

use std::time::Duration;

use redrive_core::guards;

use super::alerts::AlertRules;
use crate::plan::{Alerting, Family, Mood, Shape};

/// The limits that the model checks against.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The largest difference between two readings of different clocks, plus 1 ms for rounding. Without drift: the
    /// rounding.
    pub slack: Duration,
    /// How many attempts a process may have on the wire for one lane.
    pub lane_concurrency: usize,
    /// How many attempts a process may have on the wire in all.
    pub max_in_flight: usize,
    /// The longest duration of an attempt.
    pub longest_attempt: Duration,
    /// The shortest difference between a lease and its attempt's timeout.
    pub lease_margin: Duration,
    /// The shortest time that ended tasks and their keys are kept.
    pub retention: Duration,
    /// How soon due work is in flight, or has ended, once all faults are over.
    pub settles_within: Duration,
    /// How soon an alert is raised, once all faults are over.
    pub alerts_within: Duration,
    /// What sinks are told, if there are any.
    pub alerts: Option<AlertRules>,
    /// Whether nothing in this world can leave the outcome of an attempt unknown.
    pub is_undisturbed: bool,
    /// The guards of every lane; `None` where a fault may explain what they let through.
    pub guards: Option<guards::Settings>,
    /// Whether several nodes share their guards.
    pub are_guards_shared: bool,
    /// How often a node that shares the store looks for breakers that others have opened.
    pub scan_every: Duration,
    /// How long a lane may wait; `None` where a fault may explain a longer wait.
    pub fairness: Option<Fairness>,
}

/// How long a lane with due work may have nothing on the wire, whatever other lanes do (`engine/src/admission`).
#[derive(Debug, Clone)]
pub struct Fairness {
    /// The slots that the fast, or the unknown, lanes have at least: a quarter of all.
    slots: usize,
    tenants: usize,
    longest_attempt: Duration,
    /// Whether one process makes all attempts: each process measures the pace of a lane by itself.
    is_alone: bool,
    /// Whether quick dependencies may begin to hang.
    is_fickle: bool,
}

impl Fairness {
    /// The longest duration of claims and commits.
    const OVERHEAD: Duration = Duration::from_secs(1);
    /// How long a slot rests after a failure.
    const REST: Duration = Duration::from_secs(1);
    /// The longest attempt of a quick lane.
    const QUICK_ATTEMPT: Duration = Duration::from_millis(50);

    /// The bound for a lane that was measured as quick, as one of `lanes` such lanes.
    pub fn quick_within(&self, lanes: usize) -> Option<Duration> {
        let attempt = match self.is_fickle {
            // Quick dependencies that hang may hold all slots until their attempts time out.
            true => self.longest_attempt + Self::REST,
            false => Self::QUICK_ATTEMPT,
        };
        let rounds = rounds(lanes, self.slots) + u32::from(self.is_fickle);
        self.is_alone.then(|| Self::OVERHEAD + attempt * rounds)
    }

    /// The bound for any lane of a tenant with `lanes` lanes: tenants take turns.
    pub fn any_within(&self, lanes: usize) -> Duration {
        let rounds = rounds(lanes * self.tenants, self.slots) + 2;
        Self::OVERHEAD + (self.longest_attempt + Self::REST + Self::OVERHEAD / 10) * rounds
    }
}

fn rounds(lanes: usize, slots: usize) -> u32 {
    u32::try_from(lanes.div_ceil(slots)).unwrap_or(u32::MAX)
}

impl Rules {
    /// The limits of this world.
    pub fn of(shape: &Shape) -> Self {
        let engine = &shape.engine;
        let disturbing = [Family::Crash, Family::Stop, Family::Pause, Family::Store, Family::Clock];
        let is_undisturbed = !disturbing.iter().any(|family| shape.families.has(*family));
        let is_judged =
            is_undisturbed && !shape.families.has(Family::Dependency) && shape.families.has(Family::Neighbours);
        let is_fickle = shape.dependencies.contains(&Mood::Fickle);
        let fairness = Fairness {
            // The slots that slow lanes leave to others, at least.
            slots: (engine.max_in_flight / if is_fickle { 16 } else { 4 }).max(1),
            is_fickle,
            tenants: shape.tenants,
            longest_attempt: shape.longest_attempt,
            is_alone: shape.nodes == 1,
        };
        // On a shared store this is the largest error of a process's common time, not of its machine's clock.
        let clock_bound = match shape.exclusive {
            true => shape.clock_bound,
            false if shape.families.has(Family::Store) || shape.families.has(Family::Pause) => {
                (engine.lease_margin / 5).min(Duration::from_millis(500))
            }
            // Half of the longest round trip to the store.
            false => Duration::from_millis(6),
        };
        Rules {
            slack: 2 * clock_bound + Duration::from_millis(2),
            lane_concurrency: engine.lane_concurrency,
            max_in_flight: engine.max_in_flight,
            longest_attempt: shape.longest_attempt,
            lease_margin: engine.lease_margin,
            retention: engine.retention,
            // A lease that was taken at the last moment expires and is found, and its task waits for its turn;
            // meanwhile nodes that were down are restarted.
            settles_within: shape.longest_attempt.max(Duration::from_secs(60))
                + 2 * engine.lease_margin
                + 3 * engine.rescue_every
                + 3 * engine.look_around_every
                + 2 * clock_bound
                + Duration::from_secs(120)
                + held_within(&engine.guards),
            // A clock that is set back stands still until the time is what it was.
            alerts_within: Duration::from_secs(600) + delivered_within(shape) + 2 * clock_bound,
            alerts: shape.alerting.as_ref().map(|alerting| alert_rules(shape, alerting, is_undisturbed)),
            is_undisturbed,
            guards: are_guards_judged(shape).then_some(engine.guards),
            are_guards_shared: !shape.exclusive,
            scan_every: engine.look_around_every,
            // Notifications are lanes of one more tenant, and their attempts take as long as they take.
            fairness: is_judged.then_some(fairness).filter(|_| shape.alerting.is_none()),
        }
    }
}

/// Whether what the guards let through is judged: on clocks that show the right time, and no node is suspended between the
/// decision to send and the send.
fn are_guards_judged(shape: &Shape) -> bool {
    let unsettling = [Family::Clock, Family::Pause];
    !unsettling.iter().any(|family| shape.families.has(*family))
}

/// How long a notification may take to reach its sink once all faults are over: its last attempt failed before that, or it could
/// not be delivered and is told again.
fn delivered_within(shape: &Shape) -> Duration {
    let Some(alerting) = &shape.alerting else { return Duration::ZERO };
    LONGEST_BACKOFF.max(alerting.interval) + held_within(&shape.engine.guards)
}

fn alert_rules(shape: &Shape, alerting: &Alerting, is_undisturbed: bool) -> AlertRules {
    let may_be_cut_short = |family| shape.families.has(family);
    let is_cut_short = [Family::Crash, Family::Stop, Family::Clock].into_iter().any(may_be_cut_short);
    // A process that cannot read its store at its start ends, and is started again.
    let is_cut_short = is_cut_short || shape.families.has(Family::Store);
    AlertRules {
        sinks: (0..alerting.sinks).map(Alerting::sink_name).collect(),
        stored_within: is_undisturbed.then_some(STORED_WITHIN),
        lasts: (!is_cut_short).then_some(ALERT_LASTS),
        over_within: ALERT_LASTS + Duration::from_secs(600) + 2 * delivered_within(shape) + 2 * shape.clock_bound,
    }
}

/// The longest wait between two attempts of a notification.
const LONGEST_BACKOFF: Duration = Duration::from_secs(5 * 60);
/// The window of the rule about dead letters.
const ALERT_LASTS: Duration = Duration::from_secs(5 * 60);
/// How soon a process that nothing disturbs has stored a notification: a few looks, and the time that a group waits.
const STORED_WITHIN: Duration = Duration::from_secs(60);

/// How long guards may hold due work back once all faults are over. The breaker: its longest pause, and a few rounds of
/// probes. The budget: a lane that has failed is healthy again after 45 of 50 successes, and only the floor is granted
/// until then.
fn held_within(guards: &guards::Settings) -> Duration {
    let breaker = guards.breaker.map_or(Duration::ZERO, |breaker| {
        breaker.longest_open.max(breaker.longest_retry_after).mul_f64(1.0 + breaker.spread) * 2
    });
    let budget = guards.budget.map_or(Duration::ZERO, |budget| budget.window * (8 + 60 / budget.floor.max(1)));
    breaker + budget
}
