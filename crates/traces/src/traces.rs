//! The sink that makes spans of the engine's events, and the handle of the export.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::trace::Sampler;
use redrive_dial::Dialer;
use redrive_engine::events::{EndedBy, Event, Sink};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::exporter::Exporter;
use crate::queue::Queue;
use crate::record::{self, Record};
use crate::settings::{InvalidReceiver, Settings};

/// Makes spans of the engine's events and exports them. A sink of the engine.
#[derive(Debug)]
pub struct Traces {
    sampler: Sampler,
    queue: Arc<Queue>,
    totals: Arc<Totals>,
    stop: watch::Sender<bool>,
}

/// How many spans were exported and dropped so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans that the receiver took.
    pub exported: u64,
    /// Spans that did not fit into the queue, could not be sent, or were rejected by the receiver.
    pub dropped: u64,
}

/// The counts, as they grow.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    exported: AtomicU64,
    dropped: AtomicU64,
    /// Spans of the batch that is being sent.
    sending: AtomicU64,
}

impl Totals {
    pub(crate) fn exported(&self, spans: u64) {
        self.exported.fetch_add(spans, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self, spans: u64) {
        self.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    pub(crate) fn sending(&self, spans: u64) {
        self.sending.store(spans, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> SpanCounts {
        SpanCounts { exported: self.exported.load(Ordering::Relaxed), dropped: self.dropped.load(Ordering::Relaxed) }
    }
}

impl Traces {
    /// Starts to export what `sampler` lets through. The task that is returned ends after [`Traces::stop`].
    pub fn start(
        settings: Settings,
        sampler: Sampler,
        dialer: Dialer,
    ) -> Result<(Arc<Self>, JoinHandle<()>), InvalidReceiver> {
        let queue = Arc::new(Queue::new(&settings.batches));
        let totals = Arc::new(Totals::default());
        let (stop, stopped) = watch::channel(false);
        let client = Client::new(&settings, dialer)?;
        let exporter = Exporter::new(settings, client, queue.clone(), totals.clone());
        let exporting = tokio::spawn(exporter.run(stopped));
        Ok((Arc::new(Traces { sampler, queue, totals, stop }), exporting))
    }

    /// How many spans were exported and dropped so far.
    pub fn counts(&self) -> SpanCounts {
        self.totals.counts()
    }

    /// Sends what waits, for this long at most, and ends the export.
    pub async fn stop(&self, mut exporting: JoinHandle<()>, within: Duration) {
        self.stop.send_replace(true);
        if tokio::time::timeout(within, &mut exporting).await.is_err() {
            exporting.abort();
            let lost = self.queue.len() as u64 + self.totals.sending.load(Ordering::Relaxed);
            self.totals.dropped(lost);
            let total = self.counts().dropped;
            tracing::warn!(dropped = lost, total, "the last spans could not be exported in time");
        }
    }

    fn note(&self, record: Record) {
        if self.queue.push(record).is_err() {
            self.totals.dropped(1);
        }
    }
}

impl Sink for Traces {
    fn on(&self, event: &Event<'_>) {
        match *event {
            // What is stored, so that there is one span for each entry of the attempt log.
            Event::Settled(claimed, settlement, status) if self.sampler.samples(&claimed.task) => {
                if let Some(attempt) = &settlement.attempt {
                    self.note(record::attempt(claimed, attempt, settlement.at));
                }
                if status.is_ended() {
                    self.note(record::settled_run(&claimed.task, settlement, status));
                }
            }
            Event::Ended(task, _, EndedBy::Cancel | EndedBy::Deadline | EndedBy::Budget)
                if self.sampler.samples(task) =>
            {
                self.note(record::ended_run(task));
            }
            _ => {}
        }
    }
}
