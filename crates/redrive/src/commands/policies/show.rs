//! `redrive policies show`.

use serde_json::Value;

use crate::client::{Policy, escape};
use crate::commands::Connection;
use crate::config::duration_text;
use crate::exit::Exit;
use crate::output::{Output, Table, moment, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive policies show default
  redrive policies show webhooks --json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The policy's name
    name: String,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let answer = args.connection.client().get(&format!("/retry-policies/{}", escape(&args.name))).await?;
    let output = args.connection.output();
    if args.connection.json {
        output.json(&answer.body)?;
    } else {
        print(output, &answer.read()?)?;
    }
    Ok(Exit::Done)
}

fn print(output: Output, policy: &Policy) -> std::io::Result<()> {
    let now = now_millis();
    let mut table = Table::of_fields();
    table.field("policy", policy.policy_id.as_str());
    table.field("version", format!("{}, since {}", policy.version, moment(policy.created_at, now)));
    for (name, value) in &policy.fields {
        table.field(name, readable(name, value));
    }
    for version in policy.versions.iter().rev().filter(|version| version.version != policy.version) {
        let since = moment(version.created_at, now);
        table.field("before", format!("version {}, since {since}{}", version.version, differences(version, policy)));
    }
    output.table(&table)
}

/// The fields in which an earlier version is not as the current one.
fn differences(version: &Policy, current: &Policy) -> String {
    let other = version.fields.iter().filter(|(name, value)| current.fields.get(*name) != Some(value));
    other.map(|(name, value)| format!(", {name} {}", readable(name, value))).collect()
}

/// A field's value; milliseconds also as people say them.
fn readable(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if name.ends_with("Ms") => match number.as_u64() {
            Some(millis) => format!("{millis} ({})", duration_text(std::time::Duration::from_millis(millis))),
            None => number.to_string(),
        },
        value => value.to_string(),
    }
}
