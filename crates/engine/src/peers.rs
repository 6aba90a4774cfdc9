//! The other processes over a shared store: hearing what they say, and letting them know of this one.
//!
//! What is heard here only saves time. A process that may have missed something looks at the store (`lane_scan`).

use std::sync::Arc;

use redrive_store::{Heartbeat, LaneDue, News, Node, NodeId, Shared as SharedStore};

use crate::events::{Events, Report};
use crate::shared::{Phase, Shared};

/// Notes what other processes announce: what has become due, and which tasks were cancelled. Until the engine gives up the
/// attempts under way: a cancel may still stop one of them while it drains.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let Some(peers) = shared.store.shared() else { return };
    loop {
        let heard = tokio::select! {
            biased;
            () = shared.reached(Phase::Returning) => return,
            heard = peers.next_news() => heard,
        };
        for news in heard {
            match news {
                News::Due(LaneDue { lane, class, next_due: Some(due) }) => {
                    shared.lanes.note_due(&lane, class, due);
                }
                News::Due(_) => {}
                News::CancelRequested(_, task) => shared.in_flight.cancel_if_here(task),
            }
        }
    }
}

/// Says that this process lives, until nothing of it is under way any more; then that it has left.
pub(crate) async fn keep_beating(shared: Arc<Shared>) {
    let Some(peers) = shared.store.shared() else { return };
    loop {
        let beat = beat(&shared);
        let is_running = !beat.is_draining;
        match peers.heartbeat(beat, shared.clock.now()).await {
            Ok(()) => shared.store_worked("heartbeat"),
            Err(error) => shared.store_failed("heartbeat", &error),
        }
        tokio::select! {
            biased;
            () = shared.reached(Phase::Confirming) => return leave(peers, &shared.events).await,
            // At once: from now on the others have to claim what only this process knew.
            () = shared.reached(Phase::Draining), if is_running => {}
            () = shared.clock.sleep(shared.options.beat_every) => {}
        }
    }
}

/// What this process says of itself.
fn beat(shared: &Shared) -> Heartbeat {
    Heartbeat {
        started_at: shared.started_at,
        version: shared.options.presence.version.clone(),
        address: shared.options.presence.address.clone(),
        in_flight: shared.in_flight.count() as u64,
        is_draining: shared.phase() != Phase::Running,
        claims: shared.phase() == Phase::Running && shared.clock.is_certain(),
        clock_ahead_ms: shared.clock.state().ahead_ms,
        every: shared.options.beat_every,
    }
}

/// The only process over its store.
pub(crate) fn alone(shared: &Shared) -> Node {
    let beat = beat(shared);
    Node { id: NodeId::this(), seen_at: shared.clock.now(), leases: beat.in_flight, beat }
}

async fn leave(peers: &dyn SharedStore, events: &Events) {
    if let Err(error) = peers.leave().await {
        events.report(Report::LeavingFailed(&error));
    }
}
