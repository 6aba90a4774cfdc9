//! The world of a run: the requests, the dependency and its outages.

use std::time::Duration;

use redrive_core::duration::duration_text;

use crate::latency::Latencies;

/// The world of a run, the same for every contender.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// How many clients make one request each.
    pub clients: u32,
    /// Their requests arrive at random over this time, evenly; all at once if it is zero.
    pub over: Duration,
    /// The calls that the dependency serves in a second.
    pub capacity: u32,
    /// The calls that may wait in front of it; one more is answered with 503 at once.
    pub queue: u32,
    /// How long it works on a call that it serves.
    pub latency: Latencies,
    /// When it is down, in order of time and apart from each other.
    pub outages: Vec<Outage>,
    /// The Retry-After of its 503s, in whole seconds (rounded up).
    pub retry_after: Option<Duration>,
}

/// A time in which the dependency serves no calls. Calls that it was working on when it began are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When it begins, from the beginning of the run.
    pub from: Duration,
    /// When it is over.
    pub to: Duration,
    /// How it looks to a caller.
    pub manner: OutageKind,
}

/// How an outage looks to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageKind {
    /// Connections are refused at once.
    Refuse,
    /// Connections are accepted, and nothing comes back: each call takes its whole timeout.
    Hang,
    /// Every call is answered 503 at once.
    Fail,
}

impl OutageKind {
    /// Every kind.
    pub const ALL: [OutageKind; 3] = [OutageKind::Refuse, OutageKind::Hang, OutageKind::Fail];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            OutageKind::Refuse => "refuse",
            OutageKind::Hang => "hang",
            OutageKind::Fail => "fail",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<OutageKind> {
        OutageKind::ALL.into_iter().find(|manner| manner.as_str() == name)
    }
}

/// Why a world cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A number is out of its range.
    #[error("{what} must be {least} to {most}, got {got}")]
    Number {
        /// The name of the value.
        what: &'static str,
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
        /// The value.
        got: u64,
    },
    /// A time is out of its range.
    #[error("{what} must be at most {}, got {}", duration_text(*most), duration_text(*got))]
    Time {
        /// The name of the value.
        what: &'static str,
        /// The longest.
        most: Duration,
        /// The value.
        got: Duration,
    },
    /// An outage ends before it begins, or at once.
    #[error("an outage must end after it begins, got {}", in_words(.0))]
    EmptyOutage(Outage),
    /// Two outages overlap.
    #[error("outages must be apart from each other, got {} and {}", in_words(.0), in_words(.1))]
    Overlap(Outage, Outage),
    /// A 99th percentile below the median, or a median of zero with another 99th percentile.
    #[error(
        "the latency's 99th percentile must be at least its median, and its median above zero, got {} and {}",
        duration_text(*median),
        duration_text(*p99)
    )]
    Latency {
        /// The median.
        median: Duration,
        /// The 99th percentile.
        p99: Duration,
    },
}

fn in_words(outage: &Outage) -> String {
    format!("{} to {}", duration_text(outage.from), duration_text(outage.to))
}

impl World {
    /// The most clients.
    pub const MAX_CLIENTS: u32 = 10_000_000;
    /// The largest capacity, in calls per second.
    pub const MAX_CAPACITY: u32 = 100_000_000;
    /// The longest queue.
    pub const MAX_QUEUE: u32 = 1_000_000_000;
    /// The most outages.
    pub const MAX_OUTAGES: usize = 16;
    /// The longest time over which requests arrive, and the latest end of an outage.
    pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// The outages in order of time, if everything is within its bounds.
    pub(crate) fn checked(mut self) -> Result<World, Invalid> {
        within("the number of clients", u64::from(self.clients), 1, Self::MAX_CLIENTS)?;
        within("the capacity", u64::from(self.capacity), 1, Self::MAX_CAPACITY)?;
        within("the queue", u64::from(self.queue), 0, Self::MAX_QUEUE)?;
        within("the number of outages", self.outages.len() as u64, 0, Self::MAX_OUTAGES as u32)?;
        at_most("the time over which requests arrive", self.over, Self::LONGEST)?;
        at_most("the Retry-After", self.retry_after.unwrap_or_default(), Self::LONGEST)?;
        self.latency.check()?;
        self.outages.sort_by_key(|outage| outage.from);
        for outage in &self.outages {
            at_most("the end of an outage", outage.to, Self::LONGEST)?;
            if outage.from >= outage.to {
                return Err(Invalid::EmptyOutage(*outage));
            }
        }
        match self.outages.windows(2).find(|pair| pair[0].to > pair[1].from) {
            Some(pair) => Err(Invalid::Overlap(pair[0], pair[1])),
            None => Ok(self),
        }
    }
}

/// Ten thousand requests at once, while the dependency is down for five seconds.
impl Default for World {
    fn default() -> Self {
        World {
            clients: 10_000,
            over: Duration::ZERO,
            capacity: 500,
            queue: 500,
            latency: Latencies::LogNormal { median: Duration::from_millis(50), p99: Duration::from_millis(400) },
            outages: vec![Outage { from: Duration::ZERO, to: Duration::from_secs(5), manner: OutageKind::Refuse }],
            retry_after: None,
        }
    }
}

pub(crate) fn within(what: &'static str, got: u64, least: u32, most: u32) -> Result<(), Invalid> {
    if (u64::from(least)..=u64::from(most)).contains(&got) {
        Ok(())
    } else {
        Err(Invalid::Number { what, least, most, got })
    }
}

pub(crate) fn at_most(what: &'static str, got: Duration, most: Duration) -> Result<(), Invalid> {
    if got <= most { Ok(()) } else { Err(Invalid::Time { what, most, got }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn outage(from: u32, to: u32) -> Outage {
        Outage { from: from * SECOND, to: to * SECOND, manner: OutageKind::Fail }
    }

    #[test]
    fn outages_are_put_in_order() {
        let world = World { outages: vec![outage(5, 7), outage(1, 5)], ..World::default() }.checked().unwrap();
        assert_eq!(world.outages, [outage(1, 5), outage(5, 7)]);
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_with_what_is_wrong() {
        let world = World::default;
        let cases = [
            (World { clients: 0, ..world() }, "the number of clients must be 1 to 10000000, got 0"),
            (World { clients: 10_000_001, ..world() }, "the number of clients must be 1 to 10000000, got 10000001"),
            (World { capacity: 0, ..world() }, "the capacity must be 1 to 100000000, got 0"),
            (World { over: Duration::MAX, ..world() }, "the time over which requests arrive must be at most 7d"),
            (World { outages: vec![outage(5, 5)], ..world() }, "an outage must end after it begins, got 5s to 5s"),
            (
                World { outages: vec![outage(3, 9), outage(1, 4)], ..world() },
                "outages must be apart from each other, got 1s to 4s and 3s to 9s",
            ),
            (World { outages: vec![outage(1, 2); 17], ..world() }, "the number of outages must be 0 to 16, got 17"),
            (World { outages: vec![outage(1, 604_801)], ..world() }, "the end of an outage must be at most"),
            (
                World { latency: Latencies::LogNormal { median: 2 * SECOND, p99: SECOND }, ..world() },
                "the latency's 99th percentile must be at least its median",
            ),
            (World { latency: Latencies::Constant(Duration::MAX), ..world() }, "the latency must be at most 15m"),
        ];
        for (world, expected) in cases {
            let message = world.checked().unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
