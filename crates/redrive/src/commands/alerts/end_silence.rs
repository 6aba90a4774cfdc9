//! `redrive alerts end-silence`.

use crate::client::escape;
use crate::commands::Connection;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive alerts end-silence 6f1c3c1e-6c2a-4d55-9d0e-1f0a4c6d2b11

`redrive alerts list` shows the ids. Sinks are told of what it kept from them and still fires.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The silence's id
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(Args { id, connection }: Args) -> anyhow::Result<Exit> {
    let answer = connection.client()?.delete(&format!("/alerts/silences/{}", escape(&id))).await?;
    let output = connection.output();
    match connection.json {
        true if answer.body.is_empty() => output.json(b"{}")?,
        true => output.json(&answer.body)?,
        false => output.line(format!("silence {id} has ended"))?,
    }
    Ok(Exit::Done)
}
