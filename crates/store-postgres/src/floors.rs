//! From which due time on a claim looks.
//!
//! While a transaction anywhere in the database keeps an old snapshot, PostgreSQL cannot remove the index entries of tasks
//! that were claimed. A claim that starts at the beginning of its lane walks past all of them. So each process remembers, for
//! each class of a lane, a due time below which it saw no pending task, and the next claim starts there.
//!
//! It is a hint, kept in memory. What this process writes or hears of lowers it. What another process writes below it
//! without any news is found once the hint is too old ([`Options::floors_last`]): then a claim starts at the beginning again.
//! That is as late as the look around finds it.
//!
//! Not here: which floor follows from what a claim found (`ops/claim/rooms`).
//!
//! [`Options::floors_last`]: crate::Options::floors_last

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::{Class, Lane, Timestamp};
use redrive_store::{LaneDue, LaneRoom};
use tokio::time::Instant;

use crate::codec::millis;
use crate::failure::Failure;

/// The most classes of lanes that are remembered.
const REMEMBERED: usize = 10_000;

/// Where a look starts that starts at the beginning.
pub(crate) const BEGINNING: i64 = i64::MIN;

/// The floors of all lanes.
pub(crate) struct Floors {
    last: Duration,
    state: Mutex<State>,
}

type Key = (Lane, Class);

#[derive(Default)]
struct State {
    lanes: HashMap<Key, Floor>,
    /// Looks under way: the least due time that was noted since each began, for what it has not answered yet.
    looks: HashMap<u64, HashMap<Key, i64>>,
    begun: u64,
}

#[derive(Debug, Clone, Copy)]
struct Floor {
    due: i64,
    /// When the look began that started at the beginning. Those that started at a floor make it no younger.
    since: Instant,
}

impl Floors {
    /// Floors that are used for this long.
    pub(crate) fn new(last: Duration) -> Arc<Self> {
        Arc::new(Floors { last, state: Mutex::default() })
    }

    /// A task of this class of a lane waits and is due then.
    pub(crate) fn note(&self, lane: &Lane, class: Class, due: Timestamp) {
        // A due time that makes no sense is read as the first one, and may be below it.
        let due = if due == Timestamp::default() { BEGINNING } else { millis(due) };
        let key = (lane.clone(), class);
        let mut state = self.state();
        let State { lanes, looks, .. } = &mut *state;
        let noted = looks.values_mut().filter_map(|look| look.get_mut(&key));
        for known in noted.chain(lanes.get_mut(&key).map(|floor| &mut floor.due)) {
            *known = due.min(*known);
        }
    }

    /// The same for several.
    pub(crate) fn note_all(&self, dues: &[LaneDue]) {
        for LaneDue { lane, class, next_due } in dues {
            next_due.iter().for_each(|due| self.note(lane, *class, *due));
        }
    }

    /// Nobody knows what waits: the next claims start at the beginning, and those under way set nothing.
    pub(crate) fn forget_all(&self) {
        let mut state = self.state();
        state.lanes.clear();
        state.looks.clear();
    }

    /// Begins a write that may let tasks wait, in lanes that are known once it has succeeded.
    pub(crate) fn writing(&self) -> Writing<'_> {
        Writing { floors: Some(self) }
    }

    /// Begins a claim from these rooms.
    pub(crate) fn look(&self, rooms: &[LaneRoom]) -> Look<'_> {
        let begun = Instant::now();
        let mut state = self.state();
        let from: HashMap<Key, Floor> = rooms
            .iter()
            .map(|room| {
                let key = key(room);
                let known = state.lanes.get(&key).filter(|floor| begun.duration_since(floor.since) < self.last);
                let floor = known.copied().unwrap_or(Floor { due: BEGINNING, since: begun });
                (key, floor)
            })
            .collect();
        state.begun += 1;
        let number = state.begun;
        state.looks.insert(number, from.keys().map(|key| (key.clone(), i64::MAX)).collect());
        drop(state);
        Look { floors: self, number, from }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remember(&mut self, key: Key, floor: Floor, last: Duration) {
        if self.lanes.len() >= REMEMBERED && !self.lanes.contains_key(&key) {
            self.lanes.retain(|_, floor| floor.since.elapsed() < last);
            if self.lanes.len() >= REMEMBERED {
                self.lanes.clear();
            }
        }
        self.lanes.insert(key, floor);
    }
}

