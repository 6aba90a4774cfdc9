//! The dependency: a queue, a number of calls that it serves in a second, and times when it is down.
//!
//! It is one virtual server that begins a call every 1/capacity seconds and works on as many at once as that takes. So
//! the length of its queue is known from the moment at which the next call could begin, and a call costs a few
//! operations however many others there are.
//!
//! It does not notice that a caller has timed out. A call whose caller timed out while it waited is served like any
//! other, and the work is wasted. That is how a storm of retries keeps a dependency down after the outage itself is
//! over.

use std::time::Duration;

use crate::latency::LatencyDistribution;
use crate::world::{OutageKind, World};

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// The call was served.
    Served,
    /// The call was answered 503.
    Unavailable,
    /// The connection was refused.
    Refused,
    /// The dependency went down while it worked on the call.
    Reset,
    /// No answer came in time.
    TimedOut,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallEnd {
    /// Its time, in milliseconds.
    pub(crate) at: u32,
    /// Its outcome.
    pub(crate) how: CallOutcome,
}

/// The calls that the dependency counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DependencyCounts {
    /// Calls while it was down.
    pub(crate) while_down: u64,
    /// Calls that did not fit into the queue.
    pub(crate) rejected: u64,
    /// Calls that it served to the end.
    pub(crate) served: u64,
    /// Of these, those whose caller had timed out.
    pub(crate) wasted: u64,
}

#[derive(Debug, Clone, Copy)]
struct OutageWindow {
    from: u32,
    to: u32,
    manner: OutageKind,
}

/// The dependency, as it is now.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// Between the beginnings of two calls, in nanoseconds.
    interval: u64,
    queue: u64,
    latencies: LatencyDistribution,
    outages: Vec<OutageWindow>,
    /// The first outage that is not over yet.
    next: usize,
    /// When the next call could begin, in nanoseconds.
    next_free: u64,
    pub(crate) seen: DependencyCounts,
}

const NANOS_PER_MILLI: u64 = 1_000_000;

impl Dependency {
    pub(crate) fn new(world: &World) -> Self {
        let down = |outage: &crate::world::Outage| OutageWindow {
            from: millis(outage.from),
            to: millis(outage.to),
            manner: outage.manner,
        };
        Dependency {
            interval: (1_000_000_000 / u64::from(world.capacity)).max(1),
            queue: u64::from(world.queue),
            latencies: world.latency.distribution(),
            outages: world.outages.iter().map(down).collect(),
            next: 0,
            next_free: 0,
            seen: DependencyCounts::default(),
        }
    }

    /// Takes a call at `now` whose caller waits for `timeout` milliseconds. If it is worked on, then for as many
    /// nanoseconds as `latency` says: a function, because most calls of a storm do not need the draw.
    pub(crate) fn call(
        &mut self,
        now: u32,
        timeout: u32,
        latency: impl FnOnce(&LatencyDistribution) -> u64,
    ) -> CallEnd {
        self.come_back(now);
        let gives_up = now.saturating_add(timeout);
        let outage = self.outages.get(self.next).copied();
        if let Some(down) = outage.filter(|down| down.from <= now) {
            self.seen.while_down += 1;
            return match down.manner {
                OutageKind::Refuse => CallEnd { at: now, how: CallOutcome::Refused },
                OutageKind::Fail => CallEnd { at: now, how: CallOutcome::Unavailable },
                OutageKind::Hang => CallEnd { at: gives_up, how: CallOutcome::TimedOut },
            };
        }
        let arrives = u64::from(now) * NANOS_PER_MILLI;
        let begins = self.next_free.max(arrives);
        if (begins - arrives).div_ceil(self.interval) > self.queue {
            self.seen.rejected += 1;
            return CallEnd { at: now, how: CallOutcome::Unavailable };
        }
        self.next_free = begins + self.interval;
        let done = u32::try_from((begins + latency(&self.latencies)).div_ceil(NANOS_PER_MILLI)).unwrap_or(u32::MAX);
        if let Some(down) = outage.filter(|down| down.from < done) {
            return cut_off(down, gives_up);
        }
        self.seen.served += 1;
        if done > gives_up {
            self.seen.wasted += 1;
            return CallEnd { at: gives_up, how: CallOutcome::TimedOut };
        }
        CallEnd { at: done, how: CallOutcome::Served }
    }

    /// After an outage it begins with an empty queue.
    fn come_back(&mut self, now: u32) {
        while let Some(down) = self.outages.get(self.next).filter(|down| down.to <= now) {
            self.next_free = self.next_free.min(u64::from(down.to) * NANOS_PER_MILLI);
            self.next += 1;
        }
    }
}

/// The end of a call that was being served, or was in the queue, when an outage began.
fn cut_off(down: OutageWindow, gives_up: u32) -> CallEnd {
    if gives_up <= down.from {
        return CallEnd { at: gives_up, how: CallOutcome::TimedOut };
    }
    match down.manner {
        OutageKind::Refuse => CallEnd { at: down.from, how: CallOutcome::Reset },
        OutageKind::Fail => CallEnd { at: down.from, how: CallOutcome::Unavailable },
        OutageKind::Hang => CallEnd { at: gives_up, how: CallOutcome::TimedOut },
    }
}

