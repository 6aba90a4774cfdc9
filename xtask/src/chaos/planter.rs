//! The caller that plants tasks for damaged rows: they wait for some seconds, and no other caller uses them.
//!
//! It also reads the list of policies, which must be answered even if one of them is damaged.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail};
use fastrand::Rng;

use super::bad_rows::{Planted, SPARE_POLICY};
use super::caller::{self, Callers};
use super::line::Line;

/// The pause between two planted tasks.
const EVERY_MS: std::ops::Range<u64> = 300..700;
/// How long a planted task waits.
const WAITS_MS: std::ops::Range<u64> = 1_000..4_000;
/// Makes its random numbers differ from those of the other callers.
const OWN_SEED: u64 = 0x0070_6c61_6e74;

/// Plants tasks until the callers are stopped.
pub async fn run(shared: Arc<Callers>, planted: Arc<Planted>) -> Result<()> {
    let mut random = Rng::with_seed(shared.seed ^ OWN_SEED);
    let mut line = Line::default();
    let policy = format!("{{\"policyId\":\"{SPARE_POLICY}\",\"maxAttempts\":3}}");
    let put = line.call(&shared.nodes, &mut random, ("POST", "/retry-policies", &policy)).await?;
    if !matches!(put.status, 200 | 201) {
        bail!("putting a policy was answered {}", put.describe());
    }
    while !shared.stop.load(Ordering::Acquire) {
        let submission = shared.draw(&mut random).after_ms(random.u64(WAITS_MS));
        let said = caller::submit(&shared, &mut line, &mut random, &submission, 0).await?;
        if let Some(task) = said.acknowledged() {
            planted.add(task.to_owned());
        }
        let listed = line.call(&shared.nodes, &mut random, ("GET", "/retry-policies", "")).await?;
        if listed.status != 200 {
            bail!("the list of policies was answered {}", listed.describe());
        }
        tokio::time::sleep(Duration::from_millis(random.u64(EVERY_MS))).await;
    }
    Ok(())
}
