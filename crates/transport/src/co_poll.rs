//! Futures that wake each other within one task.
//!
//! A connection and the send that uses it are polled together, and each of them wakes the other all the time: there is
//! a request, there is an answer, more is wanted. The scheduler would queue the task and wake another thread for each
//! of those, which costs more than the send. Here a wake only means another round.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The most rounds before the task yields, so that a busy connection does not starve other tasks.
const MAX_ROUNDS: usize = 8;

/// The task does not wait, or a round is running: waking does nothing.
const AWAKE: u8 = 0;
/// Woken during a round: there is to be another one.
const AGAIN: u8 = 1;
/// The task waits: waking wakes it.
const ASLEEP: u8 = 2;

/// Polls futures that wake each other.
pub(crate) struct CoPoll {
    inner: Arc<Inner>,
    waker: Waker,
}

struct Inner {
    state: AtomicU8,
    task: Mutex<Waker>,
}

impl CoPoll {
    /// No task waits yet.
    pub(crate) fn new() -> Self {
        let inner = Arc::new(Inner { state: AtomicU8::new(AWAKE), task: Mutex::new(Waker::noop().clone()) });
        CoPoll { waker: Waker::from(inner.clone()), inner }
    }

    /// Calls `round` until it is done or nothing woke it meanwhile. `round` must poll with the context that it is
    /// given.
    pub(crate) fn poll<T>(&self, cx: &Context<'_>, mut round: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.inner.set_task(cx.waker());
        for _ in 0..MAX_ROUNDS {
            self.inner.state.swap(AWAKE, Ordering::AcqRel);
            if let Poll::Ready(done) = round(&mut Context::from_waker(&self.waker)) {
                return Poll::Ready(done);
            }
            if self.inner.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Inner {
    fn set_task(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.clone_from(waker);
    }
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let during_a_round = self.state.compare_exchange(AWAKE, AGAIN, Ordering::AcqRel, Ordering::Acquire);
        if during_a_round == Err(ASLEEP) {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Task {
        fn woken(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn a_wake_during_a_round_means_another_round_and_no_further_wake() {
        let (turn, task) = (CoPoll::new(), Arc::new(Task::default()));
        let waker = Waker::from(task.clone());
        let mut rounds = 0;
        let done = turn.poll(&Context::from_waker(&waker), |cx| {
            rounds += 1;
            if rounds == 3 {
                return Poll::Ready(rounds);
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        assert_eq!((done, task.woken()), (Poll::Ready(3), 0));
    }

    #[test]
    fn a_wake_while_the_task_waits_wakes_it() {
        let (turn, task) = (CoPoll::new(), Arc::new(Task::default()));
        let waker = Waker::from(task.clone());
        let mut inner = None;
        let waits = turn.poll(&Context::from_waker(&waker), |cx| {
            inner = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        assert_eq!((waits, task.woken()), (Poll::Pending, 0));
        inner.unwrap().wake();
        assert_eq!(task.woken(), 1);
    }

    #[test]
    fn a_wake_without_a_waiter_has_no_effect() {
        let (turn, task) = (CoPoll::new(), Arc::new(Task::default()));
        let waker = Waker::from(task.clone());
        let done = turn.poll(&Context::from_waker(&waker), |cx| Poll::Ready(cx.waker().clone()));
        let Poll::Ready(inner) = done else { panic!("not done") };
        inner.wake();
        assert_eq!(task.woken(), 0);
        // It was for the last turn, not for this one.
        assert_eq!(turn.poll(&Context::from_waker(&waker), |_| Poll::<()>::Pending), Poll::Pending);
    }

    #[test]
    fn work_without_end_lets_others_have_their_turn() {
        let (turn, task) = (CoPoll::new(), Arc::new(Task::default()));
        let waker = Waker::from(task.clone());
        let mut rounds = 0;
        let waits = turn.poll(&Context::from_waker(&waker), |cx| {
            rounds += 1;
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!((waits, rounds, task.woken()), (Poll::Pending, MAX_ROUNDS, 1));
    }
}
