//! Events of this node as server-sent events (HTML standard, section 9.2), in pieces that are made when they are read.
//!
//! ```text
//! id: 9f3c1e77a04b52d8-1042
//! event: attempt
//! data: {"id":"9f3c1e77a04b52d8-1042","at":1731600000000,"kind":"attempt",…}
//! ```
//!
//! A block with nothing but an `id` moves the position of a reader to whom no event was shown: it is sent at the start,
//! with every heartbeat and at the end, so that a reader with a narrow filter resumes where it was.

use std::time::Duration;

use bytes::Bytes;
use redrive_engine::bodies::Pieces;
use serde::Serialize;
use tokio::time::Instant;

use super::shutdown::ShutdownSignal;
use crate::live_events::{Batch, EventId, EventReader, Progress};
use crate::wire::{ShownGap, ShownLiveEvent};

/// The type of the content.
pub(crate) const CONTENT_TYPE: &str = "text/event-stream";

/// How long nothing is sent before a heartbeat is.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The least time between two reads of a reader that has read everything: events that come quickly are sent together,
/// and wake the reader once.
const PACE: Duration = Duration::from_millis(20);

/// How long a reader that lost its connection should wait before it comes back.
const RETRY_MS: u32 = 1_000;

/// The memory for an event in a piece, about.
const EVENT_BYTES: usize = 512;

/// The events of `reader`, until the server stops.
pub(crate) fn pieces(reader: EventReader, node: &str, shutdown: ShutdownSignal) -> Pieces {
    let state = State::Opening;
    let stream = EventStream { reader, node: node.to_owned(), shutdown, state, read_next_at: None };
    Box::pin(futures_util::stream::unfold(stream, |mut stream| async {
        let piece = stream.next().await?;
        Some((Ok(piece), stream))
    }))
}

struct EventStream {
    reader: EventReader,
    node: String,
    shutdown: ShutdownSignal,
    state: State,
    /// When to read again, if everything was read: not before this, and once there is an event.
    read_next_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Opening,
    Reading,
    Ended,
}

impl EventStream {
    async fn next(&mut self) -> Option<Bytes> {
        match self.state {
            State::Opening => {
                self.state = State::Reading;
                let position = self.reader.position();
                return Some(Bytes::from(format!(": events of this node\nretry: {RETRY_MS}\nid: {position}\n\n")));
            }
            State::Reading => {}
            State::Ended => return None,
        }
        let heartbeat_at = Instant::now() + HEARTBEAT;
        loop {
            match self.pause(heartbeat_at).await {
                Pause::Over => {}
                Pause::HeartbeatDue => {
                    return Some(Bytes::from(format!(": heartbeat\nid: {}\n\n", self.reader.position())));
                }
                Pause::Stopping => {
                    // What the engine did at the very end. A reader that is far behind resumes, and is told the gap.
                    let batch = self.reader.read();
                    return Some(self.last_piece(&batch));
                }
            }
            let batch = self.reader.read();
            self.read_next_at = (batch.progress == Progress::CaughtUp).then(|| Instant::now() + PACE);
            if batch.progress == Progress::Ended {
                return Some(self.last_piece(&batch));
            }
            let piece = self.written(&batch);
            if !piece.is_empty() {
                return Some(Bytes::from(piece));
            }
        }
    }

    /// The end of the stream: the batch, and the id to resume after.
    fn last_piece(&mut self, batch: &Batch) -> Bytes {
        self.state = State::Ended;
        let mut text = self.written(batch);
        text.extend_from_slice(format!("id: {}\n\n", self.reader.position()).as_bytes());
        Bytes::from(text)
    }

    /// Waits for the next event, unless there are more already.
    #[expect(clippy::disallowed_methods, reason = "connections live on the machine's clock")]
    async fn pause(&self, heartbeat_at: Instant) -> Pause {
        let news = async {
            match self.read_next_at {
                Some(at) => {
                    tokio::time::sleep_until(at).await;
                    self.reader.wait().await;
                }
                // Other connections have their turn.
                None => tokio::task::yield_now().await,
            }
        };
        tokio::select! {
            biased;
            () = self.shutdown.started() => Pause::Stopping,
            () = tokio::time::sleep_until(heartbeat_at) => Pause::HeartbeatDue,
            () = news => Pause::Over,
        }
    }

