//! Few open files: a shortage in this process costs no task an attempt.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::super::attackers::{Attackers, connect, read_slowly};
use super::super::field::Field;
use super::super::outcome::Outcome;
use super::super::run::Run;
use super::super::service::Surroundings;
use crate::api::head;

const FILES: u32 = 256;
/// Connections that are opened again whenever the service closes them.
const IDLE: usize = 300;
/// Connections with a body that does not end.
const SENDING: usize = 100;
/// Tasks for dependencies of their own, so that each needs a connection.
const TASKS: usize = 150;
const HOLD: Duration = Duration::from_secs(8);

pub fn run(field: &Field) -> Result<Outcome> {
    let mut run = Run::begin(field, Surroundings::FewFiles(FILES), &[])?;
    run.start_client()?;
    let address = run.service.address;
    let mut attackers = Attackers::new(field.runtime.handle());
    for number in 0..IDLE + SENDING {
        attackers.add(async move {
            loop {
                let mut stream = connect(address).await?;
                if number >= IDLE {
                    stream.write_all((head("POST", "/retry-tasks", 1_000) + "{").as_bytes()).await?;
                }
                // Whether it is closed or reset does not matter.
                if read_slowly(&mut stream, Duration::ZERO).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }
    run.go_on_for(Duration::from_secs(1))?;
    for number in 0..TASKS {
        let task = json!({
            "targetUrl": format!("http://{}/{number}", run.target.address()),
            "dependency": format!("dependency-{number}"),
            "policy": { "maxAttempts": 2, "initialDelayMs": 10, "maxDelayMs": 10 },
        });
        run.submit(&task.to_string())?;
    }
    let what = format!(
        "{FILES} open files at most, {IDLE} idle connections and {SENDING} sending, opened again and again; {TASKS} tasks \
         for as many dependencies"
    );
    run.hold(&what, attackers, HOLD)?;
    run.stop_client(&[])?;
    let tasks = run.judge_deliveries()?;
    let counted = tasks.iter().filter(|task| task.attempt_number != 1).count();
    run.check(counted == 0, format!("{counted} tasks needed more than one attempt"));
    run.judge_process()?;
    Ok(run.into_outcome())
}
