//! The division of the connections: each use has its own, so that none waits for another.

/// The fewest connections that a store can work with.
pub const FEWEST_CONNECTIONS: usize = 5;

/// The number of connections of each use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolSizes {
    /// For the writers of batches.
    pub(crate) batches: usize,
    /// For batches that are repeated.
    pub(crate) repeats: usize,
    /// For the background loops: claims, expired leases, heartbeats, shared guards, news.
    pub(crate) loops: usize,
    /// For everything else, such as reads.
    pub(crate) others: usize,
}

impl PoolSizes {
    /// Divides this many connections, for this many writers of submissions and as many of settlements.
    pub(crate) fn of(connections: usize, writers: usize) -> Self {
        let (batches, repeats, loops, others) = (2 * writers.max(1), 2, 3, 2);
        match connections.checked_sub(batches + repeats + loops) {
            Some(rest) if rest >= others => PoolSizes { batches, repeats, loops, others: rest },
            // Too few connections: the writers share what is left.
            _ => {
                let rest = connections.max(FEWEST_CONNECTIONS) - 3;
                let batches = batches.min(rest);
                PoolSizes { batches, repeats: 1, loops: 1, others: 1 + rest - batches }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_connections_are_shared_out_than_there_may_be() {
        for connections in FEWEST_CONNECTIONS..40 {
            for writers in 1..8 {
                let shares = PoolSizes::of(connections, writers);
                let PoolSizes { batches, repeats, loops, others } = shares;
                assert_eq!(batches + repeats + loops + others, connections, "{connections}, {writers}: {shares:?}");
                assert!([batches, repeats, loops, others].iter().all(|share| *share > 0), "{shares:?}");
            }
        }
        assert_eq!(PoolSizes::of(12, 2), PoolSizes { batches: 4, repeats: 2, loops: 3, others: 3 });
        assert_eq!(PoolSizes::of(0, 2), PoolSizes::of(FEWEST_CONNECTIONS, 2));
    }
}
