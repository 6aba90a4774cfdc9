//! `redrive alerts end-silence`.

use clap::builder::NonEmptyStringValueParser;
use serde::Deserialize;

use crate::client::{Client, escape, the_only};
use crate::commands::Connection;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive alerts end-silence 6f1c3c1e-6c2a-4d55-9d0e-1f0a4c6d2b11

`redrive alerts list` shows the ids. Sinks are then told of silenced alerts that still fire.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The silence's id, or the beginning of it that no other silence has
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    id: String,
    #[command(flatten)]
    connection: Connection,
}

/// The length of a whole id.
const ID_LENGTH: usize = 36;

#[derive(Deserialize)]
struct List {
    silences: Option<Vec<Silence>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Silence {
    silence_id: String,
    rule: Option<String>,
    dependency: Option<String>,
}

/// The id of the silence that begins so.
async fn silence_id(client: &mut Client, given: &str) -> anyhow::Result<String> {
    let list: List = client.get("/alerts").await?.read()?;
    let silences = list.silences.unwrap_or_default();
    let begins_so = |silence: &&Silence| silence.silence_id.starts_with(given);
    let what = |silence: &Silence| {
        let (rule, dependency) = (silence.rule.as_deref(), silence.dependency.as_deref());
        format!("{} of {}", rule.unwrap_or("all rules"), dependency.unwrap_or("all dependencies"))
    };
    let found = silences.iter().filter(begins_so).map(|silence| (silence.silence_id.as_str(), what(silence)));
    the_only(given, "silence", found.collect())
}

pub(crate) async fn run(Args { id, connection }: Args) -> anyhow::Result<Exit> {
    let mut client = connection.client()?;
    let id = id.trim().to_ascii_lowercase();
    let id = if id.len() < ID_LENGTH { silence_id(&mut client, &id).await? } else { id };
    let answer = client.delete(&format!("/alerts/silences/{}", escape(&id))).await?;
    answer.expect_no_content()?;
    let output = connection.output();
    match connection.json {
        true if answer.body.is_empty() => output.json(b"{}")?,
        true => output.json(&answer.body)?,
        false => output.line(format!("silence {id} has ended"))?,
    }
    Ok(Exit::Done)
}
