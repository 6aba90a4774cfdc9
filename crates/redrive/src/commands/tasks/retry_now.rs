//! `redrive tasks retry-now`.

use super::TaskArgs;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive tasks retry-now 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55

A task whose next attempt is already claimed, shortly before its due time, is shown as IN_FLIGHT:
that attempt starts now.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,
}

pub(crate) async fn run(Args { task }: Args) -> anyhow::Result<Exit> {
    let (mut client, path) = task.find().await?;
    let answer = client.post(&format!("{path}/retry-now"), Vec::new()).await?;
    if task.connection.json {
        task.connection.output().json(&answer.body)?;
    } else {
        task.line(&answer.read()?)?;
    }
    Ok(Exit::Done)
}
