//! The context of every operation: the engine, the limits, and what operations share.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::Timestamp;
use redrive_core::health::Thresholds;
use redrive_core::trace::Propagators;
use redrive_engine::Handle;
use redrive_engine::policies::Resolved;
use redrive_store::TaskDetail;
use tokio::sync::Semaphore;

use crate::alerts::{self, Alerts};
use crate::health_windows::HealthWindows;
use crate::idempotency;
use crate::live_events::LiveEvents;
use crate::metrics::{Metrics, SpanCounter};
use crate::standard::Standard;
use crate::wire::Secrets;

/// The most pages of tasks that are read at a time. A task may bring 100 KiB into memory of which its page shows
/// little, so hundreds of pages at once would hold more than all answers together. More at a time would not be faster
/// either.
const PAGES_AT_ONCE: usize = 8;

/// The context of every operation. Its clones share the counters and the callers that wait.
#[derive(Clone)]
pub struct App {
    /// The running engine.
    pub engine: Handle,
    /// The limits of requests.
    pub limits: Limits,
    /// What happens to policies that break the retry standard.
    pub standard: Standard,
    /// Which names of headers and parameters are secret.
    pub secrets: Secrets,
    /// Permits to read a page of tasks or records.
    pub pages: Arc<Semaphore>,
    /// How long idempotency records are kept, and how long executions may take.
    pub idempotency: idempotency::Settings,
    /// Counts the answers to calls for idempotency records.
    pub totals: Arc<idempotency::Totals>,
    /// The callers that wait for an idempotency record.
    pub record_waiters: Arc<idempotency::Waiters>,
    /// Counts the engine's events: the same value is one of its sinks.
    pub metrics: Arc<Metrics>,
    /// Counts the tasks that ended in the last hour: the same value is one of the engine's sinks.
    pub health: Arc<HealthWindows>,
    /// When this process began to count.
    pub started_at: Timestamp,
    /// What the figures of health mean.
    pub thresholds: Thresholds,
    /// What fires and has fired: the same value is one of the engine's sinks, and its relay of alerts.
    pub alerts: Arc<Alerts>,
    /// The last events of this process: the same value is one of the engine's sinks.
    pub live_events: Arc<LiveEvents>,
    /// The name of this process among those over one store.
    pub node: String,
    /// What is taken from callers of their traces.
    pub propagators: Propagators,
    /// Reads how many spans were exported; nothing if traces are off.
    pub span_counts: Option<SpanCounter>,
}

impl App {
    /// The policy that a task pins, with the task's overrides. Nothing if it is no longer kept, or cannot be read now: what it
    /// says about the task is not worth an answer that fails.
    pub(crate) async fn policy_of(&self, detail: &TaskDetail) -> Option<Arc<Resolved>> {
        let policy = self.engine.policies().of_task(&detail.task, &detail.request).await;
        policy.inspect_err(|error| tracing::debug!(%error, task = %detail.task.id, "its policy was not read")).ok()
    }

    /// The operations over `engine`, with the default limits and without the retry standard.
    pub fn new(engine: Handle) -> Self {
        App {
            started_at: engine.now(),
            engine,
            limits: Limits::default(),
            standard: Standard::Off,
            secrets: Secrets::default(),
            pages: Arc::new(Semaphore::new(PAGES_AT_ONCE)),
            idempotency: idempotency::Settings::default(),
            totals: Arc::default(),
            record_waiters: Arc::default(),
            metrics: Arc::default(),
            health: Arc::default(),
            thresholds: Thresholds::default(),
            alerts: Alerts::new(alerts::Settings::default()),
            live_events: LiveEvents::off(),
            node: String::new(),
            propagators: Propagators::default(),
            span_counts: None,
        }
    }
}

/// The limits of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a body that comes in a document, decoded. 1 MiB by default.
    pub body_bytes: usize,
    /// The most bytes of a body that is stored with its task, if there is storage for larger ones. 64 KiB by default.
    pub inline_body_bytes: usize,
    /// The most bytes of a body that is uploaded. 64 MiB by default.
    pub stored_body_bytes: u64,
    /// The most bytes of a target's URL. 8 KiB by default.
    pub url_bytes: usize,
    /// The most header fields of a task. 100 by default.
    pub headers: usize,
    /// The most bytes of all header fields of a task. 32 KiB by default.
    pub header_bytes: usize,
    /// The most labels of a task. 20 by default.
    pub labels: usize,
    /// The most characters of a label's name. 64 by default.
    pub label_name_chars: usize,
    /// The most characters of a label's value. 256 by default.
    pub label_value_chars: usize,
    /// The most tasks, records or events in a batch. 1,000 by default.
    pub batch_tasks: usize,
    /// The most bytes of a batch, as it is sent. 32 MiB by default.
    pub batch_bytes: usize,
    /// The most bytes of any other document, as it is sent. 256 KiB by default.
    pub document_bytes: usize,
    /// How many items a page has by default: 50.
    pub page_default: usize,
    /// The most items of a page. 500 by default.
    pub page_most: usize,
    /// The most bytes of a page, unless its first item alone is larger. 1 MiB by default.
    pub page_bytes: usize,
    /// The longest that a caller may wait for a task's end. 30 s by default.
    pub longest_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 1024 * 1024,
            inline_body_bytes: 64 * 1024,
            stored_body_bytes: 64 * 1024 * 1024,
            url_bytes: 8 * 1024,
            headers: 100,
            header_bytes: 32 * 1024,
            labels: 20,
            label_name_chars: 64,
            label_value_chars: 256,
            batch_tasks: 1_000,
            batch_bytes: 32 * 1024 * 1024,
            document_bytes: 256 * 1024,
            page_default: 50,
            page_most: 500,
            page_bytes: 1024 * 1024,
            longest_wait: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// The most bytes of one submission, as it is sent. JSON may use six bytes for a character of one (`\u0000`), and a
    /// body within its limit is never refused for its notation.
    pub fn submission_bytes(&self) -> usize {
        self.body_bytes.saturating_mul(6).saturating_add(self.document_bytes)
    }

    /// How many items a page has when the caller asks for `limit`.
    pub fn page(&self, limit: Option<usize>) -> usize {
        limit.unwrap_or(self.page_default).clamp(1, self.page_most.max(1))
    }
}
