//! The dependency: a queue, a number of calls that it serves in a second, and times when it is down.
//!
//! It is one virtual server that begins a call every 1/capacity seconds and works on as many at once as that takes. So
//! the length of its queue is known from the moment at which the next call could begin, and a call costs a few
//! operations however many others there are.
//!
//! It does not notice that a caller has gone. A call whose caller timed out while it waited is served like any other, and
//! nobody hears of it: that is how a storm of retries keeps a dependency down after what had felled it is over.

use std::time::Duration;

use crate::latency::Prepared;
use crate::world::{Manner, World};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was served.
    Served,
    /// It was answered 503.
    Unavailable,
    /// Nobody was there.
    Refused,
    /// The dependency went down while it worked on it.
    Reset,
    /// No answer came in time.
    TimedOut,
}

/// A call's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// When, in milliseconds.
    pub(crate) at: u32,
    /// How.
    pub(crate) how: Ending,
}

/// What the dependency saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Calls while it was down.
    pub(crate) while_down: u64,
    /// Calls that did not fit into the queue.
    pub(crate) rejected: u64,
    /// Calls that it served to the end.
    pub(crate) served: u64,
    /// Of these, the ones whose caller had gone.
    pub(crate) wasted: u64,
}

#[derive(Debug, Clone, Copy)]
struct Down {
    from: u32,
    to: u32,
    manner: Manner,
}

/// The dependency, as it is now.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// Between the beginnings of two calls, in nanoseconds.
    interval: u64,
    queue: u64,
    latencies: Prepared,
    outages: Vec<Down>,
    /// The first outage that is not over yet.
    next: usize,
    /// When the next call could begin, in nanoseconds.
    next_free: u64,
    pub(crate) seen: Seen,
}

const NANOS_PER_MILLI: u64 = 1_000_000;

impl Dependency {
    pub(crate) fn new(world: &World) -> Self {
        let down = |outage: &crate::world::Outage| Down {
            from: millis(outage.from),
            to: millis(outage.to),
            manner: outage.manner,
        };
        Dependency {
            interval: (1_000_000_000 / u64::from(world.capacity)).max(1),
            queue: u64::from(world.queue),
            latencies: world.latency.prepared(),
            outages: world.outages.iter().map(down).collect(),
            next: 0,
            next_free: 0,
            seen: Seen::default(),
        }
    }

    /// Takes a call at `now` whose caller waits for `timeout` milliseconds. If it is worked on, then for as many
    /// nanoseconds as `latency` says: a draw that most calls of a storm can do without.
    pub(crate) fn call(&mut self, now: u32, timeout: u32, latency: impl FnOnce(&Prepared) -> u64) -> Ended {
        self.come_back(now);
        let gives_up = now.saturating_add(timeout);
        let outage = self.outages.get(self.next).copied();
        if let Some(down) = outage.filter(|down| down.from <= now) {
            self.seen.while_down += 1;
            return match down.manner {
                Manner::Refuse => Ended { at: now, how: Ending::Refused },
                Manner::Fail => Ended { at: now, how: Ending::Unavailable },
                Manner::Hang => Ended { at: gives_up, how: Ending::TimedOut },
            };
        }
        let arrives = u64::from(now) * NANOS_PER_MILLI;
        let begins = self.next_free.max(arrives);
        if (begins - arrives).div_ceil(self.interval) > self.queue {
            self.seen.rejected += 1;
            return Ended { at: now, how: Ending::Unavailable };
        }
        self.next_free = begins + self.interval;
        let done = u32::try_from((begins + latency(&self.latencies)).div_ceil(NANOS_PER_MILLI)).unwrap_or(u32::MAX);
        if let Some(down) = outage.filter(|down| down.from < done) {
            return cut_off(down, gives_up);
        }
        self.seen.served += 1;
        if done > gives_up {
            self.seen.wasted += 1;
            return Ended { at: gives_up, how: Ending::TimedOut };
        }
        Ended { at: done, how: Ending::Served }
    }

    /// After an outage it begins with an empty queue.
    fn come_back(&mut self, now: u32) {
        while let Some(down) = self.outages.get(self.next).filter(|down| down.to <= now) {
            self.next_free = self.next_free.min(u64::from(down.to) * NANOS_PER_MILLI);
            self.next += 1;
        }
    }
}

