//! The last check of an attempt, made once the connection is established and before the first byte is sent.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redrive_core::{Lane, Task, TaskId, Timestamp};

use crate::engine_state::{EngineState, Phase};
use crate::events::{Event, SentAttempt};
use crate::in_flight::Signals;
use crate::transport::{Gate, Withdrawn};

/// Decides whether the first byte may be sent, and records when it was.
pub(crate) struct FirstByte {
    shared: Arc<EngineState>,
    signals: Arc<Signals>,
    lane: Lane,
    task: TaskId,
    attempt: u32,
    due_at: Option<Timestamp>,
    deadline_at: Timestamp,
    send_by: Timestamp,
    /// In epoch milliseconds; zero until the first byte is sent.
    left_at: AtomicU64,
    is_refused: AtomicBool,
    /// Whether the event was emitted.
    is_reported: AtomicBool,
}

impl FirstByte {
    /// Makes the check for an attempt of `task` that must begin by `send_by`.
    pub(crate) fn new(shared: &Arc<EngineState>, signals: &Arc<Signals>, task: &Task, send_by: Timestamp) -> Arc<Self> {
        Arc::new(FirstByte {
            shared: shared.clone(),
            signals: signals.clone(),
            lane: task.lane.clone(),
            task: task.id,
            attempt: task.attempt_number,
            due_at: task.next_attempt_at,
            deadline_at: task.deadline_at,
            send_by,
            left_at: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
            is_reported: AtomicBool::new(false),
        })
    }

    /// When the first byte was sent, if it was.
    pub(crate) fn left_at(&self) -> Option<Timestamp> {
        let millis = self.left_at.load(Ordering::Acquire);
        (millis > 0).then(|| Timestamp::from_millis(millis))
    }

    /// Whether the check was made and refused the attempt.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Acquire)
    }
}

impl Gate for FirstByte {
    fn open(&self) -> Result<(), Withdrawn> {
        let now = self.shared.clock.now();
        let is_late = now > self.send_by;
        // The wall clock may have been set back while the connection was established.
        let is_early = self.due_at.is_some_and(|due| now < due) && !self.signals.is_released();
        let is_over = now >= self.deadline_at;
        let is_stopping = self.shared.phase() >= Phase::Returning;
        let is_cancelled = !self.signals.depart();
        if is_early || is_late || is_over || is_stopping || is_cancelled {
            self.left_at.store(0, Ordering::Release);
            self.is_refused.store(true, Ordering::Release);
            return Err(Withdrawn);
        }
        self.left_at.store(now.as_millis().max(1), Ordering::Release);
        // A closed connection may hand the request back unwritten; then the check is made again.
        if self.is_reported.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let FirstByte { lane, task, attempt, due_at, .. } = self;
        let sent = SentAttempt { lane, task: *task, attempt: *attempt, due_at: *due_at, sent_at: now };
        self.shared.events.emit(Event::Sent(sent));
        Ok(())
    }
}

impl fmt::Debug for FirstByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstByte")
            .field("send_by", &self.send_by)
            .field("left_at", &self.left_at)
            .finish_non_exhaustive()
    }
}
