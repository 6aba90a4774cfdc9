//! Many tasks at once, in as few requests as the API allows.

use anyhow::{Result, bail};
use serde_json::Value;

use super::world::Service;

/// Tasks in one request: the most that the API takes.
const BATCH: u64 = 1_000;

/// Submits `tasks` tasks; `document` renders the one with this number. Fails unless every one is accepted as new.
pub fn submit(service: &Service, tasks: u64, mut document: impl FnMut(u64) -> String) -> Result<()> {
    service.ask(async |api| {
        let mut next = 0;
        while next < tasks {
            let numbers = next..tasks.min(next + BATCH);
            let documents: Vec<String> = numbers.clone().map(&mut document).collect();
            let answer =
                api.call("POST", "/retry-tasks/batch", &format!("{{\"tasks\":[{}]}}", documents.join(","))).await?;
            let results: Value = answer.document()?;
            let results = results["results"].as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(refused) = results.iter().find(|result| result["status"] != 201) {
                bail!("a task of a batch was refused: {refused}");
            }
            if results.len() != documents.len() {
                bail!("a batch was refused: {}", answer.describe());
            }
            next = numbers.end;
        }
        Ok(())
    })
}
