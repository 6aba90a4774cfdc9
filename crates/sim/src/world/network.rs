//! Dependencies with moods: what becomes of a request. The way to them is `wire`.

use std::sync::Mutex;
use std::time::Duration;

use redrive_core::ErrorType;
use redrive_engine::transport::Outbound;

use super::{World, lock, streams};
use crate::moment::Moment;
use crate::plan::{Mood, Shape};
use crate::random::Random;

/// All dependencies.
pub(super) struct Network {
    dependencies: Vec<Mutex<Dependency>>,
    /// Says when a process has no socket left.
    pub(super) sockets: Mutex<Random>,
}

struct Dependency {
    random: Random,
    /// How it is unless a fault changes that.
    usual: Mood,
    /// The moods that faults put it in, the latest last.
    moods: Vec<(usize, Mood)>,
}

/// What becomes of a request.
pub(super) struct Reaction {
    pub(super) connection: Connecting,
    /// How long the answer takes from the first byte on.
    pub(super) takes: Duration,
    pub(super) result: Result<(u16, Option<Patience>), ErrorType>,
}

/// How a connection comes about.
#[derive(Clone, Copy)]
pub(super) struct Connecting {
    /// How long it takes to stand, or to fail.
    pub(super) takes: Duration,
    /// Why it does not stand.
    pub(super) fails: Option<ErrorType>,
    /// A kept connection turns out to be closed before a byte has left: another one is made.
    pub(super) is_made_twice: bool,
}

/// How a dependency asks for patience.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    Seconds(u64),
    /// Until a date, in whole seconds.
    Until(Moment),
    /// In no way that anybody understands.
    Nonsense,
}

impl Network {
    pub(super) fn new(seed: u64, shape: &Shape) -> Self {
        let dependency = |(number, usual): (usize, &Mood)| {
            let random = Random::stream(seed, streams::NETWORK + number as u64);
            Mutex::new(Dependency { random, usual: *usual, moods: Vec::new() })
        };
        let sockets = Mutex::new(Random::stream(seed, streams::SOCKETS));
        Network { dependencies: shape.dependencies.iter().enumerate().map(dependency).collect(), sockets }
    }

    pub(super) fn begin(&self, dependency: usize, fault: usize, mood: Mood) {
        lock(&self.dependencies[dependency]).moods.push((fault, mood));
    }

    pub(super) fn end(&self, dependency: usize, fault: usize) {
        lock(&self.dependencies[dependency]).moods.retain(|(other, _)| *other != fault);
    }

    pub(super) fn react(&self, world: &World, outbound: &Outbound) -> Reaction {
        let number = number_in(&outbound.request.target_url).unwrap_or(0).min(self.dependencies.len() - 1);
        let mut dependency = lock(&self.dependencies[number]);
        let mood = dependency.moods.last().map_or(dependency.usual, |(_, mood)| *mood);
        // In a crowd, what was healthy stays as quick as it was.
        let mood = if world.is_well() && mood != Mood::Quick { Mood::Well } else { mood };
        if !matches!(mood, Mood::Well | Mood::Mixed | Mood::Quick) {
            world.observer().tally.bad_moods += 1;
        }
        dependency.react(mood, outbound, world.now())
    }
}

/// The dependency that a URL of this world names.
fn number_in(url: &str) -> Option<usize> {
    url.strip_prefix("http://dependency-")?.split('.').next()?.parse().ok()
}

