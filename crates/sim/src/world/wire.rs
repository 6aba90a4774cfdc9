//! The wire: a send connects, checks whether its first byte may still be sent, and gets its result.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use redrive_core::guards::Health;
use redrive_core::{Answer, ErrorType};
use redrive_engine::transport::{Outbound, SendError, Sending, Transport};

use super::network::{Connecting, Patience, Reaction};
use super::notifier::sink_of;
use super::{World, lock};
use crate::model::{Said, Whose};
use crate::moment::Moment;
use crate::plan::Family;

/// The probability that this process has no socket left for a send, in a world of bad dependencies.
const NO_SOCKET: f64 = 0.005;

/// A process's transport to the dependencies.
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
        world.observer().connects(world.now(), whose, &outbound);
        let reaction = world.network.react(&world, &outbound);
        let on_wire = OnWire { world: world.clone(), whose, outbound, is_taken: reaction.is_taken(), is_over: false };
        let is_dead = world.dies_here(whose);
        Box::pin(async move {
            if is_dead {
                std::future::pending::<()>().await;
            }
            on_wire.see_through(reaction).await
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

/// A send. Dropping it ends the send, whatever happened to its process.
struct OnWire {
    world: Arc<World>,
    whose: Whose,
    outbound: Outbound,
    /// Whether the request does its work once it is sent.
    is_taken: bool,
    is_over: bool,
}

impl OnWire {
    async fn see_through(mut self, reaction: Reaction) -> Result<Answer, SendError> {
        let (world, whose, begun) = (self.world.clone(), self.whose, self.world.now());
        let connection = reaction.connection;
        if world.lacks_a_socket() {
            self.end(None, None);
            return Err(failed(ErrorType::NotSent));
        }
        let result = match self.connect(connection).await {
            Ok(()) => {
                let left = self.outbound.attempt_timeout.saturating_sub(world.now().since(begun));
                world.executor.sleep(reaction.takes.min(left)).await;
                if reaction.takes > left { Err(ErrorType::ReadTimeout) } else { reaction.result }
            }
            Err(ErrorType::NotSent) => return Err(failed(ErrorType::NotSent)),
            Err(kind) => Err(kind),
        };
        self.hear(&result);
        world.effect(whose).await;
        result.map(|(status, patience)| answer(status, patience)).map_err(failed)
    }

    /// Connects and sends the first byte, if that is allowed.
    async fn connect(&mut self, connection: Connecting) -> Result<(), ErrorType> {
        let world = self.world.clone();
        world.executor.sleep(connection.takes).await;
        if let Some(kind) = connection.fails {
            return Err(kind);
        }
        if connection.is_made_twice {
            world.effect(self.whose).await;
            if self.outbound.gate.open().is_err() {
                self.withdraw();
                return Err(ErrorType::NotSent);
            }
            world.executor.sleep(connection.takes.min(self.outbound.connect_timeout.mul_f64(0.05))).await;
        }
        world.effect(self.whose).await;
        if self.outbound.gate.open().is_err() {
            self.withdraw();
            return Err(ErrorType::NotSent);
        }
        world.observer().departed(world.now(), self.whose, &self.outbound);
        if self.is_taken && sink_of(&self.outbound.request).is_some() {
            world.observer().sink_hears(world.now(), &self.outbound);
        }
        world.effect(self.whose).await;
        Ok(())
    }

    fn hear(&mut self, result: &Result<(u16, Option<Patience>), ErrorType>) {
        let now = self.world.now();
        let said = match result {
            Ok((200..=299, _)) => Said::Yes,
            Ok((429, Some(Patience::Nonsense) | None)) => Said::TooMany(None),
            Ok((status @ (408 | 429 | 500..=599), patience)) => {
                let until = match patience {
                    Some(Patience::Seconds(seconds)) => now.after(Duration::from_secs(*seconds)),
                    Some(Patience::Until(moment)) => Moment(moment.0 / 1_000_000 * 1_000_000),
                    Some(Patience::Nonsense) | None => now,
                };
                if *status == 429 { Said::TooMany(Some(until)) } else { Said::Later(until) }
            }
            Ok(_) | Err(ErrorType::TlsCertificate) => Said::Never,
            Err(ErrorType::Dns) => Said::NoSuchName,
            Err(_) => Said::Later(now),
        };
        let health = match result {
            Ok((status, _)) => Some(Health::of_status(*status)),
            Err(kind) => Health::of_error(*kind),
        };
        self.end(Some(said), health);
    }

    /// Withdraws the send before its first byte.
    fn withdraw(&mut self) {
        self.is_over = true;
        self.world.observer().withdrawn(self.world.now(), self.whose, &self.outbound);
    }

    fn end(&mut self, said: Option<Said>, health: Option<Health>) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.world.observer().over(self.world.now(), self.whose, &self.outbound, said, health);
        }
    }
}

fn failed(kind: ErrorType) -> SendError {
    SendError { kind, message: format!("simulated {}", kind.as_str()) }
}

impl World {
    /// Whether this process has no socket left for a send: a failure that is not the dependency's.
    fn lacks_a_socket(&self) -> bool {
        let may_be = self.shape.families.has(Family::Dependency) && !self.is_well();
        may_be && lock(&self.network.sockets).chance(NO_SOCKET)
    }
}

impl Drop for OnWire {
    fn drop(&mut self) {
        self.end(None, None);
    }
}
