//! Adaptive concurrency limit: how many calls a lane may have in flight at once.
//!
//! More calls in flight bring more throughput until the dependency is busy; from there on they only wait in its queue.
//! By Little's law `throughput = calls in flight / latency`, so the latency without a queue, the *baseline*, tells the
//! two apart: at a mean latency of `n` baselines only one call in `n` is being served. Each round the limit follows
//! that *gradient* to the point where calls wait half a baseline: 1.5 times what the dependency serves at once, plus 1.
//!
//! A gradient alone drifts upward: it measures its baseline in the queue that it causes. So the baseline is not the
//! lowest latency seen but comes from a *throughput check*: the limit is halved until throughput falls by a fifth. What
//! could be taken away without a loss was queue; what is left has none, and its latency is the baseline. The check runs
//! at the start, when latency no longer fits the baseline (the dependency became slower or faster), and from time to
//! time ([`CHECK_EVERY`]). A slower dependency thus raises the baseline instead of starving the lane.
//!
//! The limit changes once per *round*: the calls that are in flight at a change end first, then the mean over one more
//! round trip and at least [`ROUND_CALLS`] calls is taken, so that noise cancels out. Queueing up to
//! [`Settings::slack`] is always accepted: a dependency that answers in less is not limited for the jitter of a
//! scheduler. A lane that does not use its limit shows nothing about it, and the limit stays.
//!
//! Overload reduces the limit at once, and makes it grow slowly for the next rounds. A 429 says that the dependency has
//! too much to do. A timeout or a 503 may have another reason: one in five of the latest calls counts as overload. So a
//! dependency that fails here and there, whatever its load, is not called less and less.
//!
//! A value, not a task: callers pass time and outcomes in. It does not reject or queue calls: the engine asks for
//! [`Concurrency::limit`] and keeps to it. It is not the breaker: a dependency that only fails still gets
//! [`Settings::least`] calls. It is not a rate limit, and not fair between lanes.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::latency::Latency;

/// A round measures at least this many calls, so that a few outliers do not decide, …
pub const ROUND_CALLS: u32 = 32;

/// … but lasts no longer than this many round trips, so that a low limit does not take minutes to grow.
pub const ROUND_TRIPS: u32 = 8;

/// Between two throughput checks are at least this many rounds, however much latency varies.
pub const CHECK_GAP: u32 = 8;

/// Between two throughput checks are at most this many rounds: every check that confirms the baseline doubles the
/// distance to the next.
pub const CHECK_EVERY: u32 = 64;

/// A check ends when throughput is below this part of what it was. Half the calls in flight have half the throughput if
/// there was no queue, and all of it if there still is one.
const THROUGHPUT_KEPT: f64 = 0.8;

/// Latency that differs by more than this factor from what the baseline allows is a changed dependency.
const MISFIT: f64 = 1.5;

/// The part of the limit that a lane must have in flight for its calls to say anything about the limit.
const IN_USE: f64 = 0.75;

/// The part by which the limit grows in a round at most.
const FASTEST_GROWTH: f64 = 0.5;

/// That part after an overload, so that the limit does not jump into the next one; it recovers by
/// [`GROWTH_RECOVERY`] with each round that ends without.
const CAREFUL_GROWTH: f64 = 0.01;
const GROWTH_RECOVERY: f64 = 1.1;

/// From this part of the latest calls on, a timeout or a 503 is an overload.
const UNAVAILABLE_SHARE: f32 = 0.2;
/// The weight of one call in that part.
const UNAVAILABLE_WEIGHT: f32 = 1.0 / 64.0;

/// The limit grows by at least this in a round, so that it does not stay at 1 after an overload.
const SMALLEST_STEP: f64 = 0.25;

/// How many calls a lane may have in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Whether the limit adapts; otherwise it is `most`.
    pub is_adaptive: bool,
    /// The limit before anything is known.
    pub start: u32,
    /// The limit is never lower, nor lower than 1. It wins over `most`.
    pub least: u32,
    /// The limit is never higher.
    pub most: u32,
    /// How long calls may queue at the dependency, as a part of its latency without a queue.
    pub tolerance: f64,
    /// Queueing of this length is accepted whatever `tolerance` says.
    pub slack: Duration,
    /// What an overload multiplies the limit by, in [0, 1].
    pub on_overload: f64,
}

/// Adapts from 20 between 1 and 200; calls may queue for half their latency or 10 ms; × 0.9 on overload.
impl Default for Settings {
    fn default() -> Self {
        Settings {
            is_adaptive: true,
            start: 20,
            least: 1,
            most: 200,
            tolerance: 0.5,
            slack: Duration::from_millis(10),
            on_overload: 0.9,
        }
    }
}

impl Settings {
    fn bounded(&self, limit: f64) -> f64 {
        limit.min(f64::from(self.most)).max(f64::from(self.least)).max(1.0)
    }

