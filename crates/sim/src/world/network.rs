//! Dependencies with moods, and the wire to them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use redrive_core::{Answer, ErrorType};
use redrive_engine::transport::{Outbound, SendError, Sending, Transport};

use super::{World, lock, streams};
use crate::model::{Said, Whose};
use crate::moment::Moment;
use crate::plan::{Family, Mood, Shape};
use crate::random::Random;

/// All dependencies.
pub(super) struct Network {
    dependencies: Vec<Mutex<Dependency>>,
    usual: Mood,
}

struct Dependency {
    random: Random,
    /// The moods that faults put it in, the latest last.
    moods: Vec<(usize, Mood)>,
}

/// What a dependency does with a request.
struct Reaction {
    takes: Duration,
    result: Result<(u16, Option<Patience>), ErrorType>,
}

/// How a dependency asks for patience.
#[derive(Clone, Copy)]
enum Patience {
    Seconds(u64),
    /// Until a date, in whole seconds.
    Until(Moment),
    /// In no way that anybody understands.
    Nonsense,
}

impl Network {
    pub(super) fn new(seed: u64, shape: &Shape) -> Self {
        let dependency = |number: usize| {
            let random = Random::stream(seed, streams::NETWORK + number as u64);
            Mutex::new(Dependency { random, moods: Vec::new() })
        };
        let usual = if shape.families.has(Family::Dependency) { Mood::Mixed } else { Mood::Well };
        Network { dependencies: (0..shape.dependencies).map(dependency).collect(), usual }
    }

    pub(super) fn begin(&self, dependency: usize, fault: usize, mood: Mood) {
        lock(&self.dependencies[dependency]).moods.push((fault, mood));
    }

    pub(super) fn end(&self, dependency: usize, fault: usize) {
        lock(&self.dependencies[dependency]).moods.retain(|(other, _)| *other != fault);
    }

    fn react(&self, world: &World, outbound: &Outbound) -> Reaction {
        let number = number_in(&outbound.request.target_url).unwrap_or(0).min(self.dependencies.len() - 1);
        let mut dependency = lock(&self.dependencies[number]);
        let mood = dependency.moods.last().map_or(self.usual, |(_, mood)| *mood);
        let mood = if world.is_well() { Mood::Well } else { mood };
        if !matches!(mood, Mood::Well | Mood::Mixed) {
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
        let random = &mut self.random;
        let timeout = outbound.attempt_timeout;
        let soon = random.duration(Duration::from_micros(200), Duration::from_millis(300));
        let answer = |takes, status| Reaction { takes, result: Ok((status, None)) };
        match mood {
            Mood::Well => answer(soon, 200),
            Mood::Mixed if random.chance(0.5) => answer(soon, *random.pick(&[200, 200, 201, 204])),
            Mood::Mixed => {
                let other = *random.pick(&Mood::BAD[1..]);
                self.react(other, outbound, now)
            }
            Mood::Down if random.chance(0.5) => {
                Reaction { takes: soon / 10, result: Err(ErrorType::ConnectionRefused) }
            }
            Mood::Down => Reaction { takes: outbound.connect_timeout, result: Err(ErrorType::ConnectTimeout) },
            Mood::Stalls => Reaction { takes: timeout, result: Err(ErrorType::ReadTimeout) },
            // Around the timeout: some make it, some do not.
            Mood::Trickles => answer(timeout.mul_f64(0.5 + random.unit()), 200),
            Mood::Throttles => {
                let patience = random.chance(0.9).then(|| {
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
                Reaction { takes: soon, result: Ok((*random.pick(&[429, 503]), patience)) }
            }
            Mood::Errs => answer(soon, *random.pick(&[500, 501, 502, 503, 504, 505, 507, 599, 408])),
            Mood::Refuses => answer(soon, *random.pick(&[400, 401, 403, 404, 409, 410, 418, 422, 301, 304])),
            Mood::TooLate => answer(timeout + soon, 200),
            Mood::Resets => Reaction { takes: soon, result: Err(ErrorType::ConnectionReset) },
            Mood::Nameless => Reaction { takes: soon / 10, result: Err(ErrorType::Dns) },
            Mood::Untrusted => Reaction { takes: soon, result: Err(ErrorType::TlsCertificate) },
        }
    }
}

/// A process's way to the dependencies.
pub(super) struct Wire {
    pub(super) world: Arc<World>,
    pub(super) whose: Whose,
}

impl Transport for Wire {
    fn send(&self, outbound: Outbound) -> Sending {
        let (world, whose) = (self.world.clone(), self.whose);
        if world.dies_here(whose) {
            return Box::pin(std::future::pending());
        }
        world.observer().departed(world.now(), whose, &outbound);
        let reaction = world.network.react(&world, &outbound);
        let mut on_wire = OnWire { world: world.clone(), whose, outbound, is_over: false };
        let is_dead = world.dies_here(whose);
        Box::pin(async move {
            if is_dead {
                std::future::pending::<()>().await;
            }
            let timeout = on_wire.outbound.attempt_timeout;
            world.executor.sleep(reaction.takes.min(timeout)).await;
            let result = if reaction.takes > timeout { Err(ErrorType::ReadTimeout) } else { reaction.result };
            on_wire.hear(&result);
            world.effect(whose).await;
            match result {
                Ok((status, patience)) => Ok(answer(status, patience)),
                Err(kind) => Err(SendError { kind, message: format!("simulated {}", kind.as_str()) }),
            }
        })
    }
}

fn answer(status: u16, patience: Option<Patience>) -> Answer {
    let value = patience.map(|patience| match patience {
        Patience::Seconds(seconds) => seconds.to_string(),
        Patience::Until(moment) => {
            httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(moment.wall().as_millis()))
        }
        Patience::Nonsense => "soon".to_owned(),
    });
    let headers = value.map(|value| ("retry-after".to_owned(), value)).into_iter().collect();
    Answer { status, headers, body: Bytes::from_static(b"simulated").into(), truncated: false }
}

/// A send on the wire; whatever becomes of its process, it is over when this is gone.
struct OnWire {
    world: Arc<World>,
    whose: Whose,
    outbound: Outbound,
    is_over: bool,
}

impl OnWire {
    fn hear(&mut self, result: &Result<(u16, Option<Patience>), ErrorType>) {
        let now = self.world.now();
        let said = match result {
            Ok((200..=299, _)) => Said::Yes,
            Ok((408 | 429 | 500..=599, patience)) => Said::Later(match patience {
                Some(Patience::Seconds(seconds)) => now.after(Duration::from_secs(*seconds)),
                Some(Patience::Until(moment)) => Moment(moment.0 / 1_000_000 * 1_000_000),
                Some(Patience::Nonsense) | None => now,
            }),
            Ok(_) | Err(ErrorType::TlsCertificate) => Said::Never,
            Err(ErrorType::Dns) => Said::NoSuchName,
            Err(_) => Said::Later(now),
        };
        self.end(Some(said));
    }

    fn end(&mut self, said: Option<Said>) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.world.observer().over(self.world.now(), self.whose, &self.outbound, said);
        }
    }
}

impl Drop for OnWire {
    fn drop(&mut self) {
        self.end(None);
    }
}
