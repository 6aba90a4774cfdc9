//! Faults: what fails, where and when.

use std::time::Duration;

use crate::moment::Moment;

/// One fault.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Its number; its own random draws depend on this and on the plan's seed.
    pub number: usize,
    /// When it begins.
    pub at: Moment,
    /// How long it lasts.
    pub lasts: Duration,
    /// The kind of fault.
    pub kind: Kind,
}

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A node dies at its `effects`-th effect from then on, and is restarted after a while.
    Crash {
        /// Which node.
        node: usize,
        /// How many effects it still has.
        effects: u32,
    },
    /// A node is stopped and restarted after a while.
    Stop {
        /// Which node.
        node: usize,
    },
    /// A node is suspended from its `effects`-th effect from then on.
    Pause {
        /// Which node.
        node: usize,
        /// How many effects it still has.
        effects: u32,
    },
    /// A machine's clock jumps, within the world's bound.
    Jump {
        /// Which node's.
        node: usize,
        /// The new offset, as a part of the bound, from -1 to 1.
        to: f64,
    },
    /// A machine's clock drifts.
    Drift {
        /// Which node's.
        node: usize,
        /// The drift, in millionths.
        ppm: i64,
    },
    /// The store has a fault.
    Store {
        /// For this node, or for all.
        node: Option<usize>,
        /// The kind of fault.
        trouble: Trouble,
        /// The probability that a call is affected.
        chance: f64,
    },
    /// A dependency behaves badly.
    Dependency {
        /// Which one.
        dependency: usize,
        /// Its behaviour.
        mood: Mood,
    },
    /// A sink of alerts behaves badly.
    Sink {
        /// Which one.
        sink: usize,
        /// Its behaviour.
        mood: Mood,
    },
    /// A node's schedule is lost.
    LoseSchedule {
        /// Which node's.
        node: usize,
    },
}

/// A fault of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// The store is slow: the call or the answer is delayed.
    Late,
    /// Calls fail without effect.
    Fails,
    /// Calls commit, and the connection is lost before the answer: the caller does not know the result.
    LosesAnswer,
    /// The store loses power: calls that were not committed are lost, and it is unavailable for a while.
    PowerLoss,
}

/// How a dependency behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mood {
    /// It answers 200 quickly.
    Well,
    /// It mixes all of the behaviours.
    Mixed,
    /// It is down: no process listens.
    Down,
    /// It takes requests and never answers.
    Stalls,
    /// It answers, but so slowly that the timeout may come first.
    Trickles,
    /// It answers with Retry-After.
    Throttles,
    /// It answers 5xx.
    Errs,
    /// It answers 4xx.
    Refuses,
    /// It does the work and answers after the timeout.
    TooLate,
    /// It does the work and the connection breaks.
    Resets,
    /// Its name cannot be resolved.
    Nameless,
    /// Its certificate is not trusted.
    Untrusted,
    /// It answers, but connecting takes long, and sometimes too long.
    SlowToConnect,
    /// It answers after a few seconds.
    Slow,
    /// It answers within milliseconds.
    Quick,
    /// It refuses every connection at once.
    Closed,
    /// It mostly answers within milliseconds, and sometimes not at all.
    Fickle,
}

impl Mood {
    /// Every behaviour that a fault may give to a dependency.
    pub const BAD: [Mood; 13] = [
        Mood::Mixed,
        Mood::Down,
        Mood::Stalls,
        Mood::Trickles,
        Mood::Throttles,
        Mood::Errs,
        Mood::Refuses,
        Mood::TooLate,
        Mood::Resets,
        Mood::Nameless,
        Mood::Untrusted,
        Mood::SlowToConnect,
        Mood::Slow,
    ];
    /// Every behaviour that a fault may give to a sink of alerts.
    pub const OF_SINKS: [Mood; 12] = [
        Mood::Down,
        Mood::Down,
        Mood::Closed,
        Mood::Stalls,
        Mood::Errs,
        Mood::Errs,
        Mood::TooLate,
        Mood::Resets,
        Mood::Nameless,
        Mood::Refuses,
        Mood::SlowToConnect,
        Mood::Slow,
    ];
    /// The behaviours of the bad dependencies of a crowd, all the time.
    pub const NEIGHBOURS: [Mood; 7] =
        [Mood::Slow, Mood::Slow, Mood::Stalls, Mood::Stalls, Mood::Closed, Mood::Resets, Mood::Nameless];
}
