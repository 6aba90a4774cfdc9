//! Damaged rows: they are set aside and reported, and everything else works.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::super::field::Field;
use super::super::outcome::Outcome;
use super::super::run::Run;
use super::super::service::Surroundings;
use crate::binaries;

/// Tasks beside the client's.
const TASKS: usize = 60;
/// When they are due: enough time to damage some of them.
const DELAY: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(10);
/// The statements that damage rows, and those that repair them.
const DAMAGES: [(&str, &str); 5] = [
    ("UPDATE tasks SET error_kind = 'martian'", "UPDATE tasks SET error_kind = NULL"),
    ("UPDATE tasks SET max_attempts = -5", "UPDATE tasks SET max_attempts = 5"),
    ("UPDATE tasks SET reason = 'because'", "UPDATE tasks SET reason = NULL"),
    ("UPDATE tasks SET created_at = -1", "UPDATE tasks SET created_at = 1"),
    ("UPDATE tasks SET deadline_at = 'tomorrow'", "UPDATE tasks SET deadline_at = 9999999999999"),
];

pub fn run(field: &Field) -> Result<Outcome> {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        return Ok(Outcome::skipped("sqlite3 is not installed"));
    }
    let mut run = Run::ordinary(field)?;
    let database = run.service.data.join("redrive.db");
    let mut damaged = Vec::new();
    for number in 0..TASKS {
        let task = json!({
            "targetUrl": format!("http://{}/", run.target.address()),
            "delayMs": DELAY.as_millis() as u64,
            "idempotencyKey": format!("row-{number}"),
        });
        let id = run.submit(&task.to_string())?;
        if number % (TASKS / DAMAGES.len()) == 0 {
            damaged.push((number, id));
        }
    }
    for ((number, id), (damage, _)) in damaged.iter().zip(DAMAGES) {
        change(&database, damage, *number)?;
        run.set_apart(id);
    }
    run.go_on_for(DELAY + Duration::from_secs(2))?;
    run.done(format!("{} of {TASKS} waiting tasks damaged, each in another way, beside the client's", damaged.len()));
    let is_shown = |text: &[u8]| {
        serde_json::from_slice::<Value>(text).is_ok_and(|told| told["setAside"]["count"] == damaged.len())
    };
    let (shows, answer) = run.wait_for_answer(("GET", "/readyz", ""), LIMIT, |answer| {
        answer.status == 200 && answer.document::<Value>().is_ok_and(|told| is_shown(told.to_string().as_bytes()))
    })?;
    run.check(shows, format!("/readyz shows {} rows: {}", damaged.len(), answer.chars().take(60).collect::<String>()));
    let doctor = binaries::redrive(&field.redrive)
        .args(["doctor", "--json", "--server", &format!("http://{}", run.service.address)])
        .output()
        .context("running redrive doctor")?;
    let shows = doctor.status.code() == Some(1) && is_shown(&doctor.stdout);
    run.check(shows, format!("redrive doctor shows {} rows and ends with {:?}", damaged.len(), doctor.status.code()));
    run.stop_client(&[])?;
    run.judge_process()?;
    run.judge_deliveries()?;

    run.service.process.signal(Signal::TERM)?;
    run.service.wait_for_end(LIMIT)?;
    for ((number, _), (_, mended)) in damaged.iter().zip(DAMAGES) {
        change(&database, mended, *number)?;
    }
    run.service = field.start(Surroundings::Ordinary, &[])?;
    for (_, id) in &damaged {
        run.expect_delivery(id);
    }
    run.judge_deliveries()?;
    run.done("mended, and the service started again");
    Ok(run.into_outcome())
}

/// Changes the row of a task from outside, like a person with a shell.
fn change(database: &Path, sql: &str, number: usize) -> Result<()> {
    let sql = format!("{sql} WHERE idempotency_key = 'row-{number}'; SELECT changes();");
    let output = Command::new("sqlite3").args(["-cmd", ".timeout 5000"]).arg(database).arg(&sql).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(said.trim() == "1", "{sql}: {said}{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
