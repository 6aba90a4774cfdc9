//! The data directory is removed: the service reports it, and does not claim that nothing was lost.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::super::field::Field;
use super::super::outcome::Outcome;
use super::super::run::Run;

const LIMIT: Duration = Duration::from_secs(20);
const HOLD: Duration = Duration::from_secs(2);

pub fn run(field: &Field) -> Result<Outcome> {
    let mut run = Run::ordinary(field)?;
    run.go_on_for(HOLD)?;
    std::fs::remove_dir_all(&run.service.data).context("removing the data directory")?;
    let (is_red, answer) = run.wait_for_answer(("GET", "/readyz", ""), HOLD, |answer| answer.status == 503)?;
    run.check(is_red, format!("/readyz: {}", answer.chars().take(100).collect::<String>()));
    run.go_on_for(HOLD)?;
    run.done(format!("the data directory removed for {HOLD:?}, then SIGTERM"));
    // Submissions may be refused from now on.
    run.stop_client(&["5"])?;
    run.judge_process()?;
    run.judge_deliveries()?;
    run.service.process.signal(Signal::TERM)?;
    let code = run.service.wait_for_end(LIMIT)?;
    let said = run.service.process.log_text();
    let last = said.lines().last().unwrap_or_default();
    run.check(code == Some(1) && !said.contains("nothing was lost"), format!("ended with {code:?}: {last}"));
    Ok(run.into_outcome())
}
