//! Time, injected: the engine asks this and nothing else what time it is and how to wait.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use redrive_core::Timestamp;

/// A wait that can be kept in a struct and polled on any thread.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What time it is, and how to wait.
pub trait Clock: Send + Sync + 'static {
    /// The moment on the wall: due times, deadlines and leases are in it. It may jump.
    fn now(&self) -> Timestamp;

    /// Time since some fixed point; it never jumps. Durations are differences of this.
    fn elapsed(&self) -> Duration;

    /// Ends after `wait`.
    fn sleep(&self, wait: Duration) -> Sleep;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// The machine's clock, counting its elapsed time from now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    pub fn start() -> Self {
        SystemClock { started: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that waits on the machine's clock")]
    fn sleep(&self, wait: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(wait))
    }
}
