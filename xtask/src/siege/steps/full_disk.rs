//! A full disk: submissions are refused with the reason, and everything works again when there is space.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::super::field::Field;
use super::super::outcome::Outcome;
use super::super::run::Run;
use super::super::service::Surroundings;

/// The size of the disk, in MiB.
const DISK: u32 = 24;
const LIMIT: Duration = Duration::from_secs(10);
const HOLD: Duration = Duration::from_secs(3);
/// The size of a body that is stored apart from its task.
const LARGE: usize = 200 * 1024;

pub fn run(field: &Field) -> Result<Outcome> {
    let disk = Surroundings::SmallDisk(DISK);
    if let Some(why) = disk.missing() {
        return Ok(Outcome::skipped(why));
    }
    let mut run = Run::begin(field, disk, &[])?;
    run.start_client()?;
    run.go_on_for(HOLD)?;
    let filler = run.service.data.join("filler");
    fill(&filler)?;

    let small = json!({ "targetUrl": format!("http://{}/", run.target.address()), "delayMs": 3_600_000 }).to_string();
    let large = json!({
        "targetUrl": format!("http://{}/", run.target.address()),
        "delayMs": 3_600_000,
        "body": "x".repeat(LARGE),
    })
    .to_string();
    for (name, document) in [("a small body", &small), ("a large body", &large)] {
        let (is_507, answer) =
            run.wait_for_answer(("POST", "/retry-tasks", document), LIMIT, |answer| answer.status == 507)?;
        run.check(is_507, format!("{name} on a full disk: {}", shown(&answer)));
    }
    let (is_red, answer) = run.wait_for_answer(("GET", "/readyz", ""), LIMIT, |answer| answer.status == 503)?;
    run.check(is_red && answer.contains("no space left"), format!("/readyz on a full disk: {}", shown(&answer)));
    run.go_on_for(HOLD)?;
    std::fs::remove_file(&filler).context("making space")?;
    for (name, call, status) in [
        ("a small body", ("POST", "/retry-tasks", small.as_str()), 201),
        ("a large body", ("POST", "/retry-tasks", large.as_str()), 201),
        ("/readyz", ("GET", "/readyz", ""), 200),
    ] {
        let (is_well, answer) = run.wait_for_answer(call, LIMIT, |answer| answer.status == status)?;
        run.check(is_well, format!("{name} with space again: {}", shown(&answer)));
    }
    run.go_on_for(HOLD)?;
    run.done(format!("a disk of {DISK} MiB filled to its last byte for more than {HOLD:?}"));
    run.stop_client(&["507"])?;
    run.judge_process()?;
    run.judge_deliveries()?;
    run.judge_process()?;
    Ok(run.into_outcome())
}

/// Writes a file that takes all free space.
fn fill(path: &Path) -> Result<()> {
    let mut file = File::create(path).with_context(|| format!("making {}", path.display()))?;
    let mut part = vec![b'x'; 64 * 1024];
    loop {
        match file.write(&part) {
            Ok(written) if written > 0 => {}
            // The space that is left is less than this part.
            _ if part.len() > 1 => part.truncate(part.len() / 2),
            _ => return Ok(()),
        }
    }
}

/// The beginning of an answer.
fn shown(answer: &str) -> String {
    answer.chars().take(100).collect()
}
