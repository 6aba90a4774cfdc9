//! Fills a store with live records through the API's batch.

use anyhow::{Result, bail};
use fastrand::Rng;

use crate::bench::world::Service;

/// Records of one call.
const STEP: u64 = 1_000;
/// How often the progress is told.
const TOLD_EVERY: u64 = 500_000;

/// Reserves this many random keys. Their leases and retention outlast the run.
pub(super) fn fill(service: &Service, records: u64) -> Result<()> {
    let mut random = Rng::with_seed(records);
    let mut made = 0;
    service.ask(async |api| {
        while made < records {
            let step = STEP.min(records - made);
            let items: Vec<String> = (0..step).map(|_| item(&mut random)).collect();
            let body = format!(r#"{{"records": [{}]}}"#, items.join(","));
            let answer = api.call("POST", "/idempotency-records/batch", &body).await?;
            if answer.status != 200 {
                bail!("a batch was answered {}", answer.describe());
            }
            let results: serde_json::Value = answer.document()?;
            let granted =
                results["results"].as_array().into_iter().flatten().filter(|one| one["status"] == 201).count();
            if granted as u64 != step {
                bail!("{granted} of {step} reservations of a batch were granted");
            }
            made += step;
            if made % TOLD_EVERY == 0 {
                eprintln!("  {made} of {records} records");
            }
        }
        Ok(())
    })
}

fn item(random: &mut Rng) -> String {
    let (key, hash) = (random.u128(..), random.u128(..));
    format!(
        r#"{{"operation": "preloaded", "key": "{key:032x}", "requestHash": "{hash:032x}{hash:032x}", "leaseMs": 86400000}}"#
    )
}
