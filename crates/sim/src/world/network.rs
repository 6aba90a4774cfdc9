//! Dependencies with behaviours (moods): what happens to a request. The connection to them is `wire`.

use std::sync::Mutex;
use std::time::Duration;

use redrive_core::ErrorType;
use redrive_engine::transport::Outbound;

use super::notifier::sink_of;
use super::{World, lock, streams};
use crate::moment::Moment;
use crate::plan::{Mood, Shape};
use crate::random::Random;

/// All dependencies.
pub(super) struct Network {
    dependencies: Vec<Mutex<Dependency>>,
    /// Where alerts go to.
    sinks: Vec<Mutex<Dependency>>,
    /// Draws when a process has no socket left.
    pub(super) sockets: Mutex<Random>,
}

struct Dependency {
    random: Random,
    /// Its behaviour unless a fault changes it.
    usual: Mood,
    /// The behaviours that faults have given it, the latest last.
    moods: Vec<(usize, Mood)>,
}

/// What happens to a request.
pub(super) struct Reaction {
    pub(super) connection: Connecting,
    /// How long the answer takes from the first byte on.
    pub(super) takes: Duration,
    pub(super) result: Result<(u16, Option<Patience>), ErrorType>,
}

impl Reaction {
    /// Whether the request does its work, whether or not the answer arrives.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self.result, Ok((200..=299, _)) | Err(ErrorType::ConnectionReset))
    }
}

/// How a connection is established.
#[derive(Clone, Copy)]
pub(super) struct Connecting {
    /// How long it takes to be established, or to fail.
    pub(super) takes: Duration,
    /// Why it fails.
    pub(super) fails: Option<ErrorType>,
    /// A pooled connection turns out to be closed before a byte was sent: another one is made.
    pub(super) is_made_twice: bool,
}

/// The Retry-After of an answer.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    Seconds(u64),
    /// Until a date, in whole seconds.
    Until(Moment),
    /// A value that is neither a number nor a date.
    Nonsense,
}

impl Network {
    pub(super) fn new(seed: u64, shape: &Shape) -> Self {
        let dependency = |stream: u64, usual: Mood| {
            Mutex::new(Dependency { random: Random::stream(seed, stream), usual, moods: Vec::new() })
        };
        let numbered = (0..).zip(&shape.dependencies);
        let sinks = shape.alerting.as_ref().map_or(0, |alerting| alerting.sinks);
        Network {
            dependencies: numbered.map(|(number, usual)| dependency(streams::NETWORK + number, *usual)).collect(),
            sinks: (0..sinks).map(|number| dependency(streams::SINKS + number as u64, Mood::Well)).collect(),
            sockets: Mutex::new(Random::stream(seed, streams::SOCKETS)),
        }
    }

    pub(super) fn begin(&self, dependency: usize, fault: usize, mood: Mood) {
        lock(&self.dependencies[dependency]).moods.push((fault, mood));
    }

    pub(super) fn end(&self, dependency: usize, fault: usize) {
        lock(&self.dependencies[dependency]).moods.retain(|(other, _)| *other != fault);
    }

    pub(super) fn begin_at_sink(&self, sink: usize, fault: usize, mood: Mood) {
        lock(&self.sinks[sink]).moods.push((fault, mood));
    }

    pub(super) fn end_at_sink(&self, sink: usize, fault: usize) {
        lock(&self.sinks[sink]).moods.retain(|(other, _)| *other != fault);
    }

    pub(super) fn react(&self, world: &World, outbound: &Outbound) -> Reaction {
        let of_sink = sink_of(&outbound.request).and_then(|number| self.sinks.get(number));
        let number = number_in(&outbound.request.target_url).unwrap_or(0).min(self.dependencies.len() - 1);
        let mut dependency = lock(of_sink.unwrap_or(&self.dependencies[number]));
        let mood = dependency.moods.last().map_or(dependency.usual, |(_, mood)| *mood);
        // In a crowd, healthy dependencies stay as quick as before.
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
            // Around the timeout: some answers are in time, some are not.
            Mood::Trickles => answer(timeout.mul_f64(0.5 + random.unit()), 200),
            Mood::Throttles => {
                let patience = random.chance(0.8).then(|| {
                    let wait = random.duration(Duration::from_secs(1), Duration::from_secs(1_200));
                    match random.below(10) {
                        0 | 1 => Patience::Until(now.after(wait)),
                        // A date in the past, and no date at all: nothing to wait for.
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
            // The name server answers so, or does not answer at all.
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
                    // A pooled connection.
                    0..50 => Duration::ZERO,
                    50..97 => soon,
                    _ => longest.mul_f64(0.9 * random.unit()),
                };
                Connecting { takes, fails: None, is_made_twice: random.chance(0.02) }
            }
        }
    }
}

/// The longest time that a healthy dependency of a crowd takes to answer.
const QUICK: Duration = Duration::from_millis(30);
