//! Floors: the positions in the queue's indexes at which scans start.
//!
//! While a transaction anywhere in the database keeps an old snapshot, PostgreSQL cannot remove the index entries of
//! tasks that were claimed or have ended. A scan that starts at the beginning of an index passes all of them. So each
//! process remembers, for each [`Index`], a position below which it found nothing (the floor), and the next scan starts
//! there.
//!
//! A floor is a hint, kept in memory. The process lowers it for its own writes and for news of other processes. A task
//! that another process writes below it without news is found once the floor is too old ([`Options::floors_last`]):
//! then a scan starts at the beginning again. Meanwhile the process that wrote the task claims it.
//!
//! A scan from the beginning also cleans up: PostgreSQL marks the dead entries that it passed and that no transaction
//! can see any more. So such scans are made as often as possible without taking much time: the longer one took, the
//! longer its floor is used.
//!
//! Not here: which floor follows from the result of a scan. That is next to the scan, in `ops/`.
//!
//! [`Options::floors_last`]: crate::Options::floors_last

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::{Class, Lane, Timestamp};
use redrive_store::{LaneDue, LaneRoom};
use tokio::time::Instant;

use crate::codec::millis;
use crate::postgres_error::PostgresError;

/// The most floors that are remembered.
const REMEMBERED: usize = 10_000;

/// How many times as long as the floor of a lane the other floors last: one minute with the default setting. A task
/// that they could hide is known to another process, or was written by a commit that took as long.
const OTHERS_LAST: u32 = 12;

/// How many times as long as a scan from the beginning took its floor is used: such scans take one hundredth of the
/// time.
const TIMES_AS_LONG: u32 = 100;

/// The floor of a scan that starts at the beginning of the index.
pub(crate) const BEGINNING: i64 = i64::MIN;

/// A scan along an index of the queue, each with its own order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Index {
    /// Pending tasks of a class of a lane, by due time.
    Due(Lane, Class),
    /// Tasks in flight, by the end of their lease.
    Leases,
    /// Pending tasks by deadline, to find the overdue ones.
    Overdue,
    /// Pending tasks by deadline, to find the first deadline.
    FirstDeadline,
}

impl Index {
    /// The index of a room.
    pub(crate) fn of(room: &LaneRoom) -> Self {
        Index::Due(room.lane.clone(), room.class)
    }
}

/// All floors of a process.
pub(crate) struct Floors {
    last: RangeInclusive<Duration>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    floors: BTreeMap<Index, Floor>,
    /// Scans under way: for each index that a scan has not answered yet, the lowest position that was noted since it
    /// began.
    looks: BTreeMap<u64, BTreeMap<Index, i64>>,
    begun: u64,
}

#[derive(Debug, Clone, Copy)]
struct Floor {
    place: i64,
    /// When the scan from the beginning started. Scans that start at the floor do not make it younger.
    since: Instant,
    /// When the next scan starts at the beginning.
    until: Instant,
}

impl Floors {
    /// Floors that are used for a time in this range: the longer a scan from the beginning took, the longer.
    pub(crate) fn new(last: RangeInclusive<Duration>) -> Arc<Self> {
        Arc::new(Floors { last, state: Mutex::default() })
    }

    /// Notes that a task of this class of a lane is pending and due at this time.
    pub(crate) fn note(&self, lane: &Lane, class: Class, due: Timestamp) {
        self.lower(&Index::Due(lane.clone(), class), due);
    }

    /// Notes several due times.
    pub(crate) fn note_all(&self, dues: &[LaneDue]) {
        for LaneDue { lane, class, next_due } in dues {
            next_due.iter().for_each(|due| self.note(lane, *class, *due));
        }
    }

    /// Notes that a task with this deadline is pending.
    pub(crate) fn note_deadline(&self, deadline: Timestamp) {
        self.lower(&Index::Overdue, deadline);
        self.lower(&Index::FirstDeadline, deadline);
    }

