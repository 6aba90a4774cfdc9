//! `redrive policies delete`.

use crate::client::escape;
use crate::commands::Connection;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive policies delete webhooks

A policy that an unfinished task uses cannot be deleted, nor can a built-in one. If you changed a
built-in policy, deleting it brings the built-in one back.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The policy's name
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let answer = args.connection.client()?.delete(&format!("/retry-policies/{}", escape(&args.name))).await?;
    answer.expect_no_content()?;
    match args.connection.json {
        true if answer.body.is_empty() => args.connection.output().json(b"{}")?,
        true => args.connection.output().json(&answer.body)?,
        false => args.connection.output().line(format!("{} deleted", args.name))?,
    }
    Ok(Exit::Done)
}
