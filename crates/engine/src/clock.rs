//! Time (injected): the engine's only source of the current time and of timers.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use redrive_core::Timestamp;

/// A wait that can be kept in a struct and polled on any thread.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source of time and timers.
pub trait Clock: Send + Sync + 'static {
    /// The current time. Due times, deadlines and leases are measured in it. It may jump.
    fn now(&self) -> Timestamp;

    /// The time that the machine's clock shows, for reports: it may have been set while the process runs.
    fn wall(&self) -> Timestamp {
        self.now()
    }

    /// Time since some fixed point. It never jumps; durations are differences of it.
    fn elapsed(&self) -> Duration;

    /// Ends after `wait`.
    fn sleep(&self, wait: Duration) -> Sleep;
}

/// The time that the machine's clock showed at the start, plus the time that has passed since. Setting the machine's
/// clock while the process runs has no effect: no task is sent early and none ends before its time. Time during which
/// the machine is suspended counts.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    /// Since the epoch.
    started: Duration,
    since_boot: Duration,
}

impl SystemClock {
    /// Starts a clock from the machine's current time.
    pub fn start() -> Self {
        SystemClock { started: since_epoch(), since_boot: since_boot() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        timestamp(self.started + self.elapsed())
    }

    fn wall(&self) -> Timestamp {
        timestamp(since_epoch())
    }

    fn elapsed(&self) -> Duration {
        since_boot().saturating_sub(self.since_boot)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that waits on the machine's clock")]
    fn sleep(&self, wait: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(wait))
    }
}

fn timestamp(since_epoch: Duration) -> Timestamp {
    Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
fn since_epoch() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// The time since the machine booted. Not `Instant`, which stops while the machine is suspended.
#[cfg(target_os = "linux")]
pub fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The time since this was first called.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
pub fn since_boot() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_goes_on_from_what_the_machine_shows_at_the_start() {
        let before = timestamp(since_epoch());
        let clock = SystemClock::start();
        let after = timestamp(since_epoch());
        let elapsed = clock.elapsed();
        assert!(clock.now() >= before && clock.now() >= timestamp(clock.started + elapsed));
        assert!(timestamp(clock.started) <= after);
    }

    #[test]
    fn setting_the_machines_clock_changes_nothing() {
        let clock = SystemClock::start();
        let hour = Duration::from_secs(3600);
        // A process that started when the machine showed another time is the same as one whose machine was set since.
        let ahead = SystemClock { started: clock.started + hour, ..clock };
        let (shown, machine) = (ahead.now(), ahead.wall());
        assert!(shown.since(machine) > hour - Duration::from_secs(60));
    }
}
