//! A Redis cluster of three masters.

use super::{Options, Redis};
use crate::wait_until;

/// How many masters the slots are spread over.
const MASTERS: u16 = 3;
/// How many slots a Redis cluster has.
const SLOTS: u16 = 16_384;

/// A Redis cluster of three masters without replicas.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts three servers, assigns the slots and waits until every server reports that the cluster is ok.
    pub fn start() -> Self {
        let settings = [("cluster-enabled", "yes"), ("cluster-node-timeout", "2000")];
        let start = |_| Redis::start_with(Options { settings: &settings, ..Options::default() });
        let cluster = RedisCluster { nodes: (0..MASTERS).map(start).collect() };
        cluster.share_slots();
        cluster.introduce_nodes();
        wait_until("the Redis cluster is ok", || cluster.is_ok());
        cluster
    }

    /// The URLs of the nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    /// The nodes, to be killed and restarted.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// Whether every node serves all slots and sees all nodes.
    pub fn is_ok(&self) -> bool {
        let expected = ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"];
        self.nodes.iter().all(|node| {
            let said = node.call(&["CLUSTER", "INFO"]);
            expected.iter().all(|line| said.lines().any(|found| found == *line))
        })
    }

    fn share_slots(&self) {
        for (at, node) in (0..MASTERS).zip(&self.nodes) {
            let first = SLOTS * at / MASTERS;
            let last = SLOTS * (at + 1) / MASTERS;
            let slots: Vec<String> = (first..last).map(|slot| slot.to_string()).collect();
            let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
            node.call(&words.collect::<Vec<_>>());
            // Nodes that begin with different epochs need not agree on which of them is newer.
            node.call(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
        }
    }

    fn introduce_nodes(&self) {
        for other in &self.nodes[1..] {
            self.nodes[0].call(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string()]);
        }
    }
}
