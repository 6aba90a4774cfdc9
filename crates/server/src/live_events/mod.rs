//! What happens on this node, for readers that follow it live: accepted tasks, attempts, retries, ends, dead letters,
//! breakers, alerts.
//!
//! [`LiveEvents`] is a sink of the engine, and the loop of alerts tells it what fires and what is over. It keeps the last events
//! in memory, numbered from 1, as values that are cheap to keep: JSON is made only when something reads them. An
//! [`EventReader`] reads at its own pace. What has left the memory before it was read is told as a [`Gap`]; a reader never
//! delays an event and holds no queue.
//!
//! | file | its job |
//! | --- | --- |
//! | `kind` | the kinds of events, what they mean and which fields they have; `docs/events.md` is generated from it |
//! | `event` | one event, and which event of the engine it is made from |
//! | `ring` | the last events, with their numbers |
//! | `event_id` | what a reader resumes after: the life of a process and a number |
//! | `filter` | which events a reader wants |
//! | `reader` | reads from a position on, and tells gaps |
//!
//! Not here: the documents (`wire`), the stream over HTTP (`rest/event_stream`). Events are lost when the process ends: what
//! must not be lost is in the store.

mod event;
mod event_id;
mod filter;
mod kind;
mod reader;
mod ring;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::TenantId;
use redrive_core::alerts::Transition;
use redrive_engine::clock::Clock;
use redrive_engine::entropy::Entropy;
use redrive_engine::events::{Event, Sink};
use tokio::sync::{Notify, Semaphore};

pub use event::{AlertFacts, AttemptFacts, AttemptNumbers, EndFacts, Happening, LiveEvent, TaskOfEvent};
pub use event_id::{EventId, NotAnEventId};
pub use filter::EventFilter;
pub use kind::{Kind, reference};
pub use reader::{Batch, EventReader, Gap, GapReason, Progress, StartAt};

use ring::Ring;

/// How many events are kept by default. Each takes 144 bytes, and what the names of its task take.
pub const DEFAULT_KEPT: usize = 10_000;

/// The most readers at once.
pub const MOST_READERS: usize = 64;

/// Keeps the last events of this process. The same value is a sink of the engine and part of the server's `App`.
pub struct LiveEvents {
    /// `None` if events are off.
    clock: Option<Arc<dyn Clock>>,
    /// This life of the process.
    start: u64,
    log: Mutex<Log>,
    /// Wakes the readers that have read everything.
    news: Notify,
    places: Arc<Semaphore>,
}

struct Log {
    ring: Ring<LiveEvent>,
    /// Whether a reader waits for the next event.
    is_awaited: bool,
}

impl LiveEvents {
    /// Keeps the last `kept` events, at least one.
    pub fn new(kept: usize, clock: Arc<dyn Clock>, entropy: &dyn Entropy) -> Arc<Self> {
        LiveEvents::build(kept, Some(clock), entropy.bits())
    }

    /// Keeps nothing and cannot be read.
    pub fn off() -> Arc<Self> {
        LiveEvents::build(1, None, 0)
    }

    fn build(kept: usize, clock: Option<Arc<dyn Clock>>, start: u64) -> Arc<Self> {
        let log = Mutex::new(Log { ring: Ring::new(kept), is_awaited: false });
        let places = Arc::new(Semaphore::new(MOST_READERS));
        Arc::new(LiveEvents { clock, start, log, news: Notify::new(), places })
    }

    /// Whether events are kept.
    pub fn is_on(&self) -> bool {
        self.clock.is_some()
    }

    /// How many readers there are.
    pub fn readers(&self) -> usize {
        MOST_READERS - self.places.available_permits()
    }

    /// Keeps the beginning or the end of an alert. One about the service or about a sink is an event of `operator`.
    pub(crate) fn tell_alert(&self, transition: &Transition, operator: &TenantId) {
        if let Some(clock) = &self.clock {
            self.keep(LiveEvent::of_alert(transition, operator, clock.now()));
        }
    }

    /// Keeps an event, and the one that follows it if it is the end of a dead letter.
    fn keep(&self, event: LiveEvent) {
        let dead_letter = event.dead_letter();
        let mut log = self.lock();
        let oldest = (log.ring.push(event), dead_letter.and_then(|event| log.ring.push(event)));
        let is_awaited = std::mem::take(&mut log.is_awaited);
        drop(log);
        if is_awaited {
            self.news.notify_waiters();
        }
        // Outside of the lock: its names may have to be freed.
        drop(oldest);
    }

    /// A panic elsewhere leaves a log that is still usable: each event changes it in one call.
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for LiveEvents {
    fn on(&self, event: &Event<'_>) {
        let Some(clock) = &self.clock else { return };
        if let Some(event) = LiveEvent::of(event, clock.as_ref()) {
            self.keep(event);
        }
    }
}

impl fmt::Debug for LiveEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveEvents").field("is_on", &self.is_on()).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;
