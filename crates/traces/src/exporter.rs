//! The loop that sends batches: when one is whole, and after the delay whatever there is.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::client::{Answer, Client, Failure};
use crate::otlp::{self, Encoder};
use crate::queue::Queue;
use crate::record::Record;
use crate::settings::{Batches, Settings};
use crate::traces::Totals;

/// The most tries for one batch.
const MOST_TRIES: u32 = 5;
/// The shortest time between two reports of what was dropped.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Sends what is queued.
pub(crate) struct Exporter {
    batches: Batches,
    first_wait: Duration,
    encoder: Encoder,
    client: Client,
    queue: Arc<Queue>,
    totals: Arc<Totals>,
    /// Why the last batch that failed did.
    last_failure: Option<String>,
    reported: Option<Reported>,
}

/// Why the loop goes on.
enum WokenBy {
    Stop,
    Delay,
    Batch,
}

/// What was last said about spans that were dropped.
struct Reported {
    at: Instant,
    dropped: u64,
}

impl Exporter {
    pub(crate) fn new(settings: Settings, client: Client, queue: Arc<Queue>, totals: Arc<Totals>) -> Self {
        Exporter {
            batches: settings.batches,
            first_wait: settings.first_wait,
            encoder: Encoder::new(settings.resource),
            client,
            queue,
            totals,
            last_failure: None,
            reported: None,
        }
    }

    /// Runs until `stopped` says so, and then sends what is left.
    pub(crate) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut flush_at = Instant::now() + self.batches.delay;
        loop {
            let woken = tokio::select! {
                biased;
                () = has_stopped(&mut stopped) => WokenBy::Stop,
                () = sleep_until(flush_at) => WokenBy::Delay,
                () = self.queue.batch() => WokenBy::Batch,
            };
            match woken {
                WokenBy::Stop => return self.flush().await,
                WokenBy::Delay => {
                    self.flush().await;
                    flush_at = Instant::now() + self.batches.delay;
                }
                WokenBy::Batch => {
                    while let Some(batch) = self.queue.take_whole() {
                        self.export(batch).await;
                    }
                }
            }
            self.report();
        }
    }

    /// Sends what waits now; what comes in meanwhile waits for its own turn.
    async fn flush(&mut self) {
        let mut left = self.queue.len();
        while left > 0 {
            let batch = self.queue.take();
            left = left.saturating_sub(batch.len().max(1));
            self.export(batch).await;
        }
    }

    async fn export(&mut self, batch: Vec<Record>) {
        if batch.is_empty() {
            return;
        }
        let spans = batch.len() as u64;
        let body = self.encoder.encode(batch);
        let within = self.batches.timeout;
        let sent = timeout(within, self.send(body)).await;
        match sent.unwrap_or_else(|_| Err(format!("a batch could not be sent within {within:?}"))) {
            Ok(rejected) => {
                let rejected = rejected.min(spans);
                self.totals.exported(spans - rejected);
                if rejected > 0 {
                    self.totals.dropped(rejected);
                    self.last_failure = Some("the receiver rejected a part of a batch".into());
                }
            }
            Err(why) => {
                self.totals.dropped(spans);
                self.last_failure = Some(why);
            }
        }
    }

    /// Sends a batch until it is taken or can never be. Returns how many of its spans the receiver rejected.
    async fn send(&mut self, body: Bytes) -> Result<u64, String> {
        let (mut tries, mut wait) = (0, self.first_wait);
        loop {
            tries += 1;
            let (why, asked) = match self.client.post(body.clone()).await {
                Ok(answer) if (200..300).contains(&answer.status) => return Ok(rejected(&answer)),
                Ok(answer) => {
                    let why = format!("the receiver of spans answered {}", answer.status);
                    if !is_temporary(answer.status) {
                        return Err(why);
                    }
                    (why, answer.retry_after)
                }
                Err(failure) => (reason(&failure), None),
            };
            if tries >= MOST_TRIES {
                return Err(why);
            }
            tracing::debug!(why, "spans were not exported, trying again");
            sleep(asked.unwrap_or(wait)).await;
            wait = wait.saturating_mul(2);
        }
    }

    /// Reports what was dropped: at once, and then at most once a minute.
    fn report(&mut self) {
        let dropped = self.totals.counts().dropped;
        let (before, is_due) = match &self.reported {
            Some(reported) => (reported.dropped, reported.at.elapsed() >= REPORT_EVERY),
            None => (0, true),
        };
        if dropped > before && is_due {
            let reason = self.last_failure.take().unwrap_or_else(|| "too many spans waited".into());
            tracing::warn!(dropped = dropped - before, total = dropped, reason, "spans were dropped");
            self.reported = Some(Reported { at: Instant::now(), dropped });
        }
    }
}

/// Waits for the stop. A sender that is gone says the same.
async fn has_stopped(stopped: &mut watch::Receiver<bool>) {
    drop(stopped.wait_for(|is_stopped| *is_stopped).await);
}

/// Whether a later try may succeed, by the rules of OTLP.
fn is_temporary(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// How many spans the receiver says that it did not take. An answer that cannot be read says nothing.
fn rejected(answer: &Answer) -> u64 {
    let answer = otlp::ExportAnswer::decode(answer.body.clone()).unwrap_or_default();
    answer.partial_success.map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or(0))
}

/// The failure and its causes.
fn reason(failure: &Failure) -> String {
    let causes = std::iter::successors(failure.source(), |error| (*error).source());
    causes.fold(failure.to_string(), |text, cause| format!("{text}: {cause}"))
}
