//! Rolling upgrade under load: one node after the other is stopped and restarted with the new program.
//!
//! The first new node migrates the schema while the old nodes run. They continue beside it until they are replaced.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::cluster::Cluster;
use super::sql;

const VERSION: &str = "SELECT max(version) FROM redrive.schema_versions";

/// An upgrade in progress.
pub struct Rolling {
    /// When the next node is replaced.
    next: Instant,
    every: Duration,
    /// How many have been replaced.
    replaced: usize,
    schema_before: String,
}

impl Rolling {
    /// An upgrade of all nodes, evenly over this time: at first all nodes are old, at the end all are new.
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

    /// Reports the change of the schema; an error if there was none, because then nothing was tested.
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
