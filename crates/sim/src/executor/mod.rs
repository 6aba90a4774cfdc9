//! Executor: runs every task of every process in the world, on one thread, on simulated time, from one seed.
//!
//! Whenever several tasks are ready, the seed decides which one runs, so the same code is run in many interleavings.
//! When none is ready, time jumps to the next timer. Tasks belong to a [`Group`], a process. A group can be killed,
//! which drops its tasks at their current await, or paused, while the rest of the world runs on.
//!
//! Not here: what the tasks do (`world`), what the machines' clocks show (`world::machine`).

mod sleep;
#[cfg(test)]
mod tests;

pub use sleep::Sleep;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::moment::Moment;
use crate::random::Random;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tasks that are paused and killed together: a simulated process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(u64);

/// The group of the world itself: it is never killed.
pub const WORLD: Group = Group(0);

/// The most steps at one moment of simulated time, and the most sleeps within steps. A world takes a few million in
/// all.
const MOST_STEPS: u64 = 1_000_000;

/// Tasks ran without end at this moment: in the real world, a busy loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Livelock {
    /// The moment at which time did not advance.
    pub at: Moment,
}

/// The executor. Cheap to clone.
#[derive(Clone)]
pub struct Executor {
    state: Arc<Mutex<State>>,
    ready: Arc<Ready>,
}

struct State {
    now: Moment,
    random: Random,
    steps: u64,
    tasks: Vec<Slot>,
    free: Vec<usize>,
    groups: u64,
    dead: BTreeSet<Group>,
    paused: BTreeMap<Group, Vec<Key>>,
    timers: BTreeMap<(Moment, u64), Waker>,
    timers_set: u64,
    /// Sleeps at the current moment that were over before they began.
    unwaited: u64,
}

#[derive(Default)]
struct Slot {
    /// Incremented each time the slot is used, so that a late wake-up does not wake another task.
    generation: u64,
    task: Option<Task>,
}

struct Task {
    group: Group,
    /// `None` while it is being polled.
    work: Option<Work>,
    awake: Arc<Awake>,
}

type Key = (usize, u64);

/// The tasks that are ready.
#[derive(Default)]
struct Ready {
    keys: Mutex<Vec<Key>>,
}

struct Awake {
    key: Key,
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Awake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            lock(&self.ready.keys).push(self.key);
        }
    }
}

impl Executor {
    /// An executor at simulated time zero.
    pub fn new(random: Random) -> Self {
        let state = State {
            now: Moment::default(),
            random,
            steps: 0,
            tasks: Vec::new(),
            free: Vec::new(),
            groups: 0,
            dead: BTreeSet::new(),
            paused: BTreeMap::new(),
            timers: BTreeMap::new(),
            timers_set: 0,
            unwaited: 0,
        };
        Executor { state: Arc::new(Mutex::new(state)), ready: Arc::default() }
    }

    /// The true time.
    pub fn now(&self) -> Moment {
        self.state().now
    }

    /// How many times a task has been polled so far.
    pub fn steps(&self) -> u64 {
        self.state().steps
    }

    /// The state that the next draw depends on: two runs with equal fingerprints have been the same so far.
    pub fn fingerprint(&self) -> (u64, Moment, u64) {
        let mut state = self.state();
        (state.steps, state.now, state.random.bits())
    }

    /// A new group.
    pub fn group(&self) -> Group {
        let mut state = self.state();
        state.groups += 1;
        Group(state.groups)
    }

    /// Starts a task of this group; does nothing if the group is dead.
    pub fn spawn(&self, group: Group, work: impl Future<Output = ()> + Send + 'static) {
        self.spawn_boxed(group, Box::pin(work));
    }

    /// Starts a task that is already boxed.
    pub fn spawn_boxed(&self, group: Group, work: Work) {
        let mut state = self.state();
        if state.dead.contains(&group) {
            drop(state);
            return drop(work);
        }
        let index = state.free.pop().unwrap_or_else(|| {
            state.tasks.push(Slot::default());
            state.tasks.len() - 1
        });
        let slot = &mut state.tasks[index];
        slot.generation += 1;
        let key = (index, slot.generation);
        let awake = Arc::new(Awake { key, queued: AtomicBool::new(true), ready: self.ready.clone() });
        slot.task = Some(Task { group, work: Some(work), awake });
        drop(state);
        lock(&self.ready.keys).push(key);
    }

