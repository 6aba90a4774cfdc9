//! Informational answers (1xx): they are passed over, and there may not be many of them.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use crate::message::Message;

/// The most informational answers before the answer. Servers send one, or a few.
pub(crate) const MOST: u32 = 64;

/// Counts the informational answers to one message.
pub(crate) struct Informational(Arc<AtomicU32>);

impl Informational {
    /// Counts those to `message`, which is not sent yet.
    pub(crate) fn answers_to(message: &mut Message) -> Self {
        let count = Arc::<AtomicU32>::default();
        let counted = count.clone();
        hyper::ext::on_informational(message, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        Informational(count)
    }

    /// What `work` brings, or nothing if there are too many of them.
    pub(crate) async fn limit<W: Future>(&self, work: W) -> Option<W::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.0.load(Ordering::Relaxed) > MOST => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}
