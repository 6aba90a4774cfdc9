//! Signals the shutdown of the server to its connections.

use tokio::sync::watch;

/// Starts the shutdown.
#[derive(Debug)]
pub(crate) struct ShutdownTrigger(watch::Sender<bool>);

/// Waits for the shutdown to start. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ShutdownSignal(watch::Receiver<bool>);

/// A trigger and its signal.
#[expect(clippy::disallowed_methods, reason = "connections are not simulated: in which order they end does not matter")]
pub(crate) fn channel() -> (ShutdownTrigger, ShutdownSignal) {
    let (sender, receiver) = watch::channel(false);
    (ShutdownTrigger(sender), ShutdownSignal(receiver))
}

impl ShutdownTrigger {
    pub(crate) fn start(&self) {
        self.0.send_replace(true);
    }
}

impl ShutdownSignal {
    /// Ends when the shutdown starts, or at once if it has started or the server is gone.
    pub(crate) async fn started(&self) {
        if let Err(gone) = self.0.clone().wait_for(|stopping| *stopping).await {
            tracing::trace!(%gone, "the server is gone");
        }
    }
}
