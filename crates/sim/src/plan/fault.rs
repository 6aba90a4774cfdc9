//! Faults: what goes wrong, where and when.

use std::time::Duration;

use crate::moment::Moment;

/// Something that goes wrong.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Its number; what it draws while it lasts depends on this and on the plan's seed.
    pub number: usize,
    /// When it begins.
    pub at: Moment,
    /// How long it lasts.
    pub lasts: Duration,
    /// What it is.
    pub kind: Kind,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A node dies at its `effects`-th effect from then on, and comes back after a while.
    Crash {
        /// Which node.
        node: usize,
        /// How many effects it still has.
        effects: u32,
    },
    /// A node is stopped and comes back after a while.
    Stop {
        /// Which node.
        node: usize,
    },
    /// A node stands still from its `effects`-th effect from then on.
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
        /// Where to, as a part of the bound, from -1 to 1.
        to: f64,
    },
    /// A machine's clock goes wrong slowly.
    Drift {
        /// Which node's.
        node: usize,
        /// By how many millionths.
        ppm: i64,
    },
    /// The store is in trouble.
    Store {
        /// For this node, or for all.
        node: Option<usize>,
        /// What trouble.
        trouble: Trouble,
        /// How likely a call is to meet it.
        chance: f64,
    },
    /// A dependency is in a bad mood.
    Dependency {
        /// Which one.
        dependency: usize,
        /// What mood.
        mood: Mood,
    },
    /// A node's schedule is lost.
    LoseSchedule {
        /// Which node's.
        node: usize,
    },
}

/// What can be wrong with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// It is late: the call or the answer takes its time.
    Late,
    /// It fails, and nothing happens.
    Fails,
    /// It commits, and the connection is lost before the answer: the caller does not know.
    LosesAnswer,
    /// It loses power: what it had not committed is gone, and it is away for a while.
    PowerLoss,
}

/// How a dependency behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mood {
    /// It answers 200, soon.
    Well,
    /// It does a bit of everything.
    Mixed,
    /// Nobody listens.
    Down,
    /// It takes requests and never answers.
    Stalls,
    /// It answers, but so slowly that the timeout may come first.
    Trickles,
    /// It asks for patience with Retry-After.
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
    /// Its certificate is not to be trusted.
    Untrusted,
    /// It answers, but it takes long to connect to, and sometimes too long.
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
    /// Every mood that a fault may put a dependency in.
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
    /// How the bad dependencies of a crowd are, all the time.
    pub const NEIGHBOURS: [Mood; 7] =
        [Mood::Slow, Mood::Slow, Mood::Stalls, Mood::Stalls, Mood::Closed, Mood::Resets, Mood::Nameless];
}