    /// The longest mean latency that is accepted when calls take `baseline` seconds without a queue.
    fn accepted(&self, baseline: f64) -> f64 {
        baseline + (baseline * self.tolerance).max(self.slack.as_secs_f64())
    }
}

/// What one call showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The dependency answered; the duration counts.
    Answered,
    /// The dependency says that it has too much to do: 429.
    Overloaded,
    /// The dependency may have too much to do: a timeout or 503.
    Unavailable,
    /// Nothing about the load, for example another failure; its duration does not count.
    Neutral,
}

/// The concurrency limit of one lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Concurrency {
    settings: Settings,
    /// The limit if it adapts, apart from a ramp.
    limit: f64,
    /// The limit of a slow start, until it reaches the limit that holds.
    ramp: Option<f64>,
    /// The mean latency without a queue, in seconds, once it has been measured.
    baseline: Option<f64>,
    /// The throughput check that is under way.
    check: Option<Check>,
    rounds_since_check: u32,
    /// After how many rounds the next check is due, if latency fits the baseline.
    check_after: u32,
    round: Round,
    /// The part by which the limit may grow in this round.
    growth: f64,
    /// When an overload last reduced the limit. Calls that began earlier show the same overload.
    reduced_at: Option<Duration>,
    /// The smoothed part of calls that were unavailable.
    unavailable: f32,
}

/// The calls of one round.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Round {
    /// The calls that were in flight when it began and are still to end, once that is known. They were sent under an
    /// earlier limit and are not measured.
    settling: Option<u32>,
    calls: u32,
    seconds: f64,
    in_flight: f64,
    peak: u32,
}

/// A throughput check: what held before the limit was halved.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Check {
    limit: f64,
    before: Means,
}

/// The means of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Means {
    /// Above zero.
    seconds: f64,
    in_flight: f64,
}

impl Means {
    fn throughput(self) -> f64 {
        self.in_flight / self.seconds
    }
}

impl Concurrency {
    /// The limit of a lane that has not made any calls.
    pub fn new(settings: Settings) -> Self {
        Concurrency {
            settings,
            limit: settings.bounded(f64::from(settings.start)),
            ramp: None,
            baseline: None,
            check: None,
            rounds_since_check: 0,
            check_after: CHECK_GAP,
            round: Round::default(),
            growth: FASTEST_GROWTH,
            reduced_at: None,
            unavailable: 0.0,
        }
    }

    /// How many calls may be in flight now: at least `least`, and at least 1.
    pub fn limit(&self) -> u32 {
        let limit = self.ramp.map_or(self.full_limit(), |ramp| ramp.min(self.full_limit()));
        self.settings.bounded(limit) as u32
    }

    /// Records a call that ended: how long it took, and how many calls were in flight when it ended, itself included.
    /// `elapsed` is monotonic time since some fixed point.
    pub fn record(&mut self, signal: Signal, took: Duration, in_flight: u32, elapsed: Duration) {
        let began = elapsed.saturating_sub(took);
        match signal {
            Signal::Neutral => return,
            Signal::Unavailable => self.unavailable += (1.0 - self.unavailable) * UNAVAILABLE_WEIGHT,
            Signal::Answered | Signal::Overloaded => self.unavailable -= self.unavailable * UNAVAILABLE_WEIGHT,
        }
        match signal {
            Signal::Neutral => {}
            Signal::Unavailable if self.unavailable < UNAVAILABLE_SHARE => {}
            Signal::Overloaded | Signal::Unavailable => self.reduce(began, elapsed),
            Signal::Answered if self.ramp.is_some() => self.climb(began),
            Signal::Answered if self.settings.is_adaptive => {
                if let Some(round) = self.round_with(took, in_flight) {
                    self.round = Round::default();
                    self.decide(round);
                }
            }
            Signal::Answered => {}
        }
    }

    /// Begins again with `from` calls in flight. Every answered call adds one, which doubles them with each round trip,
    /// until the limit that holds is reached. For a breaker that has closed.
    pub fn ramp(&mut self, from: u32) {
        self.end_check();
        self.round = Round::default();
        self.ramp = Some(self.settings.bounded(f64::from(from)));
    }

    /// Applies other settings and keeps what was learnt where it is within the new bounds.
    pub fn configure(&mut self, settings: Settings) {
        self.end_check();
        self.settings = settings;
        self.limit = settings.bounded(self.limit);
        self.round = Round::default();
    }

    /// The limit that holds apart from a ramp.
    fn full_limit(&self) -> f64 {
        if self.settings.is_adaptive { self.limit } else { f64::from(self.settings.most) }
    }

