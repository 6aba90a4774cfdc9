//! SIGINT and SIGTERM: the first stops the service gracefully, the second at once.

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;
use crate::output::notice;

/// Signals this close together are one: `timeout` and some shells signal both the process and its group.
const ONE_AND_THE_SAME: Duration = Duration::from_millis(150);

/// The signals that stop a process.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Installs handlers for the signals.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let install = |kind| signal(kind).context("cannot listen for signals");
        Ok(Signals { interrupt: install(SignalKind::interrupt())?, terminate: install(SignalKind::terminate())? })
    }

    /// The name of the next signal.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// From now on a signal ends the process at once.
    pub(crate) fn end_at_next(mut self) {
        tokio::spawn(async move {
            let first = Instant::now();
            let mut name = self.next().await;
            while first.elapsed() < ONE_AND_THE_SAME {
                name = self.next().await;
            }
            notice(format!("{name} again: ending at once"));
            std::process::exit(Exit::Interrupted as i32);
        });
    }
}
