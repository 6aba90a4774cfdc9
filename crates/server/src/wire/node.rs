//! The nodes: the processes that use one store.

use schemars::JsonSchema;
use serde::Serialize;

use crate::operations::{NodeState, NodeWithState};

/// The nodes that use the store.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeList<'a> {
    /// Every node that has sent a heartbeat and has not left, by name.
    pub nodes: Vec<ShownNode<'a>>,
}

/// A node: one process that uses the store.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Node")]
pub struct ShownNode<'a> {
    /// Its name.
    pub node: &'a str,
    /// `ALIVE`; `DRAINING` while it stops; `SILENT` if it has missed three heartbeats: its leases run out, and others
    /// take them over.
    pub state: &'static str,
    /// Where its API listens; with the machine's name where it listens on every address.
    pub address: &'a str,
    /// The program's version.
    pub version: &'a str,
    /// When it started, in milliseconds since the epoch.
    pub started_at: u64,
    /// The time of its last heartbeat, in milliseconds since the epoch.
    pub seen_at: u64,
    /// By how many milliseconds its machine's clock was ahead of the time that all nodes work with, which is the
    /// database's; negative if behind. Redrive does not depend on it, but it should be corrected.
    pub clock_ahead_ms: i64,
    /// The attempts under way at its last heartbeat.
    pub in_flight: u64,
    /// The tasks that it holds a lease on now, by the store's own count.
    pub leases: u64,
}

impl<'a> ShownNode<'a> {
    /// The node as the API shows it.
    pub fn new(seen: &'a NodeWithState) -> Self {
        let NodeWithState { node, state } = seen;
        ShownNode {
            node: node.id.as_str(),
            state: match state {
                NodeState::Alive => "ALIVE",
                NodeState::Draining => "DRAINING",
                NodeState::Silent => "SILENT",
            },
            address: &node.beat.address,
            version: &node.beat.version,
            started_at: node.beat.started_at.as_millis(),
            seen_at: node.seen_at.as_millis(),
            clock_ahead_ms: node.beat.clock_ahead_ms,
            in_flight: node.beat.in_flight,
            leases: node.leases,
        }
    }
}
