//! Alerts: what the service tells people about by itself.
//!
//! [`Alerts`] hears of the engine's events as a sink. Its loop ([`run`]) reads the state of the service every few seconds while
//! something happens, compares it with the rules (`redrive_core::alerts`), and tells the sinks. What it tells them is
//! a durable task of Redrive itself, of the tenant [`SYSTEM_TENANT`], so that it survives crashes and is retried; alerts about the
//! store are sent directly, because the store may be what fails. A dead letter's alert counts as raised only once its
//! notification is durable ([`redrive_engine::AlertRelay`]).
//!
//! There are no alerts about alerts: what fails of the tenant's own tasks is the signal `sink-failing`, which is logged and shown,
//! and which no sink is told of.
//!
//! | file | its job |
//! | --- | --- |
//! | `catalogue` | the rules in words, and for Prometheus |
//! | `settings` | rules, sinks and times |
//! | `noted` | what events said since the loop looked last |
//! | `readings` | the values of all signals now |
//! | `notifier` | the loop |
//! | `delivery` | how a notification reaches its sink |
//! | `document` | a notification as each kind of sink wants it |
//! | `told` | what sinks were told, for the process after this one |
//! | `recent` | what happened in the window of a rule |
//! | `bounded` | a limit on the time that alerts wait for something |
//! | `failure` | a part of the service has failed, and the process exits |
//! | `silences` | alerts that sinks are not told of for a time |
//! | `test` | a notification that tests a sink |

mod bounded;
pub mod catalogue;
mod delivery;
mod document;
mod failure;
mod noted;
mod notifier;
mod readings;
mod recent;
mod settings;
pub(crate) mod silences;
mod test;
mod told;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::TenantId;
use redrive_core::alerts::{Alert, Board, Severity, Signal};
use redrive_engine::events::{Event, Sink};
use redrive_engine::{AlertRelay, Relaying, Watch};
use tokio::sync::Notify;

pub use failure::tell_of_failure;
use noted::Noted;
pub use notifier::run;
pub use settings::{Settings, SinkKind, SinkName, SinkSettings, Target};
pub use silences::Silence;
pub(crate) use test::test_sink;

/// The tenant of the tasks that deliver notifications. Callers have no access to it.
pub const SYSTEM_TENANT: &str = "redrive";

/// The alerts of this process. The same value is a sink of the engine, its relay of alerts, and part of the server's `App`.
pub struct Alerts {
    settings: Settings,
    noted: Mutex<Noted>,
    board: Mutex<Board>,
    /// Notified when there is something to look at.
    changed: Notify,
    /// Notified when what waits is to be told at once, because the process ends.
    hurry: Notify,
    /// How many of the dead letters that events told of are sure to be told to all sinks.
    relayed: Watch<u64>,
    pub(crate) system: TenantId,
}

impl Alerts {
    /// Alerts with these settings.
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Alerts {
            settings,
            noted: Mutex::default(),
            board: Mutex::default(),
            changed: Notify::new(),
            hurry: Notify::new(),
            relayed: Watch::new(0),
            system: TenantId::try_new(SYSTEM_TENANT).unwrap_or_else(|_| TenantId::default_tenant()),
        })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What fires and what has fired, newest first.
    pub(crate) fn list(&self) -> (Vec<Alert>, Vec<Alert>) {
        let board = lock(&self.board);
        let mut firing: Vec<Alert> = board.firing().cloned().collect();
        firing.sort_by_key(|alert| std::cmp::Reverse((alert.severity, alert.fired_at)));
        (firing, board.past().cloned().collect())
    }

    /// How many alerts of each rule fire, with the severity of the rule.
    pub(crate) fn firing_counts(&self) -> Vec<(Signal, Severity, usize)> {
        let board = lock(&self.board);
        let rules = &self.settings.rules;
        let count = |signal| board.firing().filter(|alert| alert.signal == signal).count();
        Signal::ALL.map(|signal| (signal, rules.of(signal).severity, count(signal))).into()
    }

    /// Whether it is a relay: whether dead letters are to be told to a sink.
    pub fn relays(&self) -> bool {
        self.settings.tells_of_dead_letters()
    }

    /// Has the loop look soon, because something was changed that no event tells of.
    pub(crate) fn look_soon(&self) {
        self.changed.notify_one();
    }
}

impl Sink for Alerts {
    fn on(&self, event: &Event<'_>) {
        if Noted::notes(event) {
            lock(&self.noted).note(event, &self.system);
        }
        if Noted::calls_for_a_look(event) {
            self.changed.notify_one();
        }
    }
}

impl AlertRelay for Alerts {
    fn relayed(&self, is_stopping: bool) -> Relaying<'_> {
        let noted = lock(&self.noted).dead_letters();
        if is_stopping {
            self.hurry.notify_one();
        }
        Box::pin(self.relayed.until(move |relayed| relayed >= noted))
    }
}

/// A panic elsewhere leaves values that are still usable: each change is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Alerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alerts").field("settings", &self.settings).finish_non_exhaustive()
    }
}