/// A duration in whole milliseconds, rounded up.
pub(crate) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Outage;

    /// Ten calls a second, two of them waiting; 50 ms each.
    fn dependency(outages: &[(u64, u64, OutageKind)]) -> Dependency {
        let outage = |&(from, to, manner): &(u64, u64, OutageKind)| Outage {
            from: Duration::from_millis(from),
            to: Duration::from_millis(to),
            manner,
        };
        let outages = outages.iter().map(outage).collect();
        Dependency::new(&World { capacity: 10, queue: 2, outages, ..World::default() })
    }

    const LATENCY: fn(&LatencyDistribution) -> u64 = |_| 50 * NANOS_PER_MILLI;
    const TIMEOUT: u32 = 220;

    fn served(at: u32) -> CallEnd {
        CallEnd { at, how: CallOutcome::Served }
    }

    fn unavailable(at: u32) -> CallEnd {
        CallEnd { at, how: CallOutcome::Unavailable }
    }

    fn timed_out(at: u32) -> CallEnd {
        CallEnd { at, how: CallOutcome::TimedOut }
    }

    #[test]
    fn calls_begin_one_after_the_other_and_what_does_not_fit_into_the_queue_is_rejected() {
        let mut dependency = dependency(&[]);
        let calls: Vec<_> = [1_000, 1_000, 1_000, 1_000, 1_001, 1_100, 1_100, 2_000]
            .map(|now| dependency.call(now, 10_000, LATENCY))
            .into();
        let expected = [
            served(1_050),
            served(1_150),
            served(1_250),
            unavailable(1_000),
            unavailable(1_001),
            served(1_350),
            unavailable(1_100),
            served(2_050),
        ];
        assert_eq!(calls, expected);
        assert_eq!(dependency.seen, DependencyCounts { rejected: 3, served: 5, ..DependencyCounts::default() });
    }

    #[test]
    fn a_call_whose_caller_has_gone_costs_as_much_as_any_other() {
        let mut dependency = dependency(&[]);
        let calls: Vec<_> = [0, 0, 0].map(|now| dependency.call(now, TIMEOUT, LATENCY)).into();
        assert_eq!(calls, [served(50), served(150), timed_out(220)]);
        assert_eq!(dependency.call(250, TIMEOUT, LATENCY), served(350), "the third was worked on until then");
        assert_eq!(dependency.seen, DependencyCounts { served: 4, wasted: 1, ..DependencyCounts::default() });
    }

    #[test]
    fn an_outage_shows_itself_in_its_manner_and_ends() {
        for (manner, during) in [
            (OutageKind::Refuse, CallEnd { at: 1_000, how: CallOutcome::Refused }),
            (OutageKind::Fail, unavailable(1_000)),
            (OutageKind::Hang, timed_out(1_220)),
        ] {
            let mut dependency = dependency(&[(1_000, 2_000, manner)]);
            assert_eq!(dependency.call(1_000, TIMEOUT, LATENCY), during, "{manner:?}");
            assert_eq!(dependency.call(1_999, TIMEOUT, LATENCY).how, during.how, "{manner:?}");
            assert_eq!(dependency.call(2_000, TIMEOUT, LATENCY), served(2_050), "{manner:?}");
            assert_eq!(
                dependency.seen,
                DependencyCounts { while_down: 2, served: 1, ..DependencyCounts::default() },
                "{manner:?}"
            );
        }
    }

    #[test]
    fn what_was_being_worked_on_when_an_outage_began_is_lost_and_so_is_the_queue() {
        for (manner, cut) in [
            (OutageKind::Refuse, CallEnd { at: 1_000, how: CallOutcome::Reset }),
            (OutageKind::Fail, unavailable(1_000)),
            (OutageKind::Hang, timed_out(1_180)),
        ] {
            let mut dependency = dependency(&[(1_000, 1_010, manner)]);
            let calls: Vec<_> = [960, 960, 960].map(|now| dependency.call(now, TIMEOUT, LATENCY)).into();
            assert_eq!(calls, [cut; 3], "{manner:?}");
            assert_eq!(dependency.call(1_010, TIMEOUT, LATENCY), served(1_060), "{manner:?}");
        }
        let mut dependency = dependency(&[(1_000, 1_010, OutageKind::Refuse)]);
        assert_eq!(dependency.call(960, 30, LATENCY), timed_out(990), "its caller had gone before");
    }

    #[test]
    fn there_may_be_several_outages() {
        let mut dependency = dependency(&[(100, 200, OutageKind::Fail), (300, 400, OutageKind::Refuse)]);
        let how: Vec<_> = [0, 150, 200, 350, 400].map(|now| dependency.call(now, TIMEOUT, LATENCY).how).into();
        use CallOutcome::{Refused, Served, Unavailable};
        assert_eq!(how, [Served, Unavailable, Served, Refused, Served]);
    }
}
