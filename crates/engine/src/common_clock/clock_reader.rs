//! Clock reader: reads the shared store's clock with every heartbeat, and reports each problem of the clocks once.

use std::sync::Arc;
use std::time::Duration;

use super::{ClockState, CommonClock};
use crate::engine_state::{EngineState, Phase};
use crate::events::{Events, Report};

/// How soon the store's clock is read again while the time is uncertain.
const UNCERTAIN_READ_EVERY: Duration = Duration::from_secs(1);

/// Runs until no attempt is left.
pub(crate) async fn run(shared: Arc<EngineState>) {
    let mut reported = None;
    loop {
        if let Some(store) = shared.store.shared().filter(|_| shared.clock.is_shared) {
            if let Err(error) = shared.clock.read_well(store).await {
                shared.events.report(Report::ClockUnread(&error));
            }
            shared.clock.review();
        }
        report(&shared.clock, &shared.events, &mut reported);
        let wait = if shared.clock.is_certain() { shared.options.beat_every } else { UNCERTAIN_READ_EVERY };
        tokio::select! {
            biased;
            () = shared.reached(Phase::Confirming) => return,
            () = shared.clock.sleep(wait) => {}
        }
    }
}

/// The last report: whether the machine's clock is off, and why nothing is claimed.
type Reported = (bool, Option<Uncertain>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Uncertain {
    Stepped,
    Unknown,
}

fn report(clock: &CommonClock, events: &Events, reported: &mut Option<Reported>) {
    let state = clock.state();
    let uncertain = match state {
        ClockState { is_certain: true, .. } => None,
        ClockState { stepped_ms: Some(_), .. } => Some(Uncertain::Stepped),
        ClockState { .. } => Some(Uncertain::Unknown),
    };
    let now: Reported = (state.is_machine_off(), uncertain);
    let (was_off, was_uncertain) = reported.replace(now).unwrap_or_default();
    if now.0 != was_off {
        events.report(Report::MachineClock(state, clock.is_shared));
    }
    if uncertain != was_uncertain {
        events.report(Report::CommonTime(state));
    }
}
