//! `redrive policies list`.

use serde_json::Value;

use crate::client::{Pages, Policy};
use crate::commands::Connection;
use crate::commands::listing::print_json;
use crate::exit::Exit;
use crate::output::{Cell, Table, moment_cell, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive policies list
  redrive policies list --json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let mut pages = Pages::new("/retry-policies".into(), Vec::new(), "policies", usize::MAX);
    if args.connection.json {
        print_json(output, &mut client, &mut pages, "policies").await?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["POLICY", "VERSION", "CONTEXT", "ATTEMPTS", "BACKOFF", "JITTER", "SINCE"]).leading();
    let now = now_millis();
    while let Some(page) = pages.next(&mut client).await? {
        page.read()?.iter().for_each(|policy| table.row(row(policy, now)));
    }
    output.table(&table)?;
    Ok(Exit::Done)
}

fn row(policy: &Policy, now: u64) -> [Cell; 7] {
    let field = |name: &str| match policy.fields.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "-".into(),
    };
    [
        policy.policy_id.as_str().into(),
        policy.version.unwrap_or_default().to_string().into(),
        // A preset is its own context.
        if policy.built_in { Cell::from(field("context")).or_short("-") } else { field("context").into() },
        field("maxAttempts").into(),
        field("backoff").into(),
        field("jitterType").into(),
        if policy.built_in { "built in".into() } else { moment_cell(policy.created_at, now) },
    ]
}
