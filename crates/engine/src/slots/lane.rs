//! One lane's entry: the slots that it holds, its tasks that wait, and its measurements.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Number, TenantKey};
use crate::admission::Pool;
use crate::admission::pace::Pace;

/// One lane's slots, tasks and measurements.
#[derive(Debug)]
pub(super) struct LaneSlots {
    pub(super) tenant: TenantKey,
    /// The pool in which its slots are counted.
    pub(super) pool: Pool,
    /// Slots that it holds: reserved, on the wire, or resting.
    pub(super) held: usize,
    /// Of these, the slots reserved for its next claim.
    pub(super) reserved: usize,
    /// Tasks that are claimed, or about to be, without a slot.
    pub(super) unsent: usize,
    pub(super) bytes: usize,
    /// The size of the largest of its latest tasks in memory.
    pub(super) task_bytes: usize,
    pub(super) on_wire: BTreeMap<Number, Duration>,
    pub(super) waiting: VecDeque<(Number, oneshot::Sender<()>)>,
    pub(super) pace: Pace,
    pub(super) ages_at: Option<Duration>,
    /// The most slots that it has held since it became slow, and the earliest start of its next attempt.
    pub(super) most_held: usize,
    pub(super) next_start: Duration,
    /// When it is looked at again, if it waits for its next start.
    pub(super) paced_until: Option<Duration>,
    /// The most slots that its guards allow, and whether they allow claims ahead of free slots.
    pub(super) guard_limit: usize,
    pub(super) may_claim_ahead: bool,
}

impl LaneSlots {
    /// A lane of this tenant that holds nothing and is unknown.
    pub(super) fn new(tenant: TenantKey) -> Self {
        LaneSlots {
            tenant,
            pool: Pool::Unknown,
            held: 0,
            reserved: 0,
            unsent: 0,
            bytes: 0,
            task_bytes: 1,
            on_wire: BTreeMap::new(),
            waiting: VecDeque::new(),
            pace: Pace::default(),
            ages_at: None,
            most_held: 0,
            next_start: Duration::ZERO,
            paced_until: None,
            guard_limit: usize::MAX,
            may_claim_ahead: true,
        }
    }
}
