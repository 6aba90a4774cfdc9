//! How a send gets a connection: a shared one, an idle one, or a new one.

use std::time::Duration;

use redrive_core::ErrorType;
use redrive_dial::Step;
use redrive_engine::transport::SendError;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use crate::checked_out::CheckedOut;
use crate::connect::Opened;
use crate::connect_queue::{Grant, MOST_CONNECTING, Permit};
use crate::deadline::Deadline;
use crate::failure;
use crate::http2::Use;
use crate::origin_pool::{NextStep, OpeningGuard, OriginPool, Progress};
use crate::pool::Pool;

impl Pool {
    /// A connection to an origin for this use. Opening one may take `within`.
    pub(crate) async fn checkout(
        &self,
        origin_pool: &OriginPool,
        usage: Use,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<CheckedOut, SendError> {
        loop {
            let within = within.min(remaining(deadline));
            match origin_pool.way(usage) {
                NextStep::Share(stream) => return Ok(CheckedOut::Shared(stream)),
                NextStep::Own => return self.own(origin_pool, usage, within, deadline).await,
                NextStep::Open(opening) => return self.open_for_all(&opening, origin_pool, usage, within).await,
                NextStep::Wait(progress) => wait(progress, origin_pool, within).await?,
            }
        }
    }

    /// Opens a connection to an origin for this use, and reports each step to `step`.
    pub(crate) async fn open(
        &self,
        origin_pool: &OriginPool,
        usage: Use,
        within: Duration,
        step: impl Fn(Step) + Send + Sync,
    ) -> Result<CheckedOut, SendError> {
        // Boxed, because a send that finds a kept connection should not carry the room for all of this.
        match Box::pin(self.connector.open(&origin_pool.origin, within, step)).await? {
            Opened::Http1(connection) => {
                origin_pool.speaks_http1();
                Ok(CheckedOut::Exclusive { connection, kept: false })
            }
            Opened::Http2(connection) => {
                let stream = connection.stream(usage);
                origin_pool.share(connection, self.kept_until(), self.count());
                stream
                    .map(CheckedOut::Shared)
                    .ok_or_else(|| failure::not_sent("a new connection has no stream to send on"))
            }
        }
    }

    /// An idle connection, or a new one as soon as this send may open one.
    async fn own(
        &self,
        origin_pool: &OriginPool,
        usage: Use,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<CheckedOut, SendError> {
        loop {
            let granted = match origin_pool.idle_or_permit(Instant::now()) {
                Ok(granted) => granted,
                // Boxed, as opening is: most sends find a kept connection and should not carry the room for the rest.
                Err(waiting) => Box::pin(wait_for_grant(waiting, origin_pool, deadline)).await?,
            };
            match granted {
                Grant::Connection(mut connection) => {
                    if connection.is_free().await {
                        return Ok(CheckedOut::Exclusive { connection, kept: true });
                    }
                }
                Grant::Permit(permit) => {
                    return Box::pin(self.open_with(permit, origin_pool, usage, within, deadline)).await;
                }
            }
        }
    }

    /// A new connection, as soon as this send may open one.
    pub(crate) async fn open_another(
        &self,
        origin_pool: &OriginPool,
        usage: Use,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<CheckedOut, SendError> {
        loop {
            let granted = match origin_pool.permit() {
                Ok(granted) => granted,
                Err(waiting) => wait_for_grant(waiting, origin_pool, deadline).await?,
            };
            match granted {
                // Others can use it.
                Grant::Connection(connection) => {
                    self.put_back(origin_pool, CheckedOut::Exclusive { connection, kept: true }).await
                }
                Grant::Permit(permit) => return self.open_with(permit, origin_pool, usage, within, deadline).await,
            }
        }
    }

    /// Opens a connection. A send that has less time for it than `within`, because it waited for the permit, has not
    /// seen the dependency fail if that is not enough.
    async fn open_with(
        &self,
        permit: Permit,
        origin_pool: &OriginPool,
        usage: Use,
        within: Duration,
        deadline: &Deadline<'_>,
    ) -> Result<CheckedOut, SendError> {
        let left = remaining(deadline);
        let opened = self.open(origin_pool, usage, within.min(left), |_| ()).await;
        let is_cut_short = permit.is_late() && left < within;
        drop(permit);
        opened.map_err(|error| match is_cut_short && is_a_matter_of_time(error.kind) {
            true => failure::not_sent(error.message),
            false => error,
        })
    }

    /// Opens a connection that others wait for. If it turns out to be HTTP/1.1, this send has it and the others open
    /// their own.
    async fn open_for_all(
        &self,
        opening: &OpeningGuard<'_>,
        origin_pool: &OriginPool,
        usage: Use,
        within: Duration,
    ) -> Result<CheckedOut, SendError> {
        let opened = self.open(origin_pool, usage, within, |step| opening.tell(Progress::At(step))).await;
        opening.tell(match &opened {
            Ok(_) => Progress::Opened,
            Err(error) => Progress::Failed { error: error.clone(), within },
        });
        opened
    }
}

/// Waits until another send has opened the connection. If that fails, this send fails with the same error, unless more
/// time could have helped and this send has more.
async fn wait(
    mut progress: watch::Receiver<Progress>,
    origin_pool: &OriginPool,
    within: Duration,
) -> Result<(), SendError> {
    let ended = |progress: &Progress| !matches!(progress, Progress::At(_));
    let given_up = timeout(within, progress.wait_for(ended)).await.is_ok_and(|ended| ended.is_err());
    let reached = progress.borrow().clone();
    match reached {
        // The other send was given up: look again.
        Progress::At(_) if given_up => Ok(()),
        Progress::Opened => Ok(()),
        Progress::Failed { error, within: less } if less < within && is_a_matter_of_time(error.kind) => Ok(()),
        Progress::Failed { error, .. } => Err(error),
        Progress::At(step) => Err(failure::dial(step.timed_out(&origin_pool.origin.endpoint, within))),
    }
}

/// Waits for a permit to open a connection, or for a connection that another send does not need any more.
async fn wait_for_grant(
    waiting: oneshot::Receiver<Grant>,
    origin_pool: &OriginPool,
    deadline: &Deadline<'_>,
) -> Result<Grant, SendError> {
    match timeout(remaining(deadline), waiting).await {
        Ok(Ok(granted)) => Ok(granted),
        Ok(Err(_)) | Err(_) => {
            let most = MOST_CONNECTING;
            let late = format!(
                "{most} connections to {} were being opened, and there was no time for one more",
                origin_pool.origin
            );
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
