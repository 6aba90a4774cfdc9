//! The upgrade of a release under load: one node after the other is stopped and started again with the new program.
//!
//! The first new node brings the schema up to date, under the old ones, which go on beside it until it is their turn.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::cluster::Cluster;
use super::sql;

const VERSION: &str = "SELECT max(version) FROM redrive.schema_versions";

/// An upgrade under way.
pub struct Rolling {
    /// When the next node is replaced.
    next: Instant,
    every: Duration,
    /// How many have been.
    replaced: usize,
    schema_before: String,
}

impl Rolling {
    /// An upgrade of all nodes, evenly over this time: at first there are old ones only, at last new ones only.
    pub fn start(cluster: &Cluster, span: Duration) -> Result<Self> {
        let every = span / u32::try_from(cluster.size() + 1)?;
        let schema_before = schema(cluster)?;
        println!("all nodes are old, the schema is at version {schema_before}");
        Ok(Rolling { next: Instant::now() + every, every, replaced: 0, schema_before })
    }

    /// Replaces the next node if it is time.
    pub fn tick(&mut self, cluster: &mut Cluster) {
        if self.replaced < cluster.size() && Instant::now() >= self.next {
            cluster.replace(self.replaced);
            self.replaced += 1;
            self.next += self.every;
        }
    }

    /// Says what has become of the schema; an error if the old program had it already, so that nothing was shown.
    pub fn finish(&self, cluster: &Cluster) -> Result<()> {
        let (before, after) = (&self.schema_before, schema(cluster)?);
        println!("all nodes are new, the schema is at version {after}");
        if *before == after {
            bail!("the schema was at version {before} before the upgrade: name a program of the release before");
        }
        Ok(())
    }
}

fn schema(cluster: &Cluster) -> Result<String> {
    let found = sql::column(&cluster.database_url(), VERSION).context("asking for the version of the schema")?;
    found.into_iter().flatten().next().context("the database has no schema")
}