    /// The batch as blocks of the stream.
    fn written(&self, batch: &Batch) -> Vec<u8> {
        let mut text = Vec::with_capacity(batch.events.len() * EVENT_BYTES);
        if let Some((id, gap)) = batch.gap {
            block(&mut text, &id, ShownGap::KIND, &ShownGap::new(gap, &self.node));
        }
        for (id, event) in &batch.events {
            block(&mut text, id, event.kind().as_str(), &ShownLiveEvent::new(*id, event, &self.node));
        }
        text
    }
}

/// Adds one event. Its data is a line: JSON has no line breaks.
fn block<D: Serialize>(text: &mut Vec<u8>, id: &EventId, name: &str, data: &D) {
    let before = text.len();
    text.extend_from_slice(format!("id: {id}\nevent: {name}\ndata: ").as_bytes());
    match serde_json::to_writer(&mut *text, data) {
        Ok(()) => text.extend_from_slice(b"\n\n"),
        Err(error) => {
            // Events are names and numbers: there is nothing in them that could fail.
            tracing::error!(%error, "an event cannot be shown");
            text.truncate(before);
        }
    }
}

/// What a pause ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    Over,
    HeartbeatDue,
    Stopping,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::StreamExt as _;
    use redrive_core::TenantId;
    use redrive_engine::events::{Event, Sink as _};

    use super::*;
    use crate::live_events::tests::{keeping, lane, task};
    use crate::live_events::{EventFilter, LiveEvents, StartAt};
    use crate::rest::shutdown;

    fn accept(live: &LiveEvents, dependency: &str) {
        live.on(&Event::Accepted(&task(lane("acme", dependency))));
    }

    /// A stream of the events of a dependency, behind its opening.
    async fn opened(live: &Arc<LiveEvents>, shutdown: ShutdownSignal) -> Pieces {
        let filter = EventFilter { dependency: Some(lane("acme", "a").dependency), ..EventFilter::default() };
        let tenant = TenantId::try_new("acme").unwrap();
        let reader = EventReader::open(live, tenant, filter, StartAt::Now, true).unwrap();
        let mut stream = pieces(reader, "n", shutdown);
        let opening = next(&mut stream).await;
        assert!(opening.ends_with("retry: 1000\nid: 0000000000000007-0\n\n"), "{opening}");
        stream
    }

    async fn next(stream: &mut Pieces) -> String {
        String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_moves_the_position_of_a_reader_that_is_shown_nothing() {
        let (_trigger, signal) = shutdown::channel();
        let live = keeping(10);
        let mut stream = opened(&live, signal).await;
        let began = Instant::now();
        assert_eq!(next(&mut stream).await, ": heartbeat\nid: 0000000000000007-0\n\n");
        assert_eq!(began.elapsed(), Duration::from_secs(15));
        (0..3).for_each(|_| accept(&live, "b"));
        assert_eq!(next(&mut stream).await, ": heartbeat\nid: 0000000000000007-3\n\n");
        assert_eq!(began.elapsed(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "time is paused")]
    async fn an_event_wakes_a_reader_that_waits() {
        let (_trigger, signal) = shutdown::channel();
        let live = keeping(10);
        let mut stream = opened(&live, signal).await;
        let began = Instant::now();
        let second = Duration::from_secs(1);
        // It is reading, and goes on to wait.
        assert!(tokio::time::timeout(second, stream.next()).await.is_err());
        accept(&live, "a");
        let piece = next(&mut stream).await;
        assert!(piece.contains("event: accepted"), "{piece}");
        assert_eq!(began.elapsed(), second, "before the next heartbeat");
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_come_soon_after_the_last_read_are_sent_together() {
        let (_trigger, signal) = shutdown::channel();
        let live = keeping(10);
        let mut stream = opened(&live, signal).await;
        accept(&live, "a");
        // It has not read yet.
        assert_eq!(next(&mut stream).await.matches("event: accepted").count(), 1);
        let began = Instant::now();
        (0..3).for_each(|_| accept(&live, "a"));
        assert_eq!(next(&mut stream).await.matches("event: accepted").count(), 3);
        assert_eq!(began.elapsed(), Duration::from_millis(20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_sends_what_there_is_and_ends_the_stream() {
        let (trigger, signal) = shutdown::channel();
        let live = keeping(10);
        let mut stream = opened(&live, signal).await;
        accept(&live, "a");
        accept(&live, "b");
        trigger.start();
        let last = next(&mut stream).await;
        assert!(last.starts_with("id: 0000000000000007-1\nevent: accepted\n"), "{last}");
        assert!(last.ends_with("\n\nid: 0000000000000007-2\n\n"), "{last}");
        assert!(stream.next().await.is_none());
    }
}