    fn lower(&self, index: &Index, to: Timestamp) {
        // An invalid time is read as the first one, and its real position may be below that.
        let to = if to == Timestamp::default() { BEGINNING } else { millis(to) };
        let mut state = self.state();
        let State { floors, looks, .. } = &mut *state;
        let noted = looks.values_mut().filter_map(|look| look.get_mut(index));
        for known in noted.chain(floors.get_mut(index).map(|floor| &mut floor.place)) {
            *known = to.min(*known);
        }
    }

    /// Forgets all floors, because it is unknown what was written: the next scans start at the beginning, and scans
    /// under way set no floor.
    pub(crate) fn forget_all(&self) {
        let mut state = self.state();
        state.floors.clear();
        state.looks.clear();
    }

    /// Begins a write after which tasks may be pending, in lanes that are known once it has succeeded.
    pub(crate) fn writing(&self) -> Writing<'_> {
        Writing { floors: Some(self) }
    }

    /// Begins a scan along these indexes.
    pub(crate) fn look(&self, along: impl IntoIterator<Item = Index>) -> Look<'_> {
        let begun = Instant::now();
        let mut state = self.state();
        let from: BTreeMap<Index, Floor> = along
            .into_iter()
            .map(|index| {
                let known = state.floors.get(&index).filter(|floor| begun < floor.until).copied();
                (index, known.unwrap_or(Floor { place: BEGINNING, since: begun, until: begun }))
            })
            .collect();
        state.begun += 1;
        let number = state.begun;
        state.looks.insert(number, from.keys().map(|index| (index.clone(), i64::MAX)).collect());
        drop(state);
        Look { floors: self, number, begun, from }
    }

    fn remember(&self, state: &mut State, index: Index, floor: Floor) {
        if state.floors.len() >= REMEMBERED && !state.floors.contains_key(&index) {
            let now = Instant::now();
            state.floors.retain(|_, floor| now < floor.until);
            if state.floors.len() > REMEMBERED / 2 {
                state.floors.clear();
            }
        }
        state.floors.insert(index, floor);
    }

    /// How long to use a floor that a scan from the beginning found in this time.
    fn lasts(&self, index: &Index, took: Duration) -> Duration {
        let (least, most) = (*self.last.start(), *self.last.end());
        let lasts = (took * TIMES_AS_LONG).clamp(least, most);
        match index {
            Index::Due(..) => lasts,
            Index::Leases | Index::Overdue | Index::FirstDeadline => lasts * OTHERS_LAST,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A scan under way. If it is dropped before it answers an index, because it failed or was given up, that index's floor
/// is forgotten.
pub(crate) struct Look<'a> {
    floors: &'a Floors,
    number: u64,
    begun: Instant,
    from: BTreeMap<Index, Floor>,
}

impl Look<'_> {
    /// Where the scan starts.
    pub(crate) fn floor(&self, index: &Index) -> i64 {
        self.from.get(index).map_or(BEGINNING, |floor| floor.place)
    }

    /// Where a scan starts that never answers more than `latest`: a floor above that comes from a clock that has been
    /// set back since.
    pub(crate) fn floor_by(&self, index: &Index, latest: i64) -> i64 {
        let floor = self.floor(index);
        if floor > latest { BEGINNING } else { floor }
    }

    /// Lets the next scan start at `place`, or lower if a lower position was noted since this scan began.
    pub(crate) fn answer(&self, index: Index, place: i64) {
        let Some(from) = self.from.get(&index) else { return };
        let mut state = self.floors.state();
        let noted = state.looks.get_mut(&self.number).and_then(|look| look.remove(&index));
        let Some(noted) = noted else { return };
        let is_newer = state.floors.get(&index).is_some_and(|known| known.since > from.since);
        if !is_newer {
            let until = match from.since == self.begun {
                true => from.since + self.floors.lasts(&index, self.begun.elapsed()),
                false => from.until,
            };
            self.floors.remember(&mut state, index, Floor { place: place.min(noted), since: from.since, until });
        }
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let mut state = self.floors.state();
        for index in state.looks.remove(&self.number).unwrap_or_default().keys() {
            state.floors.remove(index);
        }
    }
}

