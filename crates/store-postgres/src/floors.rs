//! Where looks along the queue's indexes start.
//!
//! While a transaction anywhere in the database keeps an old snapshot, PostgreSQL cannot remove the index entries of tasks
//! that were claimed or have ended. A look that starts at the beginning of an index walks past all of them. So each process
//! remembers, for each [`Index`], a place below which it saw nothing to find, and the next look starts there.
//!
//! It is a hint, kept in memory. What this process writes or hears of lowers it. What another process writes below it
//! without any news is found once the hint is too old ([`Options::floors_last`]): then a look starts at the beginning again.
//! Whoever wrote it knows of it meanwhile.
//!
//! A look that starts at the beginning also clears the way: PostgreSQL marks the entries that it walked past and that nobody can
//! see any more. So it is made as often as it may without taking much of the time: the longer it took, the longer a floor lasts.
//!
//! Not here: which floor follows from what a look found. That is beside the look, in `ops/`.
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
use crate::failure::Failure;

/// The most floors that are remembered.
const REMEMBERED: usize = 10_000;

/// How many times as long as the floor of a lane the others last: a minute with the default setting. Of what they could hide
/// another process knows, or it came into being with a commit that took as long.
const OTHERS_LAST: u32 = 12;

/// How many times as long as a look from the beginning took its floor is used: such looks take a hundredth of the time.
const TIMES_AS_LONG: u32 = 100;

/// Where a look starts that starts at the beginning.
pub(crate) const BEGINNING: i64 = i64::MIN;

/// What is looked along, each in an order of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Index {
    /// What waits in a class of a lane, by when it is due.
    Due(Lane, Class),
    /// What is in flight, by when its lease ends.
    Leases,
    /// What waits, by deadline: for what is overdue.
    Overdue,
    /// The same, for the first deadline.
    FirstDeadline,
}

impl Index {
    /// That of a room.
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
    /// Looks under way: the lowest place that was noted since each began, for what it has not answered yet.
    looks: BTreeMap<u64, BTreeMap<Index, i64>>,
    begun: u64,
}

#[derive(Debug, Clone, Copy)]
struct Floor {
    place: i64,
    /// When the look began that started at the beginning. Those that started at a floor make it no younger.
    since: Instant,
    /// When the next one starts at the beginning.
    until: Instant,
}

impl Floors {
    /// Floors that are used for this long: the longer, the longer a look from the beginning took.
    pub(crate) fn new(last: RangeInclusive<Duration>) -> Arc<Self> {
        Arc::new(Floors { last, state: Mutex::default() })
    }

    /// A task of this class of a lane waits and is due then.
    pub(crate) fn note(&self, lane: &Lane, class: Class, due: Timestamp) {
        self.lower(&Index::Due(lane.clone(), class), due);
    }

    /// The same for several.
    pub(crate) fn note_all(&self, dues: &[LaneDue]) {
        for LaneDue { lane, class, next_due } in dues {
            next_due.iter().for_each(|due| self.note(lane, *class, *due));
        }
    }

    /// A task with this deadline waits.
    pub(crate) fn note_deadline(&self, deadline: Timestamp) {
        self.lower(&Index::Overdue, deadline);
        self.lower(&Index::FirstDeadline, deadline);
    }

    fn lower(&self, index: &Index, to: Timestamp) {
        // A time that makes no sense is read as the first one, and may be below it.
        let to = if to == Timestamp::default() { BEGINNING } else { millis(to) };
        let mut state = self.state();
        let State { floors, looks, .. } = &mut *state;
        let noted = looks.values_mut().filter_map(|look| look.get_mut(index));
        for known in noted.chain(floors.get_mut(index).map(|floor| &mut floor.place)) {
            *known = to.min(*known);
        }
    }

    /// Nobody knows what there is: the next looks start at the beginning, and those under way set nothing.
    pub(crate) fn forget_all(&self) {
        let mut state = self.state();
        state.floors.clear();
        state.looks.clear();
    }

    /// Begins a write that may let tasks wait, in lanes that are known once it has succeeded.
    pub(crate) fn writing(&self) -> Writing<'_> {
        Writing { floors: Some(self) }
    }

    /// Begins a look along these.
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

    /// How long a floor lasts that was found from the beginning within this time.
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

/// A look under way. What it does not answer when it is dropped is forgotten: it failed, or was given up.
pub(crate) struct Look<'a> {
    floors: &'a Floors,
    number: u64,
    begun: Instant,
    from: BTreeMap<Index, Floor>,
}

impl Look<'_> {
    /// Where it starts.
    pub(crate) fn floor(&self, index: &Index) -> i64 {
        self.from.get(index).map_or(BEGINNING, |floor| floor.place)
    }

    /// The same for a look by the clock, which never answers more than `latest`: a floor above that is from a clock that has been
    /// set back since.
    pub(crate) fn floor_by(&self, index: &Index, latest: i64) -> i64 {
        let floor = self.floor(index);
        if floor > latest { BEGINNING } else { floor }
    }

    /// The next one may start here, but for what was noted since this one began.
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

    fn look<'a>(floors: &'a Floors, rooms: &[&LaneRoom]) -> Look<'a> {
        floors.look(rooms.iter().map(|room| Index::of(room)))
    }

    fn note(floors: &Floors, room: &LaneRoom, due: u64) {
        floors.note(&room.lane, room.class, Timestamp::from_millis(due));
    }

    /// Where a claim of this room starts now. It answers the same.
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
        assert_eq!(floor(&floors, &a), BEGINNING, "a due time that makes no sense");
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
            // This one began after the note, and has seen what it was about.
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
        // how long a look from the beginning takes, how long its floor is used
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
    async fn a_write_that_nobody_knows_the_outcome_of_has_all_forgotten() {
        let (floors, a) = (Floors::new(LAST..=LAST), room("a"));
        let timed_out = || Err::<(), _>(Failure::TimedOut(LAST));
        // outcome, where the next claim starts
        for (outcome, expected) in [
            (Some(Ok(())), 100),
            (Some(Err(Failure::Busy(LAST))), 100),
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
