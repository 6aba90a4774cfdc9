//! The schedule: which lane has work due when, and which lane claims next.
//!
//! It holds the earliest due time of each class of a lane, never the backlog. It is an index over the store and can be
//! rebuilt from it at any time. A lane whose work is due later waits by time. A lane with due work and room is in a
//! queue, so that lanes take turns. A lane without room is in neither, and costs nothing.
//!
//! Not here: how much room a lane has (`admission`, `slots`).

use std::collections::{BTreeSet, VecDeque};

use redrive_core::{Class, Timestamp};

/// A lane's number while it is in memory. Numbers of forgotten lanes are reused.
pub(crate) type LaneId = usize;

/// The due times of every lane.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    lanes: Vec<LaneSchedule>,
    by_time: BTreeSet<(Timestamp, LaneId)>,
    ready: VecDeque<LaneId>,
}

#[derive(Debug, Clone, Default)]
struct LaneSchedule {
    due: [Option<Timestamp>; Class::ALL.len()],
    position: Position,
    /// Whether a guard holds the lane's retries back: the lane is due when its first attempts are.
    holds_retries: bool,
}

/// Where a lane is in the schedule.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// In neither: it has no work, or no room for it.
    #[default]
    Aside,
    /// In `by_time`, under this time.
    Later(Timestamp),
    /// In `ready`.
    Ready,
    /// A claim for it is in progress; its due times are those noted since the claim began.
    Claiming,
}

impl Schedule {
    /// Adds a lane with this number. Numbers are used again: nothing of the lane before it is left.
    pub(crate) fn add(&mut self, lane: LaneId) {
        match self.lanes.get_mut(lane) {
            Some(unused) => *unused = LaneSchedule::default(),
            None => self.lanes.resize_with(lane + 1, LaneSchedule::default),
        }
    }

    /// Notes that a task of this class is due at `due`. Returns whether that is earlier than what was known.
    pub(crate) fn note(&mut self, lane: LaneId, class: Class, due: Timestamp) -> bool {
        let known = &mut self.lanes[lane].due[class as usize];
        let is_news = known.is_none_or(|known| due < known);
        if is_news {
            *known = Some(due);
        }
        is_news
    }

    /// When the lane's first task of this class is due.
    pub(crate) fn due(&self, lane: LaneId, class: Class) -> Option<Timestamp> {
        self.lanes[lane].due[class as usize]
    }

    /// When the lane's first task is due that no guard holds back.
    pub(crate) fn first_due(&self, lane: LaneId) -> Option<Timestamp> {
        let LaneSchedule { due, holds_retries, .. } = &self.lanes[lane];
        match holds_retries {
            true => due[Class::First as usize],
            false => due.iter().flatten().min().copied(),
        }
    }

    /// Holds the lane's retries back, or releases them. The lane must be placed again afterwards.
    pub(crate) fn hold_retries(&mut self, lane: LaneId, holds_retries: bool) {
        self.lanes[lane].holds_retries = holds_retries;
    }

    /// Discards the due times of every lane, except those that a claim in progress will return.
    pub(crate) fn forget(&mut self) {
        self.by_time.clear();
        self.ready.clear();
        for lane in &mut self.lanes {
            lane.due = Default::default();
            if lane.position != Position::Claiming {
                lane.position = Position::Aside;
            }
        }
    }

    /// Lets the lane wait until its first task is due; takes it out of the schedule if it has none.
    pub(crate) fn wait(&mut self, lane: LaneId) {
        let position = self.lanes[lane].position;
        let first = self.first_due(lane);
        match (position, first) {
            (Position::Claiming | Position::Ready, _) => {}
            (Position::Later(under), Some(due)) if under == due => {}
            _ => {
                self.leave(lane);
                if let Some(due) = first {
                    self.by_time.insert((due, lane));
                    self.lanes[lane].position = Position::Later(due);
                }
            }
        }
    }

    /// Queues the lane for its turn.
    pub(crate) fn queue(&mut self, lane: LaneId) {
        if !matches!(self.lanes[lane].position, Position::Claiming | Position::Ready) {
            self.leave(lane);
            self.ready.push_back(lane);
            self.lanes[lane].position = Position::Ready;
        }
    }

    /// Takes the lane out of the schedule until it has room again.
    pub(crate) fn set_aside(&mut self, lane: LaneId) {
        if self.lanes[lane].position != Position::Claiming {
            self.leave(lane);
        }
    }

    /// Takes the next lane whose first task is due by `by` out of the schedule: it is its turn.
    pub(crate) fn next(&mut self, by: Timestamp) -> Option<LaneId> {
        loop {
            while let Some((due, lane)) = self.by_time.first().copied()
                && due <= by
            {
                self.queue(lane);
            }
            let lane = self.ready.pop_front()?;
            // A lane that was set aside meanwhile is still in this queue.
            if self.lanes[lane].position == Position::Ready {
                self.lanes[lane].position = Position::Aside;
                return Some(lane);
            }
        }
    }

