//! `redrive idempotency show`.

use super::{RecordArgs, print};
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive idempotency show create-payment order-1234
  redrive idempotency show submit-task order-1234 --json   # the task with this key";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    record: RecordArgs,
}

pub(crate) async fn run(Args { record }: Args) -> anyhow::Result<Exit> {
    let answer = record.connection.client()?.get(&record.path()).await?;
    let output = record.connection.output();
    match record.connection.json {
        true => output.json(&answer.body)?,
        false => print(output, &answer.read()?, answer.etag())?,
    }
    Ok(Exit::Done)
}
