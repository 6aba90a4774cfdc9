//! A process over the store.

use schemars::JsonSchema;
use serde::Serialize;

use crate::operations::{NodeState, SeenNode};

/// The processes over the store.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeList<'a> {
    /// Every process that has been heard of and has not left, in the order of their names.
    pub nodes: Vec<ShownNode<'a>>,
}

/// A process over the store.
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
    /// When it was last heard of, in milliseconds since the epoch.
    pub seen_at: u64,
    /// By how many milliseconds its machine's clock was ahead of the time that all nodes work on, which is the database's;
    /// negative if behind. It does no harm, but should be set right.
    pub clock_ahead_ms: i64,
    /// The attempts that it had under way when it was last heard of.
    pub in_flight: u64,
    /// The tasks that it holds a lease on now, by the store's own count.
    pub leases: u64,
}

impl<'a> ShownNode<'a> {
    /// The node as the API shows it.
    pub fn new(seen: &'a SeenNode) -> Self {
        let SeenNode { node, state } = seen;
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
