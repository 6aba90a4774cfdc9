//! A machine's clock, which may be wrong within bounds. It is the only clock of the machine's processes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive_core::Timestamp;
use redrive_engine::clock::{Clock, Sleep};

use super::lock;
use crate::executor::Executor;
use crate::moment::{Moment, START};

/// A machine's clock. It outlives the processes on the machine.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// The largest error, in microseconds.
    bound: i64,
    wrong: Arc<Mutex<Wrong>>,
}

/// The error of a clock: an offset, in microseconds, that drifts since a moment.
#[derive(Debug, Clone, Copy, Default)]
struct Wrong {
    offset: i64,
    ppm: i64,
    since: Moment,
}

impl Wrong {
    fn offset_at(&self, now: Moment, bound: i64) -> i64 {
        let elapsed = i64::try_from(now.since(self.since).as_micros()).unwrap_or(i64::MAX);
        let drifted = (i128::from(elapsed) * i128::from(self.ppm) / 1_000_000) as i64;
        self.offset.saturating_add(drifted).clamp(-bound, bound)
    }
}

impl Machine {
    pub(super) fn new(bound: Duration, first: f64) -> Self {
        let bound = i64::try_from(bound.as_micros()).unwrap_or(i64::MAX);
        let offset = (first * bound as f64) as i64;
        Machine { bound, wrong: Arc::new(Mutex::new(Wrong { offset, ..Wrong::default() })) }
    }

    /// Lets the clock jump to this part of its bound.
    pub(super) fn jump(&self, now: Moment, to: f64) {
        let mut wrong = lock(&self.wrong);
        *wrong = Wrong { offset: (to * self.bound as f64) as i64, ppm: wrong.ppm, since: now };
    }

    /// Lets the clock drift from its current offset.
    pub(super) fn drift(&self, now: Moment, ppm: i64) {
        let mut wrong = lock(&self.wrong);
        *wrong = Wrong { offset: wrong.offset_at(now, self.bound), ppm, since: now };
    }

    fn shows(&self, now: Moment) -> Timestamp {
        let offset = lock(&self.wrong).offset_at(now, self.bound);
        let micros = now.0.saturating_add_signed(offset);
        // A clock that is behind at the beginning of the world shows a time before it.
        let before =
            if offset < 0 { now.0.saturating_add_signed(offset) == 0 && now.0 < offset.unsigned_abs() } else { false };
        let early = if before { offset.unsigned_abs() - now.0 } else { 0 };
        Timestamp::from_millis(START.as_millis() + micros / 1_000 - early.div_ceil(1_000))
    }
}

/// A machine's clock, as the [`Clock`] of a process on it.
pub(super) struct MachineClock {
    pub(super) machine: Machine,
    pub(super) executor: Executor,
}

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        self.machine.shows(self.executor.now())
    }

    fn elapsed(&self) -> Duration {
        self.executor.now().since(Moment::default())
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        Box::pin(self.executor.sleep(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Moment = Moment(60_000_000);

    fn off_by(machine: &Machine, now: Moment) -> i64 {
        machine.shows(now).as_millis() as i64 - now.wall().as_millis() as i64
    }

    #[test]
    fn a_clock_jumps_and_drifts_within_its_bound() {
        let machine = Machine::new(Duration::from_secs(2), 0.0);
        assert_eq!(off_by(&machine, MINUTE), 0);
        machine.jump(MINUTE, -0.5);
        assert_eq!(off_by(&machine, MINUTE), -1_000);
        machine.drift(MINUTE, 10_000);
        assert_eq!(off_by(&machine, MINUTE.after(Duration::from_secs(60))), -400);
        assert_eq!(off_by(&machine, MINUTE.after(Duration::from_secs(6_000))), 2_000);
        machine.drift(MINUTE.after(Duration::from_secs(6_000)), 0);
        assert_eq!(off_by(&machine, MINUTE.after(Duration::from_secs(12_000))), 2_000);
    }

    #[test]
    fn a_clock_that_is_behind_at_the_beginning_shows_the_time_before() {
        let machine = Machine::new(Duration::from_secs(2), -1.0);
        assert_eq!(off_by(&machine, Moment(0)), -2_000);
        assert_eq!(off_by(&machine, Moment(500_000)), -2_000);
    }
}
