//! `redrive tasks attempts`.

use std::time::Duration;

use super::One;
use crate::client::{Attempt, Pages};
use crate::commands::listing::print_json;
use crate::exit::Exit;
use crate::output::{Cell, Colour, Table, duration, moment, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive tasks attempts 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    task: One,
}

pub(crate) async fn run(Args { task }: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (task.connection.client(), task.connection.output());
    let mut pages = Pages::new(format!("{}/attempts", task.path()), Vec::new(), "attempts", usize::MAX);
    if task.connection.json {
        print_json(output, &mut client, &mut pages, "attempts").await?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["ATTEMPT", "OUTCOME", "STATUS", "TOOK", "NEXT AFTER", "STARTED", "ERROR"]);
    while let Some(page) = pages.next(&mut client).await? {
        page.read()?.iter().for_each(|attempt| table.row(row(attempt)));
    }
    output.table(&table)?;
    Ok(Exit::Done)
}

fn row(attempt: &Attempt) -> [Cell; 7] {
    let colour = match attempt.outcome.as_str() {
        "success" => Colour::Good,
        "unknown" => Colour::Busy,
        _ => Colour::Bad,
    };
    let span =
        |millis: Option<u64>| millis.map_or_else(|| "-".into(), |millis| duration(Duration::from_millis(millis)));
    let error = match (&attempt.error_type, &attempt.error_message) {
        (Some(kind), Some(message)) => format!("{kind}: {message}"),
        (Some(kind), None) => kind.clone(),
        _ => String::new(),
    };
    [
        attempt.attempt_number.to_string().into(),
        Cell::coloured(attempt.outcome.as_str(), colour),
        attempt.response_status.map_or_else(|| "-".into(), |status| status.to_string()).into(),
        span(attempt.duration_ms).into(),
        span(attempt.backoff_ms).into(),
        moment(attempt.started_at, now_millis()).into(),
        error.into(),
    ]
}
