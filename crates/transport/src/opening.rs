//! Who may open a connection to an origin now, and who waits for one.
//!
//! Connections are not limited here: as many are opened as sends need. But not all at one moment. Thousands of tasks that are
//! due together would otherwise open a connection each, the origin's queue of new connections (often 128) would overflow, and
//! the system would try again after a second those that were dropped. So [`MOST`] are opened at a time, and a connection that
//! becomes unused meanwhile goes to the send that has waited for longest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::http1;
use crate::peer::Kept;

/// The most connections of one tenant to one origin that are being opened at a time.
pub(crate) const MOST: usize = 64;

/// The connections that are being opened, and the sends that wait.
#[derive(Default)]
pub(crate) struct Queue {
    opening: usize,
    waiting: VecDeque<oneshot::Sender<Ticket>>,
}

/// What ends a send's wait for a connection.
pub(crate) enum Ticket {
    /// This one is unused.
    Connection(http1::Connection),
    /// It may open one.
    Turn(Turn),
}

/// The right to open a connection. Dropping it passes it on.
pub(crate) struct Turn {
    /// Where it is passed on; nothing once it has been.
    of: Option<Arc<Mutex<Kept>>>,
    is_late: bool,
}

impl Turn {
    /// Whether it was waited for.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }
}

impl Queue {
    /// A turn, if fewer than [`MOST`] connections are being opened, or a place in the queue.
    pub(crate) fn join(&mut self, of: &Arc<Mutex<Kept>>) -> Result<Turn, oneshot::Receiver<Ticket>> {
        if self.opening < MOST {
            self.opening += 1;
            return Ok(Turn { of: Some(of.clone()), is_late: false });
        }
        let (given, ticket) = oneshot::channel();
        // Sends that were given up meanwhile are forgotten here: nobody else looks at those in the middle.
        if self.waiting.len() == self.waiting.capacity() {
            self.waiting.retain(|waiting| !waiting.is_closed());
        }
        self.waiting.push_back(given);
        Err(ticket)
    }

    /// Gives an unused connection to the send that has waited for longest; answers it if none waits.
    pub(crate) fn hand_over(&mut self, mut connection: http1::Connection) -> Option<http1::Connection> {
        while let Some(waiting) = self.waiting.pop_front() {
            match waiting.send(Ticket::Connection(connection)) {
                Err(Ticket::Connection(refused)) => connection = refused,
                Err(Ticket::Turn(_)) | Ok(()) => return None,
            }
        }
        Some(connection)
    }

    fn pass_on(&mut self, of: Arc<Mutex<Kept>>) {
        let mut turn = Turn { of: Some(of), is_late: true };
        while let Some(waiting) = self.waiting.pop_front() {
            match waiting.send(Ticket::Turn(turn)) {
                Err(Ticket::Turn(refused)) => turn = refused,
                Err(Ticket::Connection(_)) | Ok(()) => return,
            }
        }
        // Taken out, because dropping it whole would pass it on once more.
        turn.of = None;
        self.opening -= 1;
    }
}

impl Drop for Turn {
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

    fn kept() -> Arc<Mutex<Kept>> {
        Arc::new(Mutex::new(Kept::new(false)))
    }

    fn join(kept: &Arc<Mutex<Kept>>) -> Result<Turn, oneshot::Receiver<Ticket>> {
        kept.lock().unwrap().queue.join(kept)
    }

    fn has_turn(ticket: &mut oneshot::Receiver<Ticket>) -> Option<Turn> {
        match ticket.try_recv() {
            Ok(Ticket::Turn(turn)) => Some(turn),
            _ => None,
        }
    }

    #[test]
    fn as_many_are_opened_at_a_time_as_may_be_and_the_others_follow_in_order() {
        let kept = kept();
        let mut turns: Vec<Turn> = (0..MOST).map(|_| join(&kept).ok().unwrap()).collect();
        let (mut first, mut second) = (join(&kept).err().unwrap(), join(&kept).err().unwrap());
        assert!(has_turn(&mut first).is_none());
        drop(turns.pop());
        let turn = has_turn(&mut first);
        assert!(turn.is_some() && has_turn(&mut second).is_none());
        drop(turn);
        assert!(has_turn(&mut second).is_some());
        drop(turns);
        assert_eq!(kept.lock().unwrap().queue.opening, 0);
    }

    #[test]
    fn a_send_that_is_given_up_while_it_waits_or_with_its_turn_costs_nobody_a_turn() {
        let kept = kept();
        let mut turns: Vec<Turn> = (0..MOST).map(|_| join(&kept).ok().unwrap()).collect();
        let (gone, unread) = (join(&kept).err().unwrap(), join(&kept).err().unwrap());
        let mut last = join(&kept).err().unwrap();
        drop(gone);
        drop(turns.pop());
        assert!(has_turn(&mut last).is_none(), "the one before has it");
        drop(unread);
        assert!(has_turn(&mut last).is_some());
        drop(turns);
        assert_eq!(kept.lock().unwrap().queue.opening, 0);
    }

    #[test]
    fn sends_that_were_given_up_are_not_remembered() {
        let kept = kept();
        let _turns: Vec<Turn> = (0..MOST).map(|_| join(&kept).ok().unwrap()).collect();
        (0..10_000).for_each(|_| drop(join(&kept)));
        assert!(kept.lock().unwrap().queue.waiting.len() < 100);
    }
}
