//! The floor of retries that the lanes of one tenant and origin share while they fail, over all processes.
//!
//! The same promise as [`SharedFloor`](crate::guards::SharedFloor). Here each lane is listed with the retries that its own
//! first attempts have not earned; together they are at most one floor. A lane sets its number anew with every exchange,
//! so a report that was lost is corrected by the next one, and a lane that no process has work for is forgotten after
//! a window.

use serde::{Deserialize, Serialize};

use crate::guards::budget;
use crate::time::Timestamp;

/// The most lanes in one list, if the floor is not larger. Those that were set first are left out.
const MOST_LANES: usize = 256;

/// The floor of one tenant and origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OriginFloor {
    /// Lanes, how many retries of the floor each needs, and when that was known. Each needs at least one, so a list as
    /// long as the floor means that it is spent. Probes are not limited by the floor, so there may be more lanes: at most
    /// [`MOST_LANES`] are listed.
    lanes: Vec<(String, u32, Timestamp)>,
}

impl OriginFloor {
    /// The floor in the place of one that cannot be read: it is spent for a window.
    pub fn unreadable(settings: &budget::Settings, now: Timestamp) -> Self {
        OriginFloor { lanes: vec![(String::new(), settings.floor, now)] }
    }

    /// How many retries beyond the percentage a lane may have in its window: what the other lanes leave of the floor.
    pub(super) fn left_for(&self, lane: &str, settings: &budget::Settings, now: Timestamp) -> u32 {
        let others = self.lanes.iter().filter(|(name, _, at)| name != lane && !is_over(*at, settings, now));
        let taken = others.fold(0u32, |taken, (_, needed, _)| taken.saturating_add(*needed));
        settings.floor.saturating_sub(taken)
    }

    /// Notes how many retries beyond the percentage a lane has in its window.
    pub(super) fn set(&mut self, lane: &str, needed: u32, settings: &budget::Settings, now: Timestamp) {
        self.lanes.retain(|(name, _, at)| name != lane && !is_over(*at, settings, now));
        if needed > 0 {
            if self.lanes.len() >= MOST_LANES.max(settings.floor as usize) {
                self.lanes.remove(0);
            }
            self.lanes.push((lane.to_owned(), needed, now));
        }
    }

    /// When a row with this state may be removed.
    pub fn expires_at(&self, now: Timestamp) -> Timestamp {
        now.after(super::KEPT_FOR)
    }
}

/// Whether everything that was sent by `at` has left the window.
fn is_over(at: Timestamp, settings: &budget::Settings, now: Timestamp) -> bool {
    now.since(at) > settings.window + settings.bucket
}
