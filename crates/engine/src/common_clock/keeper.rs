//! Reads the shared store's clock with every heartbeat, and reports what is wrong with the clocks, once.

use std::sync::Arc;
use std::time::Duration;

use super::{ClockState, CommonClock};
use crate::shared::{Phase, Shared};

/// How soon the store's clock is read again while the time is not certain.
const UNCERTAIN_READ_EVERY: Duration = Duration::from_secs(1);

/// Runs until no attempt is left.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut reported = None;
    loop {
        if let Some(store) = shared.store.shared().filter(|_| shared.clock.is_shared) {
            if let Err(error) = shared.clock.read_well(store).await {
                tracing::debug!(%error, "reading the store's clock failed, trying again");
            }
            shared.clock.review();
        }
        report(&shared.clock, &mut reported);
        let wait = if shared.clock.is_certain() { shared.options.beat_every } else { UNCERTAIN_READ_EVERY };
        tokio::select! {
            biased;
            () = shared.reached(Phase::Confirming) => return,
            () = shared.clock.sleep(wait) => {}
        }
    }
}

/// What was reported last: whether the machine's clock is off, and why nothing is claimed.
type Reported = (bool, Option<Uncertain>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Uncertain {
    Stepped,
    Unknown,
}

fn report(clock: &CommonClock, reported: &mut Option<Reported>) {
    let state = clock.state();
    let uncertain = match state {
        ClockState { is_certain: true, .. } => None,
        ClockState { stepped_ms: Some(_), .. } => Some(Uncertain::Stepped),
        ClockState { .. } => Some(Uncertain::Unknown),
    };
    let now: Reported = (state.is_machine_off(), uncertain);
    let (was_off, was_uncertain) = reported.replace(now).unwrap_or_default();
    if now.0 != was_off {
        report_machine(clock, state);
    }
    if uncertain != was_uncertain {
        report_store(state);
    }
}

fn report_machine(clock: &CommonClock, state: ClockState) {
    let ahead_ms = state.ahead_ms;
    match (state.is_machine_off(), clock.is_shared) {
        (false, _) => tracing::info!(ahead_ms, "the machine's clock is right again"),
        (true, true) => tracing::warn!(
            ahead_ms,
            "the machine's clock differs from the database's: this process works on the database's time; set the clock right"
        ),
        (true, false) => tracing::warn!(
            ahead_ms,
            "the machine's clock was set while this process runs: it goes on with its own time until it is started again"
        ),
    }
}

fn report_store(state: ClockState) {
    let ClockState { is_certain, stepped_ms, ahead_ms } = state;
    match (is_certain, stepped_ms) {
        (true, _) => tracing::info!(ahead_ms, "the time is certain again: claiming tasks"),
        (false, Some(stepped_ms)) => tracing::error!(
            stepped_ms,
            ahead_ms,
            "the database's clock has stepped: claiming no tasks until it is back, or agrees with this machine's clock"
        ),
        (false, None) => tracing::error!("the database's time cannot be determined: claiming no tasks until it can"),
    }
}
