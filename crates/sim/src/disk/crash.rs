//! Where a run may be cut off, and what is found then.

use std::fmt;

use super::fate::Fate;
use super::image::Image;

/// A place between two events of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashPoint {
    /// How many events took place before.
    pub at: usize,
    /// How it lies to the syncs.
    pub moment: Moment,
}

/// How a crash point lies to the syncs of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The next thing would have been a sync.
    BeforeSync,
    /// A sync has just returned, and what it allowed to be said has been said.
    AfterSync,
    /// Neither.
    BetweenSyncs,
}

/// One crash: what was said before it, and one of the disks that it may leave.
#[derive(Debug, Clone)]
pub struct Crash<'a> {
    /// Where.
    pub point: CrashPoint,
    /// What became of the changes that were not synced.
    pub fate: Fate,
    /// The marks that came before, in order.
    pub marks: Vec<&'a [u8]>,
    /// What the directory holds.
    pub image: Image,
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.moment {
            Moment::BeforeSync => "before a sync",
            Moment::AfterSync => "after a sync",
            Moment::BetweenSyncs => "between two syncs",
        };
        write!(f, "after {} events, {place}", self.at)
    }
}
