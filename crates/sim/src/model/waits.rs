//! Checks of tasks that wait to be sent: tasks that are pending, or claimed and not started, by lane.
//!
//! | check | worlds |
//! | --- | --- |
//! | a lane with due work is served within a bound, whatever others do (8) | crowds in which nothing else can explain a wait |
//! | a task that waits past its deadline ends soon after it (13) | worlds in which no process and no store has faults |
//! | a last attempt is claimed only into a slot (8) | the same |

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_core::{Lane, Task, TaskId, Timestamp};
use redrive_store::{ClaimedTask, Next, Settled, Settlement};

use super::Model;
use super::facts::{End, Said, Whose};
use crate::moment::Moment;

/// How often lanes that are not served are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long after its deadline a waiting task may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// A lane whose attempts take less than this is quick.
const QUICK: Duration = Duration::from_millis(150);
/// How long a lane without attempts still counts as quick.
const KNOWN_FOR: Duration = Duration::from_secs(25);

/// A task that has not ended.
#[derive(Debug)]
pub(super) struct PendingTask {
    pub(super) lane: Lane,
    /// When it is due, as stored, and when that was written.
    pub(super) due: Timestamp,
    pub(super) written: Moment,
    /// From when on it could have been sent.
    ready: Moment,
    deadline: Timestamp,
    /// When it has to end if nothing was sent: its deadline, or when it began to wait if that is later.
    over: Moment,
    /// Whether an attempt of it is in flight.
    has_begun: bool,
}

/// The tasks of one lane.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The tasks that wait, by when they could have been sent.
    ready: BTreeSet<(Moment, TaskId)>,
    on_wire: usize,
    /// Since when nothing has been on the wire.
    free_since: Moment,
    /// When its last attempt ended.
    ended: Option<Moment>,
    /// Whether an attempt took long, or was not answered.
    is_slow: bool,
}

impl Queue {
    fn is_quick(&self) -> bool {
        !self.is_slow && self.ended.is_some()
    }

    /// Since when it has had due work and nothing on the wire.
    fn unserved_since(&self, now: Moment) -> Option<Moment> {
        let (ready, _) = self.ready.first()?;
        (self.on_wire == 0 && *ready <= now).then(|| (*ready).max(self.free_since))
    }
}

impl Model {
    /// The store holds this task as pending from now on.
    pub fn waits(&mut self, task: &Task) {
        let Some(due) = task.next_attempt_at else { return };
        self.waits_no_more(task.id);
        let ready = Moment::of_wall(due).max(self.now);
        let (lane, written, deadline) = (task.lane.clone(), self.now, task.deadline_at);
        let over = Moment::of_wall(deadline).max(written);
        self.waiting.insert(task.id, PendingTask { lane, due, written, ready, deadline, over, has_begun: false });
        self.stand(task.id);
    }

    /// The store ended this task without an attempt. That is not checked while it is unknown whether a replay comes
    /// before or after.
    pub fn ended_unsent(&mut self, task: &Task) {
        self.waits_no_more(task.id);
        let (status, reason, seen) = (task.status, task.reason, self.now);
        if status.is_dead_letter() {
            self.becomes_dead_letter(&task.lane, task.id);
        }
        if let Some(facts) = self.tasks.get_mut(&task.id)
            && let Some(at) = task.ended_at
            && facts.replays_unknown == 0
        {
            facts.end.get_or_insert(End { status, reason, at, seen });
        }
    }

    fn waits_no_more(&mut self, id: TaskId) {
        self.unstand(id);
        self.waiting.remove(&id);
    }

    /// The store ended this task because its deadline has passed.
    pub fn ended_overdue(&mut self, task: &Task) {
        let name = self.item(task.id).unwrap_or("a task").to_owned();
        let (now, slack, deadline) = (self.now, self.rules.slack, Moment::of_wall(task.deadline_at));
        self.must(now.after(slack) >= deadline, 6, task.id, || format!("{name} ended before its deadline, {deadline}"));
        self.no_task_waits_past_its_deadline();
        self.ended_unsent(task);
    }

    /// The store ended this task because the retry budget of its dependency is spent.
    pub fn ended_suppressed(&mut self, task: &Task) {
        let name = self.item(task.id).unwrap_or("a task").to_owned();
        self.must(task.attempt_in_run() > 0, 8, task.id, || format!("the first attempt of {name} was suppressed"));
        self.no_task_waits_past_its_deadline();
        self.ended_unsent(task);
    }

    /// A process claimed this task.
    pub fn claimed(&mut self, whose: Whose, claimed: &ClaimedTask) {
        let task = &claimed.task;
        if !self.rules.is_undisturbed || task.attempt_in_run() < task.max_attempts {
            return;
        }
        self.last_claims.entry((whose, task.lane.clone())).or_default().insert(task.id);
        // A task that no longer fits before its deadline, or was cancelled, has given its slot back and is about to
        // end.
        let ends_by = self.now.after(self.rules.longest_attempt).after(self.rules.slack);
        let is_given_back = |id: &TaskId| {
            let is_over = self.waiting.get(id).is_none_or(|waiting| Moment::of_wall(waiting.deadline) <= ends_by);
            is_over || self.tasks.get(id).is_some_and(|facts| facts.cancel_asked)
        };
        let claimed_last = |lane: &Lane| {
            let of_lane = self.last_claims.get(&(whose, lane.clone()));
            of_lane.map_or(0, |ids| ids.iter().filter(|id| !is_given_back(id)).count())
        };
        let on_wire = self.on_wire.get(&(whose, task.lane.clone())).copied().unwrap_or(0);
        let (last, limit) = (claimed_last(&task.lane), self.rules.lane_concurrency);
        self.must(last + on_wire <= limit, 8, task.id, || {
            format!("{last} last attempts of a lane are claimed and {on_wire} are on the wire, which has {limit} slots")
        });
    }

