//! The one timer of an attempt.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// When an attempt must be over. Its steps share one timer and each learns by itself that it ran out, so that a step
/// that already has enough can still end well.
pub(crate) struct Deadline<'t> {
    timer: Pin<&'t mut Sleep>,
    timeout: Duration,
}

impl<'t> Deadline<'t> {
    /// A deadline that `timer`, set to `timeout`, keeps.
    pub(crate) fn new(timer: Pin<&'t mut Sleep>, timeout: Duration) -> Self {
        Deadline { timer, timeout }
    }

    /// What `work` brings, or nothing if the time runs out first.
    pub(crate) async fn limit<W: Future>(&mut self, work: W) -> Option<W::Output> {
        let mut work = std::pin::pin!(work);
        poll_fn(|cx| {
            // Before the work, which may use up all that a task may do in one go: then the timer would not be looked
            // at.
            let is_late = self.timer.as_mut().poll(cx).is_ready();
            match work.as_mut().poll(cx) {
                Poll::Ready(done) => Poll::Ready(Some(done)),
                Poll::Pending if is_late => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// The moment.
    pub(crate) fn at(&self) -> Instant {
        self.timer.deadline()
    }

    /// How long the attempt may take in all.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_never_rests_is_late_all_the_same() {
        let timeout = Duration::from_millis(20);
        let timer = std::pin::pin!(tokio::time::sleep(timeout));
        let busy = async {
            loop {
                tokio::task::consume_budget().await;
            }
        };
        assert_eq!(Deadline::new(timer, timeout).limit(busy).await, None::<()>);
    }
}
