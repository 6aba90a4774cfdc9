//! The way to a connection: a shared one, an unused one, or a new one.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::ErrorType;
use redrive_engine::transport::SendError;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout};

use crate::connect::Opened;
use crate::deadline::Deadline;
use crate::failure;
use crate::line::Line;
use crate::peer::{Opening, Outcome, Peer, Way};
use crate::pool::Pool;

impl Pool {
    /// A connection to `peer`. Opening one may take `within`, waiting for a place as long as the deadline allows.
    pub(crate) async fn checkout(
        &self,
        peer: &Peer,
        within: Duration,
        deadline: &mut Deadline<'_>,
    ) -> Result<Line, SendError> {
        loop {
            match peer.way() {
                Way::Share(connection) => return Ok(Line::Shared(connection)),
                Way::Own => return self.own(peer, within, deadline).await,
                Way::Open(opening) => return self.open_for_all(opening, peer, within, deadline).await,
                Way::Wait(outcome) => see_what_comes(outcome, peer, within.min(remaining(deadline))).await?,
            }
        }
    }

    /// Opens a connection to `peer` in `place`.
    pub(crate) async fn open(
        &self,
        peer: &Peer,
        place: OwnedSemaphorePermit,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<Line, SendError> {
        // Boxed, because a send that finds a kept connection should not carry the room for all of this.
        let within = within.min(remaining(deadline));
        match Box::pin(self.connector.open(&peer.origin, within)).await? {
            Opened::Http1(connection) => {
                peer.speaks_http1();
                Ok(Line::Own { connection, place, kept: false })
            }
            Opened::Http2(connection) => {
                let connection = Arc::new(connection.start(place));
                peer.share(connection.clone(), self.kept_until(), self.count());
                Ok(Line::Shared(connection))
            }
        }
    }

    async fn own(&self, peer: &Peer, within: Duration, deadline: &mut Deadline<'_>) -> Result<Line, SendError> {
        let place = place(peer, deadline).await?;
        while let Some(mut connection) = peer.take_idle(Instant::now()) {
            if connection.is_free().await {
                return Ok(Line::Own { connection, place, kept: true });
            }
        }
        self.open(peer, place, within, deadline).await
    }

    /// Opens the connection that others wait for. One that turns out to be HTTP/1.1 is ours alone, and from then on
    /// everybody opens their own.
    async fn open_for_all(
        &self,
        opening: Opening<'_>,
        peer: &Peer,
        within: Duration,
        deadline: &mut Deadline<'_>,
    ) -> Result<Line, SendError> {
        let place = place(peer, deadline).await?;
        let opened = self.open(peer, place, within, deadline).await;
        opening.finish(opened.as_ref().map(|_| ()).map_err(SendError::clone));
        opened
    }
}

/// Waits for what another send's opening comes to. If it fails, this send has failed to connect just the same.
async fn see_what_comes(mut outcome: watch::Receiver<Outcome>, peer: &Peer, within: Duration) -> Result<(), SendError> {
    match timeout(within, outcome.wait_for(Option::is_some)).await {
        Ok(Ok(outcome)) => outcome.clone().unwrap_or(Ok(())),
        // The other send was given up; perhaps it is our turn.
        Ok(Err(_)) => Ok(()),
        Err(_) => {
            let message = format!("could not connect to {} within {within:?}", peer.origin);
            Err(failure::of(ErrorType::ConnectTimeout, message))
        }
    }
}

/// The permission to have a connection in use. Nothing has been sent while it is waited for, so a wait in vain is a
/// failure to connect rather than to answer.
async fn place(peer: &Peer, deadline: &mut Deadline<'_>) -> Result<OwnedSemaphorePermit, SendError> {
    let none = |problem: String| failure::of(ErrorType::ConnectTimeout, problem);
    match deadline.limit(peer.places.clone().acquire_owned()).await {
        Some(Ok(place)) => Ok(place),
        Some(Err(_)) => Err(none(format!("the connections to {} are closed", peer.origin))),
        None => Err(none(format!("no connection to {} became free within {:?}", peer.origin, deadline.timeout()))),
    }
}

fn remaining(deadline: &Deadline<'_>) -> Duration {
    deadline.at().saturating_duration_since(Instant::now())
}