    /// An attempt begins: its wait is checked.
    pub(super) fn begins(&mut self, whose: Whose, lane: &Lane, id: TaskId) {
        self.is_served_in_time(lane);
        self.unstand(id);
        if let Some(waiting) = self.waiting.get_mut(&id) {
            waiting.has_begun = true;
        }
        if let Some(last) = self.last_claims.get_mut(&(whose, lane.clone())) {
            last.remove(&id);
        }
        if let Some(queue) = self.queues.get_mut(lane) {
            queue.on_wire += 1;
        }
    }

    /// An attempt that began at `begun` is over.
    pub(super) fn is_through(&mut self, lane: &Lane, begun: Moment, said: Option<Said>) {
        let now = self.now;
        let Some(queue) = self.queues.get_mut(lane) else { return };
        queue.on_wire = queue.on_wire.saturating_sub(1);
        queue.free_since = now;
        queue.ended = Some(now);
        queue.is_slow |= now.since(begun) >= QUICK || said != Some(Said::Yes);
    }

    /// An attempt was settled: the task waits again, or has ended.
    pub(super) fn waits_again(&mut self, settlement: &Settlement, settled: Settled) {
        let id = settlement.id;
        self.last_claims.values_mut().for_each(|ids| {
            ids.remove(&id);
        });
        let (Settled::Done(status), Next::RetryAt { at, .. }) = (settled, &settlement.next) else {
            return self.waits_no_more(id);
        };
        if status.is_ended() {
            return self.waits_no_more(id);
        }
        self.unstand(id);
        let now = self.now;
        let Some(waiting) = self.waiting.get_mut(&id) else { return };
        waiting.due = *at;
        waiting.written = now;
        waiting.over = Moment::of_wall(waiting.deadline).max(now);
        waiting.has_begun = false;
        // A task that was claimed and not sent has been waiting all the time.
        if settlement.attempt.is_some() || Moment::of_wall(*at) > now {
            waiting.ready = Moment::of_wall(*at).max(now);
        }
        self.stand(id);
    }

    /// Checks all waits, every [`LOOK_EVERY`].
    pub(super) fn look_at_waits(&mut self) {
        if self.now < self.looked.after(LOOK_EVERY) {
            return;
        }
        self.looked = self.now;
        self.no_task_waits_past_its_deadline();
        if self.rules.fairness.is_some() {
            self.quick_lanes = self.queues.values().filter(|queue| queue.is_quick()).count();
            let unserved = |queue: &Queue| queue.unserved_since(self.now).is_some();
            let lanes: Vec<Lane> =
                self.queues.iter().filter(|(_, queue)| unserved(queue)).map(|(lane, _)| lane.clone()).collect();
            lanes.iter().for_each(|lane| self.is_served_in_time(lane));
        }
    }

    fn no_task_waits_past_its_deadline(&mut self) {
        if !self.rules.is_undisturbed {
            return;
        }
        let Some((deadline, id)) = self.deadlines.first().copied() else { return };
        let now = self.now;
        let name = self.item(id).unwrap_or("a task").to_owned();
        self.must(now <= deadline.after(ENDS_WITHIN).after(self.rules.slack), 13, id, || {
            format!("{name} waits, and its deadline was {deadline}")
        });
    }

    /// A lane with due work and nothing on the wire must not wait for longer than the bound.
    fn is_served_in_time(&mut self, lane: &Lane) {
        let Some(fairness) = &self.rules.fairness else { return };
        let Some(queue) = self.queues.get(lane) else { return };
        let Some(since) = queue.unserved_since(self.now) else { return };
        let is_known = |within| queue.ended.is_some_and(|ended| since.after(within) <= ended.after(KNOWN_FOR));
        let (within, kind) = match fairness.quick_within(self.quick_lanes) {
            Some(within) if queue.is_quick() && is_known(within) => (within, "quick "),
            _ => (fairness.any_within(self.lanes_of.get(&lane.tenant).copied().unwrap_or(1)), ""),
        };
        let (waited, id) = (self.now.since(since), queue.ready.first().map(|(_, id)| *id));
        let what = || {
            format!(
                "the {kind}lane {lane} has had due work and nothing on the wire for {waited:?}, more than {within:?}"
            )
        };
        self.must(waited <= within, 8, id, what);
    }

    fn stand(&mut self, id: TaskId) {
        let Some(waiting) = self.waiting.get(&id).filter(|waiting| !waiting.has_begun) else { return };
        self.deadlines.insert((waiting.over, id));
        let queue = self.queues.entry(waiting.lane.clone()).or_insert_with(|| {
            *self.lanes_of.entry(waiting.lane.tenant.clone()).or_default() += 1;
            Queue::default()
        });
        queue.ready.insert((waiting.ready, id));
    }

    fn unstand(&mut self, id: TaskId) {
        let Some(waiting) = self.waiting.get(&id) else { return };
        self.deadlines.remove(&(waiting.over, id));
        if let Some(queue) = self.queues.get_mut(&waiting.lane) {
            queue.ready.remove(&(waiting.ready, id));
        }
    }
}
