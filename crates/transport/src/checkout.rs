//! The way to a connection: a shared one, an unused one, or a new one.

use std::time::Duration;

use redrive_core::ErrorType;
use redrive_engine::transport::SendError;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use crate::connect::{Opened, Step};
use crate::deadline::Deadline;
use crate::failure;
use crate::http2::Use;
use crate::line::Line;
use crate::opening::{self, Ticket, Turn};
use crate::peer::{Opening, Peer, Progress, Way};
use crate::pool::Pool;

impl Pool {
    /// A connection to `peer` for this use. Opening one may take `within`.
    pub(crate) async fn checkout(
        &self,
        peer: &Peer,
        usage: Use,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<Line, SendError> {
        loop {
            let within = within.min(remaining(deadline));
            match peer.way(usage) {
                Way::Share(stream) => return Ok(Line::Shared(stream)),
                Way::Own => return self.own(peer, usage, within, deadline).await,
                Way::Open(opening) => return self.open_for_all(&opening, peer, usage, within).await,
                Way::Wait(progress) => wait(progress, peer, within).await?,
            }
        }
    }

    /// Opens a connection to `peer` for this use, and tells `step` what is being done.
    pub(crate) async fn open(
        &self,
        peer: &Peer,
        usage: Use,
        within: Duration,
        step: impl Fn(Step) + Send + Sync,
    ) -> Result<Line, SendError> {
        // Boxed, because a send that finds a kept connection should not carry the room for all of this.
        match Box::pin(self.connector.open(&peer.origin, within, step)).await? {
            Opened::Http1(connection) => {
                peer.speaks_http1();
                Ok(Line::Own { connection, kept: false })
            }
            Opened::Http2(connection) => {
                let stream = connection.stream(usage);
                peer.share(connection, self.kept_until(), self.count());
                stream.map(Line::Shared).ok_or_else(|| failure::not_sent("a new connection has no stream to send on"))
            }
        }
    }

    /// An unused connection, or a new one when it is this send's turn to open one.
    async fn own(&self, peer: &Peer, usage: Use, within: Duration, deadline: &Deadline<'_>) -> Result<Line, SendError> {
        loop {
            let ticket = match peer.ticket(Instant::now()) {
                Ok(ticket) => ticket,
                // Boxed, as opening is: most sends find a kept connection and should not carry the room for the rest.
                Err(waiting) => Box::pin(wait_for(waiting, peer, deadline)).await?,
            };
            match ticket {
                Ticket::Connection(mut connection) => {
                    if connection.is_free().await {
                        return Ok(Line::Own { connection, kept: true });
                    }
                }
                Ticket::Turn(turn) => return Box::pin(self.open_in(turn, peer, usage, within, deadline)).await,
            }
        }
    }

    /// A new connection, when it is this send's turn to open one.
    pub(crate) async fn fresh(
        &self,
        peer: &Peer,
        usage: Use,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<Line, SendError> {
        loop {
            let ticket = match peer.turn() {
                Ok(ticket) => ticket,
                Err(waiting) => wait_for(waiting, peer, deadline).await?,
            };
            match ticket {
                // Others can use it.
                Ticket::Connection(connection) => self.put_back(peer, Line::Own { connection, kept: true }).await,
                Ticket::Turn(turn) => return self.open_in(turn, peer, usage, within, deadline).await,
            }
        }
    }

    /// Opens a connection. A send that has less time for it than `within`, because it waited for its turn, has not seen the
    /// dependency fail if that is not enough.
    async fn open_in(
        &self,
        turn: Turn,
        peer: &Peer,
        usage: Use,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<Line, SendError> {
        let left = remaining(deadline);
        let opened = self.open(peer, usage, within.min(left), |_| ()).await;
        let is_cut_short = turn.is_late() && left < within;
        drop(turn);
        opened.map_err(|error| match is_cut_short && is_a_matter_of_time(error.kind) {
            true => failure::not_sent(error.message),
            false => error,
        })
    }

    /// Opens a connection that others wait for. If it turns out to be HTTP/1.1, this send has it and the others open their
    /// own.
    async fn open_for_all(
        &self,
        opening: &Opening<'_>,
        peer: &Peer,
        usage: Use,
        within: Duration,
    ) -> Result<Line, SendError> {
        let opened = self.open(peer, usage, within, |step| opening.tell(Progress::At(step))).await;
        opening.tell(match &opened {
            Ok(_) => Progress::Opened,
            Err(error) => Progress::Failed { error: error.clone(), within },
        });
        opened
    }
}

/// Waits for what another send's opening comes to. If it fails, this send has failed to connect in the same way, unless
/// more time could have helped and this send has more.
async fn wait(mut progress: watch::Receiver<Progress>, peer: &Peer, within: Duration) -> Result<(), SendError> {
    let ended = |progress: &Progress| !matches!(progress, Progress::At(_));
    let given_up = timeout(within, progress.wait_for(ended)).await.is_ok_and(|ended| ended.is_err());
    let reached = progress.borrow().clone();
    match reached {
        // The other send was given up: look again.
        Progress::At(_) if given_up => Ok(()),
        Progress::Opened => Ok(()),
        Progress::Failed { error, within: less } if less < within && is_a_matter_of_time(error.kind) => Ok(()),
        Progress::Failed { error, .. } => Err(error),
        Progress::At(step) => Err(step.timed_out(&peer.origin, within)),
    }
}

/// Waits for a turn, or for a connection that others do not need any more.
async fn wait_for(
    waiting: oneshot::Receiver<Ticket>,
    peer: &Peer,
    deadline: &Deadline<'_>,
) -> Result<Ticket, SendError> {
    match timeout(remaining(deadline), waiting).await {
        Ok(Ok(ticket)) => Ok(ticket),
        Ok(Err(_)) | Err(_) => {
            let most = opening::MOST;
            let late =
                format!("{most} connections to {} were being opened, and there was no time for one more", peer.origin);
            Err(failure::not_sent(late))
        }
    }
}

fn is_a_matter_of_time(kind: ErrorType) -> bool {
    matches!(kind, ErrorType::Dns | ErrorType::ConnectTimeout | ErrorType::TlsHandshakeTimeout)
}

/// How much time `deadline` leaves.
pub(crate) fn remaining(deadline: &Deadline<'_>) -> Duration {
    deadline.at().saturating_duration_since(Instant::now())
}