    /// Begins a claim of this class: its due time is from now on what is noted during the claim.
    pub(crate) fn claiming(&mut self, lane: LaneId, class: Class) {
        self.lanes[lane].due[class as usize] = None;
        self.lanes[lane].position = Position::Claiming;
    }

    /// Ends a claim: the lane can be queued again.
    pub(crate) fn claimed(&mut self, lane: LaneId) {
        if self.lanes[lane].position == Position::Claiming {
            self.lanes[lane].position = Position::Aside;
        }
    }

    /// Whether a lane waits for its turn.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the first of the lanes that wait by time is due.
    pub(crate) fn next_time(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// Whether no due time of this lane is known, and no claim for it is in progress.
    pub(crate) fn is_idle(&self, lane: LaneId) -> bool {
        let LaneSchedule { due, position, .. } = &self.lanes[lane];
        due.iter().all(Option::is_none) && *position == Position::Aside
    }

    fn leave(&mut self, lane: LaneId) {
        if let Position::Later(under) = self.lanes[lane].position {
            self.by_time.remove(&(under, lane));
        }
        self.lanes[lane].position = Position::Aside;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn schedule(lanes: usize) -> Schedule {
        let mut schedule = Schedule::default();
        (0..lanes).for_each(|lane| schedule.add(lane));
        schedule
    }

    #[test]
    fn the_earliest_time_of_all_classes_counts() {
        let mut schedule = schedule(1);
        assert!(schedule.note(0, Class::Retry, at(20)));
        assert!(schedule.note(0, Class::First, at(30)));
        assert!(!schedule.note(0, Class::Retry, at(25)), "something earlier is known");
        assert_eq!((schedule.first_due(0), schedule.due(0, Class::First)), (Some(at(20)), Some(at(30))));
        schedule.wait(0);
        assert_eq!(schedule.next_time(), Some(at(20)));
        assert_eq!(schedule.next(at(19)), None);
        assert_eq!(schedule.next(at(20)), Some(0));
        assert_eq!(schedule.next(at(20)), None, "a lane has one turn at a time");
    }

    #[test]
    fn a_number_that_is_used_again_has_nothing_of_the_lane_before_it() {
        let mut schedule = schedule(1);
        schedule.hold_retries(0, true);
        schedule.add(0);
        schedule.note(0, Class::Retry, at(20));
        assert_eq!(schedule.first_due(0), Some(at(20)), "its retries are not held back");
    }

    #[test]
    fn an_earlier_time_moves_a_lane_that_waits() {
        let mut schedule = schedule(2);
        for (lane, due) in [(0, 10), (1, 20), (1, 5)] {
            schedule.note(lane, Class::First, at(due));
            schedule.wait(lane);
        }
        assert_eq!([schedule.next(at(50)), schedule.next(at(50)), schedule.next(at(50))], [Some(1), Some(0), None]);
    }

    #[test]
    fn lanes_take_turns_in_the_order_in_which_they_were_queued() {
        let mut schedule = schedule(3);
        [2, 0, 1, 2].into_iter().for_each(|lane| schedule.queue(lane));
        assert_eq!([(); 4].map(|()| schedule.next(at(0))), [Some(2), Some(0), Some(1), None]);
    }

    #[test]
    fn a_lane_that_is_set_aside_has_no_turn_until_it_is_queued_again() {
        let mut schedule = schedule(2);
        schedule.queue(0);
        schedule.queue(1);
        schedule.set_aside(0);
        assert_eq!(schedule.next(at(0)), Some(1));
        schedule.queue(0);
        assert_eq!(schedule.next(at(0)), Some(0));
    }

    #[test]
    fn a_lane_is_not_queued_while_a_claim_for_it_is_under_way() {
        let mut schedule = schedule(1);
        schedule.note(0, Class::First, at(1));
        schedule.note(0, Class::Retry, at(2));
        schedule.claiming(0, Class::First);
        schedule.queue(0);
        assert_eq!(
            (schedule.next(at(9)), schedule.first_due(0)),
            (None, Some(at(2))),
            "only the class that is claimed"
        );
        schedule.claimed(0);
        schedule.wait(0);
        assert_eq!(schedule.next(at(9)), Some(0));
    }

    #[test]
    fn a_schedule_that_is_forgotten_knows_only_what_is_noted_afterwards() {
        let mut schedule = schedule(2);
        schedule.note(0, Class::First, at(1));
        schedule.wait(0);
        schedule.queue(1);
        schedule.forget();
        assert_eq!((schedule.next(at(9)), schedule.next_time(), schedule.is_idle(0)), (None, None, true));
        schedule.note(0, Class::First, at(5));
        schedule.wait(0);
        assert_eq!(schedule.next(at(9)), Some(0));
    }
}
