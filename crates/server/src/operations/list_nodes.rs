//! Lists the nodes: the processes that use the store.

use std::time::Duration;

use redrive_core::Timestamp;
use redrive_store::Node;

use crate::app::App;
use crate::operation_error::OperationError;

/// How many heartbeats a node may miss before it counts as silent.
const MISSED_BEATS: u32 = 3;

/// A node and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWithState {
    /// The node, as the store knows it.
    pub node: Node,
    /// Its state.
    pub state: NodeState,
}

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// The node sends heartbeats.
    Alive,
    /// The node is stopping: it finishes its attempts and claims no more.
    Draining,
    /// The node has missed three heartbeats: it is dead, disconnected or paused. Its leases run out.
    Silent,
}

/// Every node that has sent a heartbeat and has not left, by name.
pub async fn list_nodes(app: &App) -> Result<Vec<NodeWithState>, OperationError> {
    let now = app.engine.now();
    let nodes = app.engine.nodes().await?;
    Ok(nodes.into_iter().map(|node| NodeWithState { state: state(&node, now), node }).collect())
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