fn key(room: &LaneRoom) -> Key {
    (room.lane.clone(), room.class)
}

/// A claim under way. What it does not answer when it is dropped is forgotten: it failed, or was given up.
pub(crate) struct Look<'a> {
    floors: &'a Floors,
    number: u64,
    from: HashMap<Key, Floor>,
}

impl Look<'_> {
    /// From which due time on this room is looked at.
    pub(crate) fn floor(&self, room: &LaneRoom) -> i64 {
        self.from.get(&key(room)).map_or(BEGINNING, |floor| floor.due)
    }

    /// The next claim of this room may start here, but for what was noted since this one began.
    pub(crate) fn answer(&self, room: &LaneRoom, due: i64) {
        let key = key(room);
        let Some(from) = self.from.get(&key) else { return };
        let mut state = self.floors.state();
        let noted = state.looks.get_mut(&self.number).and_then(|look| look.remove(&key));
        let Some(noted) = noted else { return };
        let is_newer = state.lanes.get(&key).is_some_and(|known| known.since > from.since);
        if !is_newer {
            state.remember(key, Floor { due: due.min(noted), since: from.since }, self.floors.last);
        }
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let mut state = self.floors.state();
        for key in state.looks.remove(&self.number).unwrap_or_default().keys() {
            state.lanes.remove(key);
        }
    }
}

/// A write under way. If it is given up, or if nobody knows what became of it, all floors are forgotten.
pub(crate) struct Writing<'a> {
    floors: Option<&'a Floors>,
}

