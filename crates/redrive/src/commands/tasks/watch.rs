//! `redrive tasks watch`.

use super::TaskArgs;
use crate::exit::Exit;
use crate::follow::{Follow, Wait};

const EXAMPLES: &str = "\
Examples:
  redrive tasks watch 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55
  redrive tasks watch 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55 --timeout 5m
  redrive tasks watch 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55 --json   # a line per event";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Stop watching after this time
    #[arg(long, value_name = "DURATION", value_parser = Wait::parse)]
    timeout: Option<Wait>,
    #[command(flatten)]
    task: TaskArgs,
}

pub(crate) async fn run(Args { task, timeout }: Args) -> anyhow::Result<Exit> {
    let follow = Follow::new(&task.connection, timeout.unwrap_or(Wait::UntilEnded))?;
    let mut client = task.connection.client()?;
    let id = client.task_id(&task.id).await?;
    follow.watch(&mut client, &id).await
}
