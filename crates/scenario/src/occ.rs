//! Optimistic concurrency: clients that contend for one versioned row.
//!
//! The model of the article that made jitter popular ("Exponential Backoff and Jitter", AWS Architecture Blog, 2015).
//! Every client reads the row and then writes it with the version that it read. A write whose version is no longer the
//! row's fails, and its client reads again after a wait. A message takes |N(10, 2)| ms: there and back for the read,
//! there and back for the write, without a pause in between. So of those that read the same version one succeeds, and
//! the work of all others is wasted. The more of them come back together, the more work is wasted.
//!
//! The waits are those of `redrive_core::backoff`. All clients begin at the same moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use redrive_core::backoff::{self, Backoff};
use redrive_core::jitter::Jitter;
use redrive_core::policy::Policy;

use crate::chance::{Chance, Purpose};
use crate::world::{Invalid, within};

/// How a client waits before it tries again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// No wait.
    None,
    /// Exponential backoff: twice as long each time.
    Exponential,
    /// Equal jitter: half of that, and a uniform draw of the other half.
    Equal,
    /// Full jitter: a uniform draw between zero and that.
    Full,
    /// Decorrelated jitter: a uniform draw between the base and three times the wait before.
    Decorrelated,
}

/// The shortest wait of decorrelated jitter, and half of the first retry's ceiling of the others.
const BASE: Duration = Duration::from_millis(5);
/// The longest wait.
const CAP: Duration = Duration::from_millis(2_000);
/// The mean time of a message, in milliseconds, …
const HOP_MEAN: f64 = 10.0;
/// … and how much that varies (its standard deviation).
const HOP_SPREAD: f64 = 2.0;

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 5] =
        [Strategy::None, Strategy::Exponential, Strategy::Equal, Strategy::Full, Strategy::Decorrelated];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Strategy::None => "none",
            Strategy::Exponential => "exponential",
            Strategy::Equal => "equal",
            Strategy::Full => "full",
            Strategy::Decorrelated => "decorrelated",
        }
    }

    /// The policy whose waits these are.
    pub fn policy(self) -> Policy {
        let exponential = |initial| Backoff::Exponential { initial, multiplier: 2.0, max: CAP };
        let (backoff, jitter) = match self {
            Strategy::None => (Backoff::Fixed { delay: Duration::ZERO }, Jitter::None),
            Strategy::Exponential => (exponential(2 * BASE), Jitter::None),
            Strategy::Equal => (exponential(2 * BASE), Jitter::Equal),
            Strategy::Full => (exponential(2 * BASE), Jitter::Full),
            Strategy::Decorrelated => (exponential(BASE), Jitter::Decorrelated),
        };
        Policy { backoff, jitter, ..Policy::default() }
    }
}

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many clients contend, once for each entry.
    pub clients: Vec<u32>,
    /// How often each is played.
    pub runs: u32,
    /// The seed: the same one gives the same numbers again.
    pub seed: u64,
}

impl Settings {
    /// The most clients: the work grows with their square.
    pub const MAX_CLIENTS: u32 = 1_000;
    /// The most runs.
    pub const MAX_RUNS: u32 = 100_000;
    /// The most entries of [`Settings::clients`].
    pub const MAX_POINTS: usize = 1_000;
}

/// The means of many runs with one strategy and one number of clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// How they waited.
    pub strategy: Strategy,
    /// How many there were.
    pub clients: u32,
    /// The writes that were tried until all had succeeded.
    pub calls: Measure,
    /// The milliseconds until the last one was done.
    pub millis: Measure,
}

/// A mean, and how far apart the runs were.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measure {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of a single run.
    pub deviation: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

/// Plays every strategy with every number of clients; `progress` is called with the number of points done and of all.
pub fn run(settings: &Settings, mut progress: impl FnMut(usize, usize)) -> Result<Vec<Point>, Invalid> {
    within("the number of runs", u64::from(settings.runs), 1, Settings::MAX_RUNS)?;
    within("the number of points", settings.clients.len() as u64, 1, Settings::MAX_POINTS as u32)?;
    for clients in &settings.clients {
        within("the number of clients", u64::from(*clients), 1, Settings::MAX_CLIENTS)?;
    }
    let points = || settings.clients.iter().flat_map(|clients| Strategy::ALL.map(|strategy| (strategy, *clients)));
    let all = points().count();
    let mut done = Vec::with_capacity(all);
    for (strategy, clients) in points() {
        done.push(point(strategy, clients, settings));
        progress(done.len(), all);
    }
    Ok(done)
}

