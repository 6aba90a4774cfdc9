//! Lists the processes over the store.

use std::time::Duration;

use redrive_core::Timestamp;
use redrive_store::Node;

use crate::app::App;
use crate::failure::Failure;

/// How many heartbeats a process may miss before it is taken for dead.
const MISSED_BEATS: u32 = 3;

/// A process, and whether it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenNode {
    /// What is known of it.
    pub node: Node,
    /// What that means.
    pub state: NodeState,
}

/// Whether a process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// It does.
    Alive,
    /// It is stopping, and finishes what it has.
    Draining,
    /// It has been silent for longer than it should: dead, cut off, or standing still. Its leases run out.
    Silent,
}

/// Every process that has been heard of and has not left, in the order of their names.
pub async fn list_nodes(app: &App) -> Result<Vec<SeenNode>, Failure> {
    let now = app.engine.now();
    let nodes = app.engine.nodes().await?;
    Ok(nodes.into_iter().map(|node| SeenNode { state: state(&node, now), node }).collect())
}

fn state(node: &Node, now: Timestamp) -> NodeState {
    if now.since(node.seen_at) > silence(node.beat.every) {
        NodeState::Silent
    } else if node.beat.is_draining {
        NodeState::Draining
    } else {
        NodeState::Alive
    }
}

fn silence(every: Duration) -> Duration {
    every.saturating_mul(MISSED_BEATS)
}

#[cfg(test)]
mod tests {
    use redrive_store::{Heartbeat, NodeId};

    use super::*;

    #[test]
    fn who_misses_three_heartbeats_is_silent() {
        let node = |is_draining| Node {
            id: NodeId::try_new("one").unwrap(),
            beat: Heartbeat {
                started_at: Timestamp::from_millis(0),
                version: String::new(),
                address: String::new(),
                in_flight: 0,
                is_draining,
                claims: !is_draining,
                clock_ahead_ms: 0,
                every: Duration::from_secs(5),
            },
            seen_at: Timestamp::from_millis(1_000),
            leases: 0,
        };
        for (now, draining, expected) in [
            (0, false, NodeState::Alive),
            (16_000, false, NodeState::Alive),
            (16_000, true, NodeState::Draining),
            (16_001, false, NodeState::Silent),
            (16_001, true, NodeState::Silent),
        ] {
            assert_eq!(state(&node(draining), Timestamp::from_millis(now)), expected, "{now} {draining}");
        }
    }
}
