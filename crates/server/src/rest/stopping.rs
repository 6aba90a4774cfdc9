//! Tells everybody in the server that it stops.

use tokio::sync::watch;

/// Begins the stop.
#[derive(Debug)]
pub(crate) struct Stop(watch::Sender<bool>);

/// Learns of the stop. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

/// Both ends.
#[expect(clippy::disallowed_methods, reason = "connections are not simulated: in which order they end does not matter")]
pub(crate) fn channel() -> (Stop, Stopping) {
    let (sender, receiver) = watch::channel(false);
    (Stop(sender), Stopping(receiver))
}

impl Stop {
    pub(crate) fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Stopping {
    /// Ends when the stop begins, or at once if it has. A server that is gone has stopped.
    pub(crate) async fn begun(&self) {
        if let Err(gone) = self.0.clone().wait_for(|stopping| *stopping).await {
            tracing::trace!(%gone, "the server is gone");
        }
    }
}
