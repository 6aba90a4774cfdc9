//! `redrive tasks replay`.

use super::One;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive tasks list --status FAILED --status EXHAUSTED
  redrive tasks replay 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55

A task that ended FAILED or EXHAUSTED becomes due now, as the same task with the same request and
the same idempotency key. Its new run has all of its attempts and all of its time; the attempts of
earlier runs stay in its log, and attempt numbers go on growing.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    task: One,
}

pub(crate) async fn run(Args { task }: Args) -> anyhow::Result<Exit> {
    let answer = task.connection.client()?.post(&format!("{}/replay", task.path()), Vec::new()).await?;
    if task.connection.json {
        task.connection.output().json(&answer.body)?;
    } else {
        task.line(&answer.read()?)?;
    }
    Ok(Exit::Done)
}
