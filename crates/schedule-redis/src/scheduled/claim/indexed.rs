//! Claiming through the index.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use redrive_core::{TaskId, Timestamp};
use redrive_store::{ClaimKnownRequest, ClaimedTask, Error, KnownTask, LaneRoom, PendingTask};

use super::{Found, Terms, claimed_from, places, places_in_all, queue_of};
use crate::pending_changes::Change;
use crate::schedule::{Queue, Take, Turn};
use crate::state::State;

/// How often a room is tried again within one claim because its tasks were out of date.
const ROUNDS: usize = 4;

/// Takes up to `most` due tasks from the index and lets the store confirm them. Also returns the rooms for which the
/// index cannot answer, each with its remaining places.
pub(super) async fn claim(
    state: &State,
    mut rooms: Vec<LaneRoom>,
    most: usize,
    terms: Terms,
) -> (Found, Vec<LaneRoom>) {
    let (mut found, mut unknown) = (Found::default(), Vec::new());
    for _ in 0..ROUNDS {
        if rooms.is_empty() {
            break;
        }
        let turns = share_out(state, &rooms, most.saturating_sub(found.count()), terms.due_by).await;
        let taken = take(state, &rooms, &turns, &mut unknown, &mut found, terms).await;
        rooms.retain(|room| found.left.contains_key(&queue_of(room)));
        match confirm(state, taken, terms).await {
            Ok(confirmed) => {
                rooms = found.unfilled(rooms, confirmed, terms.due_by);
                if found.count() >= most {
                    break;
                }
            }
            Err(error) => {
                found.error = Some(error);
                // All tasks were put back, so they are due now.
                found.left.values_mut().for_each(|next_due| *next_due = Some(terms.now));
                break;
            }
        }
    }
    (found, unknown)
}

/// How many tasks to take for each room: all that fit. If that is more than `most`, as many as are due, room by room
/// until `most` is reached.
async fn share_out(state: &State, rooms: &[LaneRoom], most: usize, due_by: Timestamp) -> Vec<Turn> {
    let turn = |room: &LaneRoom, tasks| Turn { lane: room.lane.clone(), class: room.class, tasks };
    if places_in_all(rooms) <= most {
        return rooms.iter().map(|room| turn(room, places(room))).collect();
    }
    let queues: Vec<Queue> = rooms.iter().map(queue_of).collect();
    let counts = state.schedule.count_due(&queues, due_by).await;
    let mut left = most;
    let share = |(room, count): (&LaneRoom, Result<usize, _>)| {
        // Without an answer, the take will fail too.
        let tasks = places(room).min(count.unwrap_or_default()).min(left);
        left -= tasks;
        turn(room, tasks)
    };
    rooms.iter().zip(counts).map(share).collect()
}

/// A task that was taken from the index.
struct Taken {
    task: PendingTask,
    has_slot: bool,
}

async fn take(
    state: &State,
    rooms: &[LaneRoom],
    turns: &[Turn],
    unknown: &mut Vec<LaneRoom>,
    found: &mut Found,
    terms: Terms,
) -> Vec<Taken> {
    let mut tasks = Vec::new();
    for (room, answer) in rooms.iter().zip(state.schedule.take(turns, terms.due_by).await) {
        let queue = queue_of(room);
        match answer {
            Ok(Take::Taken(taken)) => {
                // A task of a stale class is not in the index, so its due time counts as well.
                let next_due = [taken.next_due, state.stale_queues.due(&queue)].into_iter().flatten().min();
                found.left.insert(queue, next_due);
                let with_slot = |(place, task)| Taken { task, has_slot: place < room.slots };
                tasks.extend(taken.tasks.into_iter().enumerate().map(with_slot));
                continue;
            }
            Ok(Take::Incomplete) => state.partitions.incomplete(&room.lane),
            Err(failure) => {
                state.partitions.failed(&room.lane, &failure);
                state.stale_queues.mark(&queue, terms.now);
            }
        }
        found.left.remove(&queue);
        unknown.push(room.clone());
    }
    tasks
}

/// The store's answer for the taken tasks.
struct Confirmed {
    claimed: Vec<ClaimedTask>,
    /// Classes of lanes in which a task could not be claimed for lack of a slot, and when the first such task is due.
    ended: BTreeMap<Queue, Timestamp>,
}

