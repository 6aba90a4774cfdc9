//! The queue of sends that need a connection of their own to one origin: at most [`MOST_CONNECTING`] are opened at a
//! time.
//!
//! The number of connections is not limited here, only how many are opened at one moment. Thousands of tasks that are
//! due together would otherwise open a connection each, the origin's listen queue (often 128) would overflow, and the
//! kernel would retry the dropped ones after a second. A connection that becomes unused goes to the send that has
//! waited for longest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::http1;
use crate::origin_pool::Connections;

/// The most connections of one tenant to one origin that are being opened at a time.
pub(crate) const MOST_CONNECTING: usize = 64;

/// Counts the connections that are being opened, and holds the sends that wait.
#[derive(Default)]
pub(crate) struct ConnectQueue {
    opening: usize,
    waiting: VecDeque<oneshot::Sender<Grant>>,
}

/// What a send gets after its wait for a connection.
pub(crate) enum Grant {
    /// An unused connection.
    Connection(http1::Connection),
    /// The right to open one.
    Permit(Permit),
}

/// The right to open a connection. Dropping it passes it on.
pub(crate) struct Permit {
    /// Where it is passed on; nothing once it has been.
    of: Option<Arc<Mutex<Connections>>>,
    is_late: bool,
}

impl Permit {
    /// Whether it was waited for.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }
}

impl ConnectQueue {
    /// A permit, if fewer than [`MOST_CONNECTING`] connections are being opened, or a place in the queue.
    pub(crate) fn join(&mut self, of: &Arc<Mutex<Connections>>) -> Result<Permit, oneshot::Receiver<Grant>> {
        if self.opening < MOST_CONNECTING {
            self.opening += 1;
            return Ok(Permit { of: Some(of.clone()), is_late: false });
        }
        let (given, ticket) = oneshot::channel();
        // Sends that were given up meanwhile are removed here: they are not noticed elsewhere until they are first in
        // the queue.
        if self.waiting.len() == self.waiting.capacity() {
            self.waiting.retain(|waiting| !waiting.is_closed());
        }
        self.waiting.push_back(given);
        Err(ticket)
    }

    /// Gives an unused connection to the send that has waited for longest; answers it if none waits.
    pub(crate) fn hand_over(&mut self, mut connection: http1::Connection) -> Option<http1::Connection> {
        while let Some(waiting) = self.waiting.pop_front() {
            match waiting.send(Grant::Connection(connection)) {
                Err(Grant::Connection(refused)) => connection = refused,
                Err(Grant::Permit(_)) | Ok(()) => return None,
            }
        }
        Some(connection)
    }

    fn pass_on(&mut self, of: Arc<Mutex<Connections>>) {
        let mut permit = Permit { of: Some(of), is_late: true };
        while let Some(waiting) = self.waiting.pop_front() {
            match waiting.send(Grant::Permit(permit)) {
                Err(Grant::Permit(refused)) => permit = refused,
                Err(Grant::Connection(_)) | Ok(()) => return,
            }
        }
        // Taken out, because dropping it whole would pass it on once more.
        permit.of = None;
        self.opening -= 1;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(kept) = self.of.take() {
            let of = kept.clone();
            kept.lock().unwrap_or_else(PoisonError::into_inner).queue.pass_on(of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Arc<Mutex<Connections>> {
        Arc::new(Mutex::new(Connections::new(false)))
    }

    fn join(kept: &Arc<Mutex<Connections>>) -> Result<Permit, oneshot::Receiver<Grant>> {
        kept.lock().unwrap().queue.join(kept)
    }

    fn has_permit(ticket: &mut oneshot::Receiver<Grant>) -> Option<Permit> {
        match ticket.try_recv() {
            Ok(Grant::Permit(permit)) => Some(permit),
            _ => None,
        }
    }

    #[test]
    fn as_many_are_opened_at_a_time_as_may_be_and_the_others_follow_in_order() {
        let kept = kept();
        let mut permits: Vec<Permit> = (0..MOST_CONNECTING).map(|_| join(&kept).ok().unwrap()).collect();
        let (mut first, mut second) = (join(&kept).err().unwrap(), join(&kept).err().unwrap());
        assert!(has_permit(&mut first).is_none());
        drop(permits.pop());
        let permit = has_permit(&mut first);
        assert!(permit.is_some() && has_permit(&mut second).is_none());
        drop(permit);
        assert!(has_permit(&mut second).is_some());
        drop(permits);
        assert_eq!(kept.lock().unwrap().queue.opening, 0);
    }

    #[test]
    fn a_dropped_send_passes_its_permit_on_whether_it_waited_or_had_it() {
        let kept = kept();
        let mut permits: Vec<Permit> = (0..MOST_CONNECTING).map(|_| join(&kept).ok().unwrap()).collect();
        let (gone, unread) = (join(&kept).err().unwrap(), join(&kept).err().unwrap());
        let mut last = join(&kept).err().unwrap();
        drop(gone);
        drop(permits.pop());
        assert!(has_permit(&mut last).is_none(), "the one before has it");
        drop(unread);
        assert!(has_permit(&mut last).is_some());
        drop(permits);
        assert_eq!(kept.lock().unwrap().queue.opening, 0);
    }

    #[test]
    fn sends_that_were_given_up_are_not_remembered() {
        let kept = kept();
        let _permits: Vec<Permit> = (0..MOST_CONNECTING).map(|_| join(&kept).ok().unwrap()).collect();
        (0..10_000).for_each(|_| drop(join(&kept)));
        assert!(kept.lock().unwrap().queue.waiting.len() < 100);
    }
}