impl Dependency {
    fn react(&mut self, mood: Mood, outbound: &Outbound, now: Moment) -> Reaction {
        let connection = self.connect(mood, outbound);
        let random = &mut self.random;
        let (timeout, millisecond) = (outbound.attempt_timeout, Duration::from_millis(1));
        let soon = random.duration(Duration::from_micros(200), 300 * millisecond);
        let answer = |takes, status| Reaction { connection, takes, result: Ok((status, None)) };
        match mood {
            Mood::Well | Mood::SlowToConnect => answer(soon, 200),
            Mood::Fickle if random.chance(0.1) => {
                Reaction { connection, takes: timeout, result: Err(ErrorType::ReadTimeout) }
            }
            Mood::Quick | Mood::Fickle => answer(random.duration(millisecond, QUICK), 200),
            Mood::Mixed if random.chance(0.5) => answer(soon, *random.pick(&[200, 200, 201, 204])),
            Mood::Mixed => {
                let other = *random.pick(&Mood::BAD[1..]);
                self.react(other, outbound, now)
            }
            Mood::Slow => answer(random.duration(400 * millisecond, 4_000 * millisecond), 200),
            Mood::Stalls => Reaction { connection, takes: timeout, result: Err(ErrorType::ReadTimeout) },
            // Around the timeout: some make it, some do not.
            Mood::Trickles => answer(timeout.mul_f64(0.5 + random.unit()), 200),
            Mood::Throttles => {
                let patience = random.chance(0.8).then(|| {
                    let wait = random.duration(Duration::from_secs(1), Duration::from_secs(1_200));
                    match random.below(10) {
                        0 | 1 => Patience::Until(now.after(wait)),
                        // A date that has passed, and what is no date at all: nothing to wait for.
                        2 => Patience::Until(Moment(now.0 / 2)),
                        3 => Patience::Nonsense,
                        4 => Patience::Seconds(0),
                        _ => Patience::Seconds(wait.as_secs()),
                    }
                });
                Reaction { connection, takes: soon, result: Ok((*random.pick(&[429, 503]), patience)) }
            }
            Mood::Errs => answer(soon, *random.pick(&[500, 501, 502, 503, 504, 505, 507, 599, 408])),
            Mood::Refuses => answer(soon, *random.pick(&[400, 401, 403, 404, 409, 410, 418, 422, 301, 304])),
            Mood::TooLate => answer(timeout + soon, 200),
            Mood::Resets => Reaction { connection, takes: soon, result: Err(ErrorType::ConnectionReset) },
            // There is no connection, so there is nothing to answer.
            Mood::Down | Mood::Closed | Mood::Nameless | Mood::Untrusted => {
                Reaction { connection, takes: Duration::ZERO, result: Err(ErrorType::ConnectFailed) }
            }
        }
    }

    fn connect(&mut self, mood: Mood, outbound: &Outbound) -> Connecting {
        let random = &mut self.random;
        let longest = outbound.connect_timeout;
        let soon = random.duration(Duration::from_micros(50), Duration::from_millis(20)).min(longest.mul_f64(0.9));
        let fails = |takes, kind| Connecting { takes, fails: Some(kind), is_made_twice: false };
        match mood {
            Mood::Closed => fails(soon, ErrorType::ConnectionRefused),
            Mood::Down if random.chance(0.5) => fails(soon, ErrorType::ConnectionRefused),
            Mood::Down => fails(longest, ErrorType::ConnectTimeout),
            // Its name server says so, or says nothing at all.
            Mood::Nameless => fails(if random.chance(0.5) { soon } else { longest }, ErrorType::Dns),
            Mood::Untrusted => fails(soon, ErrorType::TlsCertificate),
            Mood::SlowToConnect => {
                let takes = random.duration(Duration::from_millis(10), longest.mul_f64(1.1));
                let fails = (takes > longest).then_some(ErrorType::ConnectTimeout);
                Connecting { takes: takes.min(longest), fails, is_made_twice: random.chance(0.1) }
            }
            Mood::Quick | Mood::Fickle => Connecting { takes: soon / 10, fails: None, is_made_twice: false },
            _ => {
                let takes = match random.below(100) {
                    // A connection that is kept already.
                    0..50 => Duration::ZERO,
                    50..97 => soon,
                    _ => longest.mul_f64(0.9 * random.unit()),
                };
                Connecting { takes, fails: None, is_made_twice: random.chance(0.02) }
            }
        }
    }
}

/// The longest that a healthy dependency of a crowd takes to answer.
const QUICK: Duration = Duration::from_millis(30);
