//! The other processes over a shared store: receives their notifications, and sends this process's heartbeats.
//!
//! Notifications only save time. A process that may have missed one reads the store (`lane_scan`).

use std::sync::Arc;

use redrive_store::{Heartbeat, LaneDue, News, Node, NodeId, SharedStore};

use crate::engine_state::{EngineState, Phase};
use crate::events::{Events, Report};
use crate::guard_exchange;

/// Receives notifications of other processes: lanes with due work, cancelled tasks, guards that changed. Runs until the engine gives up
/// the attempts in flight, because a cancel can still stop one of them while it drains.
pub(crate) async fn listen(shared: Arc<EngineState>) {
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
                News::GuardsChanged(lane) => guard_exchange::changed_elsewhere(&shared, &lane),
            }
        }
    }
}

/// Sends heartbeats until nothing of this process is in flight any more, then a message that it has left.
pub(crate) async fn keep_beating(shared: Arc<EngineState>) {
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
            // At once: from now on the other processes have to claim what was scheduled only here.
            () = shared.reached(Phase::Draining), if is_running => {}
            () = shared.clock.sleep(shared.options.beat_every) => {}
        }
    }
}

/// The heartbeat of this process.
fn beat(shared: &EngineState) -> Heartbeat {
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

/// The node list of an exclusive store: this process only.
pub(crate) fn alone(shared: &EngineState) -> Node {
    let beat = beat(shared);
    Node { id: NodeId::this(), seen_at: shared.clock.now(), leases: beat.in_flight, beat }
}

async fn leave(peers: &dyn SharedStore, events: &Events) {
    if let Err(error) = peers.leave().await {
        events.report(Report::LeavingFailed(&error));
    }
}
