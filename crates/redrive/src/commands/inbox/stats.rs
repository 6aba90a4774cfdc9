//! `redrive inbox stats`.

use redrive_core::counted;
use serde::Deserialize;

use crate::client::{InboxStats, Pages, bounded_text};
use crate::commands::Connection;
use crate::commands::listing::print_json;
use crate::exit::Exit;
use crate::output::Table;

const EXAMPLES: &str = "\
Examples:
  redrive inbox stats
  redrive inbox stats --json

SEEN events are duplicates when they come again. 10000+ is 10000 or more. The last line counts
what this node has answered since it started.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
}

/// What a node has answered.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Totals {
    new: u64,
    duplicates: u64,
    in_progress: u64,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let mut pages = Pages::new("/inboxes".into(), Vec::new(), "inboxes", usize::MAX);
    if args.connection.json {
        print_json(output, &mut client, &mut pages, "inboxes").await?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["CONSUMER", "SEEN", "IN PROGRESS"]).leading();
    let mut totals = Totals::default();
    while let Some(page) = pages.next(&mut client).await? {
        let bound = page.number("countedUpTo")?;
        for inbox in page.read::<InboxStats>()? {
            let number = |number| bounded_text(number, bound).into();
            table.row([inbox.consumer.as_str().into(), number(inbox.seen), number(inbox.in_progress)]);
        }
        if let Some(of_node) = page.rest.get("totals") {
            totals = serde_json::from_str(of_node.get())?;
        }
    }
    match table.is_empty() {
        true => output.line("no inboxes")?,
        false => output.table(&table)?,
    }
    let Totals { new, duplicates, in_progress } = totals;
    output.line(format!("answered: {new} new, {}, {in_progress} in progress", counted(duplicates, "duplicate")))?;
    Ok(Exit::Done)
}