/// What becomes of a call that was being worked on, or was in the queue, when an outage began.
fn cut_off(down: Down, gives_up: u32) -> Ended {
    if gives_up <= down.from {
        return Ended { at: gives_up, how: Ending::TimedOut };
    }
    match down.manner {
        Manner::Refuse => Ended { at: down.from, how: Ending::Reset },
        Manner::Fail => Ended { at: down.from, how: Ending::Unavailable },
        Manner::Hang => Ended { at: gives_up, how: Ending::TimedOut },
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
    fn dependency(outages: &[(u64, u64, Manner)]) -> Dependency {
        let outage = |&(from, to, manner): &(u64, u64, Manner)| Outage {
            from: Duration::from_millis(from),
            to: Duration::from_millis(to),
            manner,
        };
        let outages = outages.iter().map(outage).collect();
        Dependency::new(&World { capacity: 10, queue: 2, outages, ..World::default() })
    }

    const LATENCY: fn(&Prepared) -> u64 = |_| 50 * NANOS_PER_MILLI;
    const TIMEOUT: u32 = 220;

    fn served(at: u32) -> Ended {
        Ended { at, how: Ending::Served }
    }

    fn unavailable(at: u32) -> Ended {
        Ended { at, how: Ending::Unavailable }
    }

    fn timed_out(at: u32) -> Ended {
        Ended { at, how: Ending::TimedOut }
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
        assert_eq!(dependency.seen, Seen { rejected: 3, served: 5, ..Seen::default() });
    }

    #[test]
    fn a_call_whose_caller_has_gone_costs_as_much_as_any_other() {
        let mut dependency = dependency(&[]);
        let calls: Vec<_> = [0, 0, 0].map(|now| dependency.call(now, TIMEOUT, LATENCY)).into();
        assert_eq!(calls, [served(50), served(150), timed_out(220)]);
        assert_eq!(dependency.call(250, TIMEOUT, LATENCY), served(350), "the third was worked on until then");
        assert_eq!(dependency.seen, Seen { served: 4, wasted: 1, ..Seen::default() });
    }

    #[test]
    fn an_outage_shows_itself_in_its_manner_and_ends() {
        for (manner, during) in [
            (Manner::Refuse, Ended { at: 1_000, how: Ending::Refused }),
            (Manner::Fail, unavailable(1_000)),
            (Manner::Hang, timed_out(1_220)),
        ] {
            let mut dependency = dependency(&[(1_000, 2_000, manner)]);
            assert_eq!(dependency.call(1_000, TIMEOUT, LATENCY), during, "{manner:?}");
            assert_eq!(dependency.call(1_999, TIMEOUT, LATENCY).how, during.how, "{manner:?}");
            assert_eq!(dependency.call(2_000, TIMEOUT, LATENCY), served(2_050), "{manner:?}");
            assert_eq!(dependency.seen, Seen { while_down: 2, served: 1, ..Seen::default() }, "{manner:?}");
        }
    }

    #[test]
    fn what_was_being_worked_on_when_an_outage_began_is_lost_and_so_is_the_queue() {
        for (manner, cut) in [
            (Manner::Refuse, Ended { at: 1_000, how: Ending::Reset }),
            (Manner::Fail, unavailable(1_000)),
            (Manner::Hang, timed_out(1_180)),
        ] {
            let mut dependency = dependency(&[(1_000, 1_010, manner)]);
            let calls: Vec<_> = [960, 960, 960].map(|now| dependency.call(now, TIMEOUT, LATENCY)).into();
            assert_eq!(calls, [cut; 3], "{manner:?}");
            assert_eq!(dependency.call(1_010, TIMEOUT, LATENCY), served(1_060), "{manner:?}");
        }
        let mut dependency = dependency(&[(1_000, 1_010, Manner::Refuse)]);
        assert_eq!(dependency.call(960, 30, LATENCY), timed_out(990), "its caller had gone before");
    }

    #[test]
    fn there_may_be_several_outages() {
        let mut dependency = dependency(&[(100, 200, Manner::Fail), (300, 400, Manner::Refuse)]);
        let how: Vec<_> = [0, 150, 200, 350, 400].map(|now| dependency.call(now, TIMEOUT, LATENCY).how).into();
        use Ending::{Refused, Served, Unavailable};
        assert_eq!(how, [Served, Unavailable, Served, Refused, Served]);
    }
}
