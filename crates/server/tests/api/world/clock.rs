//! A clock that only moves when a test says so.

use std::sync::Mutex;
use std::time::Duration;

use redrive_core::Timestamp;
use redrive_engine::clock::{Clock, Sleep};
use tokio::sync::{Notify, oneshot};

/// When every test begins: 2023-11-14T22:13:20Z.
pub(crate) const START: u64 = 1_700_000_000_000;

#[derive(Default)]
pub(crate) struct ManualClock {
    state: Mutex<State>,
    fell_asleep: Notify,
}

#[derive(Default)]
struct State {
    elapsed: Duration,
    sleepers: Vec<Sleeper>,
}

struct Sleeper {
    wait: Duration,
    until: Duration,
    wake: oneshot::Sender<()>,
}

impl ManualClock {
    /// Moves the time, and wakes those that have slept long enough.
    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.state.lock().unwrap();
        state.elapsed += by;
        let now = state.elapsed;
        for sleeper in state.sleepers.extract_if(.., |sleeper| sleeper.until <= now) {
            // A receiver that is gone has given up sleeping.
            sleeper.wake.send(()).unwrap_or_default();
        }
    }

    /// Ends once a task sleeps for exactly `wait`.
    pub(crate) async fn until_a_sleep_of(&self, wait: Duration) {
        self.until_sleeps_of(wait, 1).await;
    }

    /// Ends once this many tasks sleep for exactly `wait`.
    pub(crate) async fn until_sleeps_of(&self, wait: Duration, tasks: usize) {
        loop {
            let fell_asleep = self.fell_asleep.notified();
            let is_asleep = |sleeper: &&Sleeper| sleeper.wait == wait && !sleeper.wake.is_closed();
            if self.state.lock().unwrap().sleepers.iter().filter(is_asleep).count() >= tasks {
                return;
            }
            fell_asleep.await;
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(START).after(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.state.lock().unwrap().elapsed
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        let (wake, awake) = oneshot::channel();
        let mut state = self.state.lock().unwrap();
        let until = state.elapsed + wait;
        if wait.is_zero() {
            return Box::pin(std::future::ready(()));
        }
        state.sleepers.push(Sleeper { wait, until, wake });
        drop(state);
        self.fell_asleep.notify_waiters();
        Box::pin(async move { awake.await.unwrap_or_default() })
    }
}