    /// Drops all tasks of this group. A task that calls this itself ends at its next await.
    pub fn kill(&self, group: Group) {
        let mut state = self.state();
        state.dead.insert(group);
        state.paused.remove(&group);
        let mut killed = Vec::new();
        for index in 0..state.tasks.len() {
            let slot = &mut state.tasks[index];
            // A task that is being polled is dropped at the end of its poll.
            if slot.task.as_ref().is_some_and(|task| task.group == group && task.work.is_some()) {
                killed.push(slot.task.take());
                state.free.push(index);
            }
        }
        drop(state);
        drop(killed);
    }

    /// Runs none of this group's tasks until it is resumed.
    pub fn pause(&self, group: Group) {
        let mut state = self.state();
        if !state.dead.contains(&group) {
            state.paused.entry(group).or_default();
        }
    }

    /// Resumes a paused group.
    pub fn resume(&self, group: Group) {
        let held = self.state().paused.remove(&group).unwrap_or_default();
        lock(&self.ready.keys).extend(held);
    }

    /// Waits for `wait` of true time.
    pub fn sleep(&self, wait: Duration) -> Sleep {
        Sleep::new(self.clone(), self.now().after(wait))
    }

    /// Waits until `at`.
    pub fn sleep_until(&self, at: Moment) -> Sleep {
        Sleep::new(self.clone(), at)
    }

    /// Runs the world until `until`, or until `is_over` is true after a step. [`Livelock`] if time does not advance:
    /// tasks run again and again without waiting for anything.
    pub fn run(&self, until: Moment, is_over: impl Fn() -> bool) -> Result<(), Livelock> {
        let (mut moment, mut steps) = (self.now(), 0);
        loop {
            while let Some(key) = self.draw() {
                self.step(key);
                if is_over() {
                    return Ok(());
                }
                steps += 1;
                if steps > MOST_STEPS {
                    return Err(Livelock { at: moment });
                }
            }
            if !self.jump(until) {
                return Ok(());
            }
            let now = self.now();
            if now > moment {
                (moment, steps) = (now, 0);
            }
        }
    }

    /// Draws which of the ready tasks runs.
    fn draw(&self) -> Option<Key> {
        let mut keys = lock(&self.ready.keys);
        if keys.is_empty() {
            return None;
        }
        let at = if keys.len() == 1 { 0 } else { self.state().random.below(keys.len()) };
        Some(keys.swap_remove(at))
    }

    fn step(&self, key: Key) {
        let mut state = self.state();
        let (index, generation) = key;
        let Some(slot) = state.tasks.get_mut(index).filter(|slot| slot.generation == generation) else { return };
        let Some(task) = &mut slot.task else { return };
        let group = task.group;
        if state.paused.contains_key(&group) {
            state.paused.entry(group).or_default().push(key);
            return;
        }
        let Some(task) = &mut state.tasks[index].task else { return };
        let awake = task.awake.clone();
        let Some(mut work) = task.work.take() else { return };
        state.steps += 1;
        drop(state);

        awake.queued.store(false, Ordering::Relaxed);
        let waker = Waker::from(awake);
        let polled = work.as_mut().poll(&mut Context::from_waker(&waker));

        let mut state = self.state();
        let over = polled.is_ready() || state.dead.contains(&group);
        let slot = &mut state.tasks[index];
        let ended = if over {
            let ended = slot.task.take();
            state.free.push(index);
            Some((ended, work))
        } else {
            if let Some(task) = &mut slot.task {
                task.work = Some(work);
            }
            None
        };
        // Outside of the lock: dropping a task may cancel its timers.
        drop(state);
        drop(ended);
    }

    /// Jumps to the next timer. Returns whether there was one by `until`.
    fn jump(&self, until: Moment) -> bool {
        let mut state = self.state();
        let Some((&(at, _), _)) = state.timers.first_key_value() else {
            state.now = state.now.max(until);
            return false;
        };
        if at > until {
            state.now = state.now.max(until);
            return false;
        }
        if at > state.now {
            (state.now, state.unwaited) = (at, 0);
        }
        let mut wakers = Vec::new();
        while let Some(first) = state.timers.first_entry()
            && first.key().0 == at
        {
            wakers.push(first.remove());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Locks a mutex that is held only briefly. A panic under it ends the run anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets all other ready tasks run first; a task of a paused group continues when the group does.
pub async fn give_way() {
    let mut has_given = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
