//! `redrive alerts test`.

use serde::Deserialize;

use crate::client::escape;
use crate::commands::Connection;
use crate::exit::Exit;
use crate::output::printable;

const EXAMPLES: &str = "\
Examples:
  redrive alerts test on-call

The server sends a test notification, once and directly, and waits up to 10 s for the answer. The
exit code is 1 if the sink does not take it.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The sink's name in the configuration
    #[arg(value_name = "SINK")]
    sink: String,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Deserialize)]
struct Tested {
    received: bool,
    status: Option<u16>,
    error: Option<String>,
}

pub(crate) async fn run(Args { sink, connection }: Args) -> anyhow::Result<Exit> {
    let path = format!("/alerts/sinks/{}/test", escape(&sink));
    let answer = connection.client()?.post(&path, Vec::new()).await?;
    let output = connection.output();
    let Tested { received, status, error } = answer.read()?;
    match (connection.json, status, error) {
        (true, ..) => output.json(&answer.body)?,
        (false, Some(status), _) => output.line(format!("{sink} took it: {status}"))?,
        (false, None, error) => {
            output.line(format!("{sink} did not take it: {}", printable(&error.unwrap_or_default())))?;
        }
    }
    Ok(if received { Exit::Done } else { Exit::Failed })
}