/// Claims the taken tasks in the store, or puts them back.
async fn confirm(state: &State, taken: Vec<Taken>, terms: Terms) -> Result<Confirmed, Error> {
    let Some(shared) = state.store.shared().filter(|_| !taken.is_empty()) else {
        return Ok(Confirmed { claimed: Vec::new(), ended: BTreeMap::new() });
    };
    let known = |Taken { task, has_slot }: &Taken| {
        let (tenant, id, token) = (task.lane.tenant.clone(), task.id, task.token);
        KnownTask { tenant, id, token, has_slot: *has_slot }
    };
    let Terms { due_by, lease, now } = terms;
    let known = taken.iter().map(known).collect();
    match shared.claim_known(ClaimKnownRequest { known, due_by, lease, now }).await {
        Ok(claimed) => {
            let ended = put_back_without_slot(state, taken, &claimed).await;
            Ok(Confirmed { claimed, ended })
        }
        Err(error) => {
            put_back(state, taken.into_iter().map(|taken| taken.task));
            Err(error)
        }
    }
}

/// Puts back the tasks that were left out for lack of a slot, and all that were taken behind them without one.
async fn put_back_without_slot(
    state: &State,
    taken: Vec<Taken>,
    claimed: &[ClaimedTask],
) -> BTreeMap<Queue, Timestamp> {
    let claimed: BTreeSet<TaskId> = claimed.iter().map(|claimed| claimed.task.id).collect();
    let mut left_out: BTreeMap<Queue, Vec<PendingTask>> = BTreeMap::new();
    for Taken { task, has_slot } in taken {
        if !has_slot && !claimed.contains(&task.id) {
            left_out.entry((task.lane.clone(), task.class)).or_default().push(task);
        }
    }
    let looking = left_out.into_iter().map(async |(queue, tasks)| {
        let tasks = without_outdated(state, tasks).await;
        let first_due = tasks.first().map(|task| task.due);
        put_back(state, tasks);
        Some((queue, first_due?))
    });
    join_all(looking).await.into_iter().flatten().collect()
}

/// Drops outdated tasks, up to the first one that is as the index has it: that one has no slot. The tasks behind it are
/// checked later.
async fn without_outdated(state: &State, mut tasks: Vec<PendingTask>) -> Vec<PendingTask> {
    let mut outdated = 0;
    for task in &tasks {
        match state.is_waiting(task).await {
            Some(false) => outdated += 1,
            // If it is unknown, the task is kept: it does no harm in the index.
            Some(true) | None => break,
        }
    }
    tasks.split_off(outdated)
}

fn put_back(state: &State, tasks: impl IntoIterator<Item = PendingTask>) {
    state.note(tasks.into_iter().map(|task| Change::PendingTask { task, is_due: false }));
}

impl Found {
    /// Adds the claimed tasks. Returns the rooms that have both places and due tasks left, because some of their tasks
    /// were out of date.
    fn unfilled(&mut self, rooms: Vec<LaneRoom>, confirmed: Confirmed, due_by: Timestamp) -> Vec<LaneRoom> {
        let Confirmed { claimed, ended } = confirmed;
        let mut count: BTreeMap<Queue, usize> = BTreeMap::new();
        claimed.iter().for_each(|claimed| *count.entry(claimed_from(&claimed.task)).or_default() += 1);
        self.add(claimed);
        let still = |room: LaneRoom| {
            let queue = queue_of(&room);
            let next_due = self.left.get_mut(&queue)?;
            if let Some(due) = ended.get(&queue) {
                *next_due = Some(next_due.map_or(*due, |next_due| next_due.min(*due)));
                return None;
            }
            let claimed = count.get(&queue).copied().unwrap_or_default();
            let left = places(&room).saturating_sub(claimed);
            let slots = room.slots.saturating_sub(claimed);
            let is_due = next_due.is_some_and(|due| due <= due_by);
            (left > 0 && is_due).then_some(LaneRoom { slots, ahead: left - slots, ..room })
        };
        rooms.into_iter().filter_map(still).collect()
    }
}
