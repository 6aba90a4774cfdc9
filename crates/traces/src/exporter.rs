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
                WokenBy::Stop => {
                    self.flush().await;
                    return self.report();
                }
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
            self.report_if_due();
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
        self.totals.sending(spans);
        let mut why = None;
        match timeout(self.batches.timeout, self.send(body, &mut why)).await {
            Ok(Some(rejected)) => {
                let rejected = rejected.min(spans);
                self.totals.exported(spans - rejected);
                if rejected > 0 {
                    self.totals.dropped(rejected);
                    self.last_failure = Some("the receiver rejected a part of a batch".into());
                }
            }
            Ok(None) => {
                self.totals.dropped(spans);
                self.last_failure = why;
            }
            Err(_) => {
                self.totals.dropped(spans);
                let within = self.batches.timeout;
                let cause = why.map(|why| format!(": {why}")).unwrap_or_default();
                self.last_failure = Some(format!("a batch could not be sent within {within:?}{cause}"));
            }
        }
        self.totals.sending(0);
        // Here too: while whole batches wait, the loop does nothing else.
        self.report_if_due();
    }

    /// Sends a batch until it is taken or can never be. Returns how many of its spans the receiver rejected; nothing if
    /// the batch was not taken. `why` is the reason of the last failure.
    async fn send(&mut self, body: Bytes, why: &mut Option<String>) -> Option<u64> {
        for tries in 1..=MOST_TRIES {
            let (failure, asked) = match self.client.post(body.clone()).await {
                Ok(answer) if (200..300).contains(&answer.status) => return Some(rejected(&answer)),
                Ok(answer) => {
                    let failure = format!("the receiver of spans answered {}", answer.status);
                    if !is_temporary(answer.status) {
                        *why = Some(failure);
                        return None;
                    }
                    (failure, answer.retry_after)
                }
                Err(failure) => (reason(&failure), None),
            };
            tracing::debug!(why = failure, tries, "spans were not exported");
            *why = Some(failure);
            if tries < MOST_TRIES {
                sleep(wait_after(tries, self.first_wait, asked)).await;
            }
        }
        None
    }

    /// Reports what was dropped: at once, and then at most once a minute.
    fn report_if_due(&mut self) {
        if self.reported.as_ref().is_none_or(|reported| reported.at.elapsed() >= REPORT_EVERY) {
            self.report();
        }
    }

    /// Reports what was dropped since the last report, if anything was.
    fn report(&mut self) {
        let total = self.totals.counts().dropped;
        let dropped = total - self.reported.as_ref().map_or(0, |reported| reported.dropped);
        if dropped > 0 {
            let reason = self.last_failure.take().unwrap_or_else(|| "too many spans waited".into());
            tracing::warn!(dropped, total, reason, "spans were dropped");
            self.reported = Some(Reported { at: Instant::now(), dropped: total });
        }
    }
}

/// The wait after a try that failed. It doubles with each try, and is what the receiver asked for if that is longer: after
/// a `Retry-After` of 0 there would be no pause at all.
fn wait_after(tries: u32, first: Duration, asked: Option<Duration>) -> Duration {
    let backoff = first.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)));
    backoff.max(asked.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_a_receiver_can_ask_for_longer_ones_only() {
        let first = Duration::from_secs(1);
        for (tries, asked, expected) in [
            (1, None, 1),
            (2, None, 2),
            (4, None, 8),
            (1, Some(0), 1),
            (3, Some(3), 4),
            (3, Some(5), 5),
            (1, Some(u64::MAX), u64::MAX),
        ] {
            let wait = wait_after(tries, first, asked.map(Duration::from_secs));
            assert_eq!(wait.as_secs(), expected, "after try {tries}, asked for {asked:?}");
        }
    }
}
