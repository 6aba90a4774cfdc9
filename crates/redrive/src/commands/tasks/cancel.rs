//! `redrive tasks cancel`.

use super::TaskArgs;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive tasks cancel 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55

Only CANCELLED means that no further attempt is sent. A waiting task is CANCELLED at once.
IN_FLIGHT (cancel requested) means that an attempt is claimed or in progress: it may still reach
the dependency, and it is the last one. The task then ends CANCELLED, or SUCCEEDED if that
attempt succeeds.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,
}

pub(crate) async fn run(Args { task }: Args) -> anyhow::Result<Exit> {
    let (mut client, path) = task.find().await?;
    let answer = client.delete(&path).await?;
    if task.connection.json {
        task.connection.output().json(&answer.body)?;
    } else {
        task.line(&answer.read()?)?;
    }
    Ok(Exit::Done)
}
