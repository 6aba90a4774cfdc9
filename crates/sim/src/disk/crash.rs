//! Crashes: where a run may be interrupted, and what is on the disk then.

use std::fmt;

use super::fate::Fate;
use super::image::Image;

/// A position between two events of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashPoint {
    /// How many events happened before.
    pub at: usize,
    /// Its position relative to the syncs.
    pub moment: Moment,
}

/// Position of a crash point relative to the syncs of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The next event would have been a sync.
    BeforeSync,
    /// A sync has just returned, and the marks that follow it were made.
    AfterSync,
    /// Neither directly before nor directly after a sync.
    BetweenSyncs,
}

/// One crash: the marks before it, and one of the disks that it may leave.
#[derive(Debug, Clone)]
pub struct Crash<'a> {
    /// The crash point.
    pub point: CrashPoint,
    /// What happened to the changes that were not synced.
    pub fate: Fate,
    /// The marks before the crash, in order.
    pub marks: Vec<&'a [u8]>,
    /// The content of the directory.
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
