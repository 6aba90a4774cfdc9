//! Admission: how much of the scarce capacity a lane may use now, and the reason for the limit.
//!
//! The scarce capacity is slot *time*: an attempt holds a slot while it resolves a name, connects, sends and receives.
//! So one slot is also one look-up, one socket in use and one body in memory. A lane whose calls take 4 s uses a slot
//! 4,000 times as much as one whose calls take 1 ms. Sharing slots evenly is therefore not enough: beside 1,000 slow
//! lanes it would leave a healthy one 4 of 4,096. Three rules together isolate lanes from one another:
//!
//! 1. **Pools** ([`quota`]). Slow lanes together hold at most half of the capacity, unknown lanes (without recent
//!    measurements) at most a quarter, fast ones at most three quarters beyond the first slots of each.
//! 2. **A dynamic threshold** ([`quota::share`]). A lane takes a slot while it holds fewer than are free in its pool. With
//!    `n` lanes that want more than they get, each holds about `1/(n + 1)` of the pool and as much stays free, so a lane
//!    that had nothing gets a slot at once. The same threshold, weighted, holds for all lanes of a tenant together:
//!    inventing dependency names does not buy a larger share.
//! 3. **A slow start** ([`pace`]). An unknown lane begins with 2 slots and gets one more with each attempt that ends
//!    quickly, which doubles them with every round.
//!
//! A lane that gets no slot waits in a queue; lanes that hold none go before lanes that hold some. So a lane with due
//! work waits at most ⌈lanes before it ÷ slots of its pool⌉ × the longest attempt in that pool. In the pool of fast
//! lanes an attempt takes at most [`pace::SLOW_AFTER`]: a lane with an older one is slow.
//!
//! How much is claimed *ahead* of free slots is [`horizon`]. [`start_rate`] limits how fast all slow lanes together start
//! attempts, which adds at most half of an attempt's time to a slow lane's wait.
//!
//! Everything here is a value: time is an argument. Not here: what is due when (`schedule`), what is on the wire
//! (`slots`). Guards that limit a lane for other reasons (budget, breaker, pause) belong here.

pub(crate) mod horizon;
pub(crate) mod pace;
pub(crate) mod quota;
pub(crate) mod start_rate;

/// The pool in which a lane's slots are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pool {
    /// The lane's attempts end quickly.
    Fast,
    /// There is no measurement of the lane, or none that is recent.
    Unknown,
    /// The lane's attempts hold slots for long, or fail without an answer.
    Slow,
}

impl Pool {
    /// Every pool.
    pub(crate) const ALL: [Pool; 3] = [Pool::Fast, Pool::Unknown, Pool::Slow];

    /// The next pool in the round.
    pub(crate) fn next(self) -> Pool {
        match self {
            Pool::Fast => Pool::Unknown,
            Pool::Unknown => Pool::Slow,
            Pool::Slow => Pool::Fast,
        }
    }
}