impl Writing<'_> {
    /// It came to its end. What it let wait is noted after that, and before it is answered.
    pub(crate) fn came_to<T>(mut self, outcome: &Result<T, Failure>) {
        if !outcome.as_ref().is_err_and(Failure::is_in_doubt) {
            self.floors = None;
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if let Some(floors) = self.floors {
            floors.forget_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::{Dependency, TenantId};

    use super::*;

    const LAST: Duration = Duration::from_secs(5);

    fn room(dependency: &str) -> LaneRoom {
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(dependency).unwrap() };
        LaneRoom { lane, class: Class::First, slots: 1, ahead: 0 }
    }

    fn note(floors: &Floors, room: &LaneRoom, due: u64) {
        floors.note(&room.lane, room.class, Timestamp::from_millis(due));
    }

    /// Where a claim of this room starts now. It answers the same.
    fn floor(floors: &Floors, room: &LaneRoom) -> i64 {
        let look = floors.look(std::slice::from_ref(room));
        let floor = look.floor(room);
        look.answer(room, if floor == BEGINNING { 0 } else { floor });
        floor
    }

    fn claim(floors: &Floors, room: &LaneRoom, due: i64) {
        floors.look(std::slice::from_ref(room)).answer(room, due);
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_starts_where_the_one_before_ended_or_at_what_was_noted_since() {
        let (floors, a, b) = (Floors::new(LAST), room("a"), room("b"));
        claim(&floors, &a, 100);
        assert_eq!((floor(&floors, &a), floor(&floors, &b)), (100, BEGINNING));
        note(&floors, &a, 120);
        assert_eq!(floor(&floors, &a), 100);
        note(&floors, &a, 70);
        assert_eq!(floor(&floors, &a), 70);
        floors.note(&a.lane, Class::Retry, Timestamp::from_millis(7));
        assert_eq!(floor(&floors, &a), 70, "another class");
        note(&floors, &a, 0);
        assert_eq!(floor(&floors, &a), BEGINNING, "a due time that makes no sense");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_noted_while_a_claim_is_under_way_is_not_passed_by_its_answer() {
        let (floors, a) = (Floors::new(LAST), room("a"));
        for known in [None, Some(50)] {
            floors.forget_all();
            known.into_iter().for_each(|known| claim(&floors, &a, known));
            let (first, second) = (floors.look(&[a.clone()]), floors.look(&[a.clone()]));
            note(&floors, &a, 70);
            let third = floors.look(&[a.clone()]);
            // This one began after the note, and has seen what it was about.
            third.answer(&a, 300);
            assert_eq!(floor(&floors, &a), 300, "{known:?}");
            first.answer(&a, 100);
            assert_eq!(floor(&floors, &a), 70, "{known:?}");
            second.answer(&a, 60);
            assert_eq!(floor(&floors, &a), 60, "{known:?}");
            note(&floors, &a, 20);
            drop((first, second, third));
            assert_eq!(floor(&floors, &a), 20, "{known:?}: what was answered stays");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_is_looked_at_from_the_beginning_now_and_then_however_often_it_is_claimed_from() {
        let (floors, a) = (Floors::new(LAST), room("a"));
        let second = Duration::from_secs(1);
        let begun = floors.look(&[a.clone()]);
        tokio::time::advance(second).await;
        begun.answer(&a, 100);
        for n in 1..5 {
            assert_ne!(floor(&floors, &a), BEGINNING, "{n} s after the look from the beginning began");
            claim(&floors, &a, 100 + n);
            tokio::time::advance(second).await;
        }
        let late = floors.look(&[a.clone()]);
        assert_eq!(late.floor(&a), BEGINNING);
        late.answer(&a, 200);
        assert_eq!(floor(&floors, &a), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_started_at_an_older_floor_does_not_replace_a_newer_one() {
        let (floors, a) = (Floors::new(LAST), room("a"));
        claim(&floors, &a, 100);
        let old = floors.look(&[a.clone()]);
        tokio::time::advance(LAST).await;
        claim(&floors, &a, 200);
        old.answer(&a, 100);
        assert_eq!(floor(&floors, &a), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_claim_did_not_answer_is_forgotten() {
        let (floors, a, b) = (Floors::new(LAST), room("a"), room("b"));
        claim(&floors, &a, 100);
        claim(&floors, &b, 100);
        let look = floors.look(&[a.clone(), b.clone()]);
        look.answer(&a, 110);
        drop(look);
        assert_eq!((floor(&floors, &a), floor(&floors, &b)), (110, BEGINNING));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_knows_the_outcome_of_has_all_forgotten() {
        let (floors, a) = (Floors::new(LAST), room("a"));
        let timed_out = || Err::<(), _>(Failure::TimedOut(LAST));
        // outcome, where the next claim starts
        for (outcome, expected) in [
            (Some(Ok(())), 100),
            (Some(Err(Failure::Busy(LAST))), 100),
            (Some(timed_out()), BEGINNING),
            (None, BEGINNING),
        ] {
            claim(&floors, &a, 100);
            let under_way = floors.look(&[a.clone()]);
            let writing = floors.writing();
            match &outcome {
                Some(outcome) => writing.came_to(outcome),
                None => drop(writing),
            }
            under_way.answer(&a, 100);
            drop(under_way);
            assert_eq!(floor(&floors, &a), expected, "{outcome:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_lanes_are_remembered() {
        let floors = Floors::new(LAST);
        let rooms: Vec<_> = (0..REMEMBERED + 1).map(|n| room(&format!("d{n}"))).collect();
        rooms.iter().for_each(|room| claim(&floors, room, 100));
        assert_eq!(floors.state().lanes.len(), 1, "none was too old");
        assert_eq!(floors.state().looks.len(), 0);
    }
}