fn point(strategy: Strategy, clients: u32, settings: &Settings) -> Point {
    let policy = strategy.policy();
    let chance = Chance::new(settings.seed);
    let contests: Vec<_> = (0..settings.runs).map(|run| Contest::new(&policy, &chance, run, clients).play()).collect();
    Point {
        strategy,
        clients,
        calls: Measure::of(contests.iter().map(|(calls, _)| *calls as f64)),
        millis: Measure::of(contests.iter().map(|(_, nanos)| *nanos as f64 / 1e6)),
    }
}

impl Measure {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / count;
        let variance =
            values.clone().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0).max(1.0);
        let least = values.clone().fold(f64::INFINITY, f64::min);
        Measure { mean, deviation: variance.sqrt(), least, most: values.fold(0.0, f64::max) }
    }
}

/// One run: all clients start together; it ends when all are done.
struct Contest<'a> {
    policy: &'a Policy,
    chance: &'a Chance,
    /// Makes the draws of this run differ from those of the others.
    run: u64,
    clients: Vec<Client>,
    /// When the next message reaches the row, and whose it is.
    arriving: BinaryHeap<Reverse<(u64, u32)>>,
    version: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Client {
    /// The version that it has read, while it writes.
    writing: Option<u64>,
    cycles: u32,
    previous: Option<Duration>,
    hops: u32,
}

impl<'a> Contest<'a> {
    fn new(policy: &'a Policy, chance: &'a Chance, run: u32, clients: u32) -> Self {
        let mut contest = Contest {
            policy,
            chance,
            run: u64::from(run) << 32,
            clients: vec![Client::default(); clients as usize],
            arriving: BinaryHeap::new(),
            version: 0,
        };
        for client in 0..clients {
            let arrives = contest.hop(client);
            contest.arriving.push(Reverse((arrives, client)));
        }
        contest
    }

    /// The writes that were tried, and the nanoseconds until the last client knew that it was done.
    fn play(mut self) -> (u64, u64) {
        let (mut calls, mut done) = (0, 0);
        while let Some(Reverse((now, client))) = self.arriving.pop() {
            let back = now + self.hop(client);
            let next = match self.clients[client as usize].writing.take() {
                None => {
                    self.clients[client as usize].writing = Some(self.version);
                    Some(back)
                }
                Some(read) => {
                    calls += 1;
                    let wins = read == self.version;
                    self.version += u64::from(wins);
                    if wins {
                        done = done.max(back);
                    }
                    (!wins).then(|| back + self.wait(client))
                }
            };
            if let Some(leaves) = next {
                let arrives = leaves + self.hop(client);
                self.arriving.push(Reverse((arrives, client)));
            }
        }
        (calls, done)
    }

    /// What this client's next message takes, in nanoseconds.
    fn hop(&mut self, client: u32) -> u64 {
        let state = &mut self.clients[client as usize];
        state.hops += 1;
        let normal = self.chance.normal(Purpose::Hop, self.run | u64::from(client), u64::from(state.hops));
        ((HOP_MEAN + HOP_SPREAD * normal).abs() * 1e6) as u64
    }

    /// How long this client waits after a write that failed, in nanoseconds.
    fn wait(&mut self, client: u32) -> u64 {
        let state = &mut self.clients[client as usize];
        state.cycles += 1;
        let unit = self.chance.unit(Purpose::Jitter, self.run | u64::from(client), u64::from(state.cycles));
        let wait = backoff::delay(self.policy, state.cycles, state.previous, unit);
        state.previous = Some(wait);
        u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the model is known to give at 100 clients: calls, and milliseconds until all are done.
    const KNOWN: [(Strategy, f64, f64); 5] = [
        (Strategy::None, 2_426.0, 2_029.0),
        (Strategy::Exponential, 1_858.0, 63_819.0),
        (Strategy::Equal, 812.0, 6_680.0),
        (Strategy::Full, 795.0, 4_858.0),
        (Strategy::Decorrelated, 1_004.0, 4_559.0),
    ];

    #[test]
    fn at_a_hundred_clients_the_means_are_the_known_ones() {
        let settings = Settings { clients: vec![100], runs: 250, seed: 1 };
        let points = run(&settings, |_, _| {}).unwrap();
        for (point, (strategy, calls, millis)) in points.iter().zip(KNOWN) {
            assert_eq!(point.strategy, strategy);
            let off = (point.calls.mean / calls - 1.0, point.millis.mean / millis - 1.0);
            assert!(off.0.abs() < 0.03, "{strategy:?}: {} calls for {calls}", point.calls.mean);
            assert!(off.1.abs() < 0.05, "{strategy:?}: {} ms for {millis}", point.millis.mean);
        }
    }
}
