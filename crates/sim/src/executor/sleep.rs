//! A timer on simulated time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Executor, MOST_STEPS};
use crate::moment::Moment;

/// Waits until its moment; dropping it cancels the timer.
#[must_use = "a wait that is not awaited does not wait"]
pub struct Sleep {
    executor: Executor,
    at: Moment,
    timer: Option<(Moment, u64)>,
}

impl Sleep {
    pub(super) fn new(executor: Executor, at: Moment) -> Self {
        Sleep { executor, at, timer: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.executor.state();
        if state.now >= this.at {
            if this.timer.is_none() {
                state.unwaited += 1;
                let unwaited = state.unwaited;
                drop(state);
                assert!(
                    unwaited <= MOST_STEPS,
                    "a busy loop: {unwaited} sleeps at one moment were over before they began"
                );
            }
            return Poll::Ready(());
        }
        let timer = match this.timer {
            Some(timer) => timer,
            None => {
                state.timers_set += 1;
                (this.at, state.timers_set)
            }
        };
        state.timers.insert(timer, context.waker().clone());
        drop(state);
        this.timer = Some(timer);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.executor.state().timers.remove(&timer);
        }
    }
}