/// A write under way. If it is given up, or if its outcome is unknown, all floors are forgotten.
pub(crate) struct Writing<'a> {
    floors: Option<&'a Floors>,
}

impl Writing<'_> {
    /// Ends the write. The tasks that became pending are noted afterwards, and before the call is answered.
    pub(crate) fn came_to<T>(mut self, outcome: &Result<T, PostgresError>) {
        if !outcome.as_ref().is_err_and(PostgresError::is_in_doubt) {
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

    fn look<'a>(floors: &'a Floors, rooms: &[&LaneRoom]) -> Look<'a> {
        floors.look(rooms.iter().map(|room| Index::of(room)))
    }

    fn note(floors: &Floors, room: &LaneRoom, due: u64) {
        floors.note(&room.lane, room.class, Timestamp::from_millis(due));
    }

    /// Where a claim of this room starts now. The claim leaves the floor at that place.
    fn floor(floors: &Floors, room: &LaneRoom) -> i64 {
        let look = look(floors, &[room]);
        let floor = look.floor(&Index::of(room));
        look.answer(Index::of(room), if floor == BEGINNING { 0 } else { floor });
        floor
    }

    fn claim(floors: &Floors, room: &LaneRoom, due: i64) {
        look(floors, &[room]).answer(Index::of(room), due);
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_starts_where_the_one_before_ended_or_at_what_was_noted_since() {
        let (floors, a, b) = (Floors::new(LAST..=LAST), room("a"), room("b"));
        claim(&floors, &a, 100);
        assert_eq!((floor(&floors, &a), floor(&floors, &b)), (100, BEGINNING));
        note(&floors, &a, 120);
        assert_eq!(floor(&floors, &a), 100);
        note(&floors, &a, 70);
        assert_eq!(floor(&floors, &a), 70);
        floors.note(&a.lane, Class::Retry, Timestamp::from_millis(7));
        assert_eq!(floor(&floors, &a), 70, "another class");
        note(&floors, &a, 0);
        assert_eq!(floor(&floors, &a), BEGINNING, "an invalid due time");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_noted_while_a_claim_is_under_way_is_not_passed_by_its_answer() {
        let (floors, a) = (Floors::new(LAST..=LAST), room("a"));
        for known in [None, Some(50)] {
            floors.forget_all();
            known.into_iter().for_each(|known| claim(&floors, &a, known));
            let (first, second) = (look(&floors, &[&a]), look(&floors, &[&a]));
            note(&floors, &a, 70);
            let third = look(&floors, &[&a]);
            // This scan began after the note, so it has read what was noted.
            third.answer(Index::of(&a), 300);
            assert_eq!(floor(&floors, &a), 300, "{known:?}");
            first.answer(Index::of(&a), 100);
            assert_eq!(floor(&floors, &a), 70, "{known:?}");
            second.answer(Index::of(&a), 60);
            assert_eq!(floor(&floors, &a), 60, "{known:?}");
            note(&floors, &a, 20);
            drop((first, second, third));
            assert_eq!(floor(&floors, &a), 20, "{known:?}: what was answered stays");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_is_looked_at_from_the_beginning_now_and_then_however_often_it_is_claimed_from() {
        let (floors, a) = (Floors::new(LAST..=LAST), room("a"));
        let second = Duration::from_secs(1);
        let begun = look(&floors, &[&a]);
        tokio::time::advance(second).await;
        begun.answer(Index::of(&a), 100);
        for n in 1..5 {
            assert_ne!(floor(&floors, &a), BEGINNING, "{n} s after the look from the beginning began");
            claim(&floors, &a, 100 + n);
            tokio::time::advance(second).await;
        }
        let late = look(&floors, &[&a]);
        assert_eq!(late.floor(&Index::of(&a)), BEGINNING);
        late.answer(Index::of(&a), 200);
        assert_eq!(floor(&floors, &a), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_floor_lasts_the_longer_the_longer_it_took_to_find() {
        let (least, a) = (Duration::from_millis(100), room("a"));
        // duration of a scan from the beginning, how long its floor is used
        for (took, lasts) in [(0, 100), (1, 100), (2, 200), (30, 3_000), (700, 5_000)]
            .map(|(took, lasts)| (Duration::from_millis(took), Duration::from_millis(lasts)))
        {
            let floors = Floors::new(least..=LAST);
            let begun = look(&floors, &[&a]);
            tokio::time::advance(took).await;
            begun.answer(Index::of(&a), 100);
            let almost = lasts.saturating_sub(took).saturating_sub(Duration::from_millis(1));
            tokio::time::advance(almost).await;
            assert_eq!(floor(&floors, &a), 100, "{took:?}");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(floor(&floors, &a), BEGINNING, "{took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_started_at_an_older_floor_does_not_replace_a_newer_one() {
        let (floors, a) = (Floors::new(LAST..=LAST), room("a"));
        claim(&floors, &a, 100);
        let old = look(&floors, &[&a]);
        tokio::time::advance(LAST).await;
        claim(&floors, &a, 200);
        old.answer(Index::of(&a), 100);
        assert_eq!(floor(&floors, &a), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_claim_did_not_answer_is_forgotten() {
        let (floors, a, b) = (Floors::new(LAST..=LAST), room("a"), room("b"));
        claim(&floors, &a, 100);
        claim(&floors, &b, 100);
        let both = look(&floors, &[&a, &b]);
        both.answer(Index::of(&a), 110);
        drop(both);
        assert_eq!((floor(&floors, &a), floor(&floors, &b)), (110, BEGINNING));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_of_unknown_outcome_resets_all_floors() {
        let (floors, a) = (Floors::new(LAST..=LAST), room("a"));
        let timed_out = || Err::<(), _>(PostgresError::TimedOut(LAST));
        // outcome, where the next claim starts
        for (outcome, expected) in [
            (Some(Ok(())), 100),
            (Some(Err(PostgresError::Busy(LAST))), 100),
            (Some(timed_out()), BEGINNING),
            (None, BEGINNING),
        ] {
            claim(&floors, &a, 100);
            let under_way = look(&floors, &[&a]);
            let writing = floors.writing();
            match &outcome {
                Some(outcome) => writing.came_to(outcome),
                None => drop(writing),
            }
            under_way.answer(Index::of(&a), 100);
            drop(under_way);
            assert_eq!(floor(&floors, &a), expected, "{outcome:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_lanes_are_remembered() {
        let floors = Floors::new(LAST..=LAST);
        let rooms: Vec<_> = (0..REMEMBERED + 1).map(|n| room(&format!("d{n}"))).collect();
        rooms.iter().for_each(|room| claim(&floors, room, 100));
        assert_eq!(floors.state().floors.len(), 1, "none was too old");
        assert_eq!(floors.state().looks.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_is_noted_lowers_both_looks_for_deadlines_and_those_last_longer() {
        let floors = Floors::new(LAST..=LAST);
        let along = || [Index::Overdue, Index::FirstDeadline, Index::Leases];
        let set = floors.look(along());
        along().into_iter().for_each(|index| set.answer(index, 100));
        floors.note_deadline(Timestamp::from_millis(40));
        tokio::time::advance(LAST * (OTHERS_LAST - 1)).await;
        let look = floors.look(along());
        assert_eq!(along().map(|index| look.floor(&index)), [40, 40, 100]);
        along().into_iter().for_each(|index| look.answer(index, 100));
        tokio::time::advance(LAST).await;
        let look = floors.look(along());
        assert_eq!(along().map(|index| look.floor(&index)), [BEGINNING; 3]);
    }
}
