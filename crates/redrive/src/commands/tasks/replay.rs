//! `redrive tasks replay`.

use super::TaskArgs;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive tasks list --status FAILED --status EXHAUSTED
  redrive tasks replay 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55

A task that ended FAILED or EXHAUSTED becomes due now: the same task, the same request, the same
idempotency key. The new run has its full number of attempts and its full time. The attempts of
earlier runs stay in the log, and attempt numbers continue.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,
}

pub(crate) async fn run(Args { task }: Args) -> anyhow::Result<Exit> {
    let (mut client, path) = task.find().await?;
    let answer = client.post(&format!("{path}/replay"), Vec::new()).await?;
    if task.connection.json {
        task.connection.output().json(&answer.body)?;
    } else {
        task.line(&answer.read()?)?;
    }
    Ok(Exit::Done)
}
