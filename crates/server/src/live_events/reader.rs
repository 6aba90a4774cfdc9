//! Reads events from a position on, in batches, and tells what was missed.
//!
//! A reader is a position: it holds nothing of the events that it has not read. If events leave the memory before it
//! has read them, the next batch begins with a [`Gap`].

use std::pin::pin;
use std::sync::Arc;

use redrive_core::TenantId;
use tokio::sync::OwnedSemaphorePermit;

use super::event::LiveEvent;
use super::event_id::EventId;
use super::filter::EventFilter;
use super::{LiveEvents, MOST_READERS};
use crate::operation_error::OperationError;

/// The most events that a batch has.
pub(crate) const BATCH: usize = 64;

/// The most events that are looked at for one batch: tasks wait meanwhile.
pub(crate) const LOOKED_AT: usize = 256;

/// Where a reader starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// With the next event.
    Now,
    /// With the oldest event that is kept.
    Past,
    /// After this event.
    After(EventId),
}

/// Events that a reader will not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Why.
    pub reason: GapReason,
    /// How many events of this node, whether the reader wanted them or not; `None` if that is not known.
    pub missed: Option<u64>,
}

/// Why events are missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapReason {
    /// The process that had them has ended, or is another node.
    Restart,
    /// They had left the memory when the reader came back.
    TooOld,
    /// They left the memory before the reader, which was connected, had read them.
    SlowReader,
}

impl GapReason {
    /// Every reason.
    pub const ALL: [GapReason; 3] = [GapReason::Restart, GapReason::TooOld, GapReason::SlowReader];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            GapReason::Restart => "restart",
            GapReason::TooOld => "too-old",
            GapReason::SlowReader => "slow-reader",
        }
    }
}

/// What a reader reads at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// What is missing before the events, and the id to resume after it.
    pub gap: Option<(EventId, Gap)>,
    /// The events that the reader wants, with their ids.
    pub events: Vec<(EventId, LiveEvent)>,
    /// Whether there may be more.
    pub progress: Progress,
}

/// How far a reader has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There are more events.
    Behind,
    /// All events so far were read.
    CaughtUp,
    /// All events were read that the reader was to read.
    Ended,
}

/// Reads the events of one tenant.
#[derive(Debug)]
pub struct EventReader {
    events: Arc<LiveEvents>,
    tenant: TenantId,
    filter: EventFilter,
    /// The number of the last event that was read or is skipped.
    position: u64,
    /// The last event to read; `None` for a reader that follows.
    until: Option<u64>,
    /// A gap that is not told yet.
    gap: Option<Gap>,
    /// One of the places for readers.
    _place: OwnedSemaphorePermit,
}

impl EventReader {
    /// A reader of a tenant's events. If it does not follow, it ends with the newest event there is now.
    pub(crate) fn open(
        events: &Arc<LiveEvents>,
        tenant: TenantId,
        filter: EventFilter,
        start: StartAt,
        follows: bool,
    ) -> Result<Self, OperationError> {
        if !events.is_on() {
            return Err(OperationError::EventsOff);
        }
        let too_many = |_| OperationError::TooManyReaders { most: MOST_READERS };
        let place = events.places.clone().try_acquire_owned().map_err(too_many)?;
        let log = events.lock();
        let (last, last_gone) = (log.ring.last(), log.ring.last_gone());
        drop(log);
        let (position, gap) = match start {
            StartAt::Now => (last, None),
            StartAt::Past => (last_gone, None),
            StartAt::After(id) if id.start != events.start => {
                (last_gone, Some(Gap { reason: GapReason::Restart, missed: None }))
            }
            StartAt::After(id) if id.number > last => return Err(OperationError::FutureEvent { id }),
            StartAt::After(id) if id.number < last_gone => {
                (last_gone, Some(Gap { reason: GapReason::TooOld, missed: Some(last_gone - id.number) }))
            }
            StartAt::After(id) => (id.number, None),
        };
        let until = (!follows).then_some(last);
        Ok(EventReader { events: events.clone(), tenant, filter, position, until, gap, _place: place })
    }

    /// The id to resume after what was read so far.
    pub fn position(&self) -> EventId {
        self.id(self.position)
    }

    /// Reads what is there, up to a bound.
    pub fn read(&mut self) -> Batch {
        if let Some(gap) = self.gap.take() {
            return Batch { gap: Some((self.position(), gap)), events: Vec::new(), progress: Progress::Behind };
        }
        let mut events = Vec::new();
        let log = self.events.lock();
        let (last, last_gone) = (self.until.unwrap_or(log.ring.last()), log.ring.last_gone());
        let missed = last_gone.saturating_sub(self.position);
        let mut position = self.position.max(last_gone);
        for (number, event) in log.ring.after(position).take(LOOKED_AT).take_while(|(number, _)| *number <= last) {
            if events.len() == BATCH {
                break;
            }
            position = number;
            if event.tenant == self.tenant && self.filter.matches(event) {
                events.push((number, event.clone()));
            }
        }
        drop(log);
        self.position = position;
        let progress = match (position >= last, self.until) {
            (false, _) => Progress::Behind,
            (true, None) => Progress::CaughtUp,
            (true, Some(_)) => Progress::Ended,
        };
        let gap =
            (missed > 0).then(|| (self.id(last_gone), Gap { reason: GapReason::SlowReader, missed: Some(missed) }));
        Batch { gap, events: events.into_iter().map(|(number, event)| (self.id(number), event)).collect(), progress }
    }

    /// Waits until there is an event after what was read.
    pub async fn wait(&self) {
        loop {
            let mut news = pin!(self.events.news.notified());
            // Registered before the look: an event in between is not missed.
            news.as_mut().enable();
            if self.has_news() {
                return;
            }
            news.await;
        }
    }

    /// Whether there is an event after what was read. If there is none, the next one wakes the readers that wait.
    fn has_news(&self) -> bool {
        let mut log = self.events.lock();
        let has_news = log.ring.last() > self.position;
        log.is_awaited |= !has_news;
        has_news
    }

    fn id(&self, number: u64) -> EventId {
        EventId { start: self.events.start, number }
    }
}
