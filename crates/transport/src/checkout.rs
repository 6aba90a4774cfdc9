//! The way to a connection: a shared one, an unused one, or a new one.

use std::time::Duration;

use redrive_core::ErrorType;
use redrive_dial::Step;
use redrive_engine::transport::SendError;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use crate::connect::Opened;
use crate::connect_queue::{Granted, MOST_CONNECTING, Permit};
use crate::deadline::Deadline;
use crate::failure;
use crate::http2::Use;
use crate::line::Line;
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

    /// An unused connection, or a new one as soon as this send may open one.
    async fn own(&self, peer: &Peer, usage: Use, within: Duration, deadline: &Deadline<'_>) -> Result<Line, SendError> {
        loop {
            let granted = match peer.idle_or_permit(Instant::now()) {
                Ok(granted) => granted,
                // Boxed, as opening is: most sends find a kept connection and should not carry the room for the rest.
                Err(waiting) => Box::pin(wait_for_grant(waiting, peer, deadline)).await?,
            };
            match granted {
                Granted::Connection(mut connection) => {
                    if connection.is_free().await {
                        return Ok(Line::Own { connection, kept: true });
                    }
                }
                Granted::Permit(permit) => {
                    return Box::pin(self.open_with(permit, peer, usage, within, deadline)).await;
                }
            }
        }
    }

    /// A new connection, as soon as this send may open one.
    pub(crate) async fn open_another(
        &self,
        peer: &Peer,
        usage: Use,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<Line, SendError> {
        loop {
            let granted = match peer.permit() {
                Ok(granted) => granted,
                Err(waiting) => wait_for_grant(waiting, peer, deadline).await?,
            };
            match granted {
                // Others can use it.
                Granted::Connection(connection) => self.put_back(peer, Line::Own { connection, kept: true }).await,
                Granted::Permit(permit) => return self.open_with(permit, peer, usage, within, deadline).await,
            }
        }
    }

    /// Opens a connection. A send that has less time for it than `within`, because it waited for the permit, has not seen the
    /// dependency fail if that is not enough.
    async fn open_with(
        &self,
        permit: Permit,
        peer: &Peer,
        usage: Use,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<Line, SendError> {
        let left = remaining(deadline);
        let opened = self.open(peer, usage, within.min(left), |_| ()).await;
        let is_cut_short = permit.is_late() && left < within;
        drop(permit);
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
        Progress::At(step) => Err(failure::dial(step.timed_out(&peer.origin.endpoint, within))),
    }
}

/// Waits for a permit to open a connection, or for a connection that another send does not need any more.
async fn wait_for_grant(
    waiting: oneshot::Receiver<Granted>,
    peer: &Peer,
    deadline: &Deadline<'_>,
) -> Result<Granted, SendError> {
    match timeout(remaining(deadline), waiting).await {
        Ok(Ok(granted)) => Ok(granted),
        Ok(Err(_)) | Err(_) => {
            let most = MOST_CONNECTING;
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