    /// Reduces the limit, unless the call began before the last reduction: then it shows nothing new.
    fn reduce(&mut self, began: Duration, elapsed: Duration) {
        if !self.is_since_reduction(began) {
            return;
        }
        let settings = self.settings;
        let reduced = |limit: f64| settings.bounded(limit * settings.on_overload.clamp(0.0, 1.0));
        self.limit = reduced(self.limit);
        self.ramp = self.ramp.map(reduced);
        self.check = self.check.map(|check| Check { limit: reduced(check.limit), ..check });
        self.growth = CAREFUL_GROWTH;
        self.reduced_at = Some(elapsed);
        self.round = Round::default();
    }

    fn is_since_reduction(&self, began: Duration) -> bool {
        self.reduced_at.is_none_or(|reduced_at| began > reduced_at)
    }

    /// Counts an answered call of a ramp.
    fn climb(&mut self, began: Duration) {
        if self.is_since_reduction(began) {
            self.ramp = self.ramp.map(|ramp| ramp + 1.0).filter(|ramp| *ramp < self.full_limit());
        }
    }

    /// Adds a call to the round, and returns the round if that completes it.
    fn round_with(&mut self, took: Duration, in_flight: u32) -> Option<Round> {
        let round = &mut self.round;
        let settling = round.settling.get_or_insert(in_flight);
        if *settling > 0 {
            *settling -= 1;
            return None;
        }
        round.calls += 1;
        round.seconds += took.min(Latency::LONGEST).as_secs_f64();
        round.in_flight += f64::from(in_flight);
        round.peak = round.peak.max(in_flight);
        let enough = f64::from(ROUND_CALLS).min(self.limit * f64::from(ROUND_TRIPS)).max(self.limit);
        (f64::from(round.calls) >= enough).then_some(*round)
    }

    fn decide(&mut self, round: Round) {
        if f64::from(round.peak) < self.limit.floor() * IN_USE {
            return self.end_check();
        }
        let calls = f64::from(round.calls);
        // A nanosecond, the resolution of a duration, in place of zero.
        let means = Means { seconds: (round.seconds / calls).max(1e-9), in_flight: round.in_flight / calls };
        match self.check {
            Some(check) => self.continue_check(check, means),
            None => self.adapt(means),
        }
    }

    /// Follows the gradient, or begins a throughput check if the baseline is unknown, old or does not fit.
    fn adapt(&mut self, means: Means) {
        self.growth = (self.growth * GROWTH_RECOVERY).min(FASTEST_GROWTH);
        self.rounds_since_check = self.rounds_since_check.saturating_add(1);
        if means.seconds <= self.settings.slack.as_secs_f64() {
            return self.grow_to(f64::INFINITY);
        }
        let Some(baseline) = self.baseline else {
            return self.continue_check(Check { limit: self.limit, before: means }, means);
        };
        let fits = baseline / MISFIT..=self.settings.accepted(baseline) * MISFIT;
        let is_fit = fits.contains(&means.seconds);
        if self.rounds_since_check >= if is_fit { self.check_after } else { CHECK_GAP } {
            self.continue_check(Check { limit: self.limit, before: means }, means);
        } else if is_fit {
            self.follow(means, baseline);
        }
    }

    /// Halves the limit while that does not cost throughput; then what is left has no queue.
    fn continue_check(&mut self, check: Check, means: Means) {
        let lower = self.settings.bounded(self.limit / 2.0);
        let is_kept = means.throughput() >= check.before.throughput() * THROUGHPUT_KEPT;
        self.check = Some(check);
        if is_kept && lower.floor() < self.limit.floor() {
            self.limit = lower;
        } else {
            self.end_check();
            let fits = |old: f64| (old / MISFIT..=old * MISFIT).contains(&means.seconds);
            let is_confirmed = self.baseline.is_some_and(fits);
            self.check_after = if is_confirmed { (2 * self.check_after).min(CHECK_EVERY) } else { CHECK_GAP };
            self.baseline = Some(means.seconds);
            self.follow(check.before, means.seconds);
        }
    }

    /// Ends a throughput check that is under way: the limit is again what it was before.
    fn end_check(&mut self) {
        if let Some(check) = self.check.take() {
            self.limit = check.limit;
            self.rounds_since_check = 0;
        }
    }

    /// Moves the limit to where latency is what is accepted.
    fn follow(&mut self, means: Means, baseline: f64) {
        let accepted = self.settings.accepted(baseline);
        let target = means.in_flight * accepted / means.seconds + 1.0;
        if target > self.limit {
            self.grow_to(target);
        } else if means.seconds > accepted {
            self.limit = self.settings.bounded(target);
        }
    }

    fn grow_to(&mut self, target: f64) {
        let step = (self.limit * self.growth).max(SMALLEST_STEP);
        self.limit = self.settings.bounded(target.min(self.limit + step));
    }
}

impl Default for Concurrency {
    fn default() -> Self {
        Concurrency::new(Settings::default())
    }
}
