//! SIGINT and SIGTERM, as something that every wait can be cut short by.

use std::future::Future;

use tokio::sync::watch;

use crate::serve::Signals;

/// Whether a signal asked the relay to stop.
#[derive(Debug, Clone)]
pub(super) struct Stop(watch::Receiver<Option<&'static str>>);

impl Stop {
    /// Listens for the signals. The first is heard here, the second ends the process at once.
    pub(super) fn install() -> anyhow::Result<Self> {
        let mut signals = Signals::install()?;
        let (tell, told) = watch::channel(None);
        tokio::spawn(async move {
            tell.send_replace(Some(signals.next().await));
            signals.end_at_next();
        });
        Ok(Stop(told))
    }

    /// The signal that came.
    pub(super) fn signal(&self) -> Option<&'static str> {
        *self.0.borrow()
    }

    /// Waits for `work`, but not longer than until the signal: `None` then.
    pub(super) async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut told = self.0.clone();
        tokio::select! {
            biased;
            // Without a sender no signal can come any more.
            Ok(_) = told.wait_for(Option::is_some) => None,
            done = work => Some(done),
        }
    }
}
