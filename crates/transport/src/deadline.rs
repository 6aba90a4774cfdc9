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
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.timer.as_mut().poll(cx).map(|()| None),
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
