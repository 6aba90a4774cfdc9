//! `redrive tasks attempts`.

use std::time::Duration;

use super::TaskArgs;
use crate::client::{Attempt, Pages};
use crate::commands::listing::print_json;
use crate::exit::Exit;
use crate::output::{Cell, Colour, Table, duration, now_millis, precise_moment, timestamp};

const EXAMPLES: &str = "\
Examples:
  redrive tasks attempts 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55

ATTEMPT counts within a run: a replay starts again at 1. IN ALL counts the attempts of all runs.
STARTED is when the first byte was sent. TOOK is the whole attempt, connecting included.
Outcomes: success; retryable; overloaded (a 429 that is retried); permanent (never retried);
unknown (interrupted by a crash; it may have been delivered).";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,
}

pub(crate) async fn run(Args { task }: Args) -> anyhow::Result<Exit> {
    let ((mut client, path), output) = (task.find().await?, task.connection.output());
    let mut pages = Pages::new(format!("{path}/attempts"), Vec::new(), "attempts", usize::MAX);
    if task.connection.json {
        print_json(output, &mut client, &mut pages, "attempts").await?;
        return Ok(Exit::Done);
    }
    let mut attempts: Vec<Attempt> = Vec::new();
    while let Some(page) = pages.next(&mut client).await? {
        attempts.extend(page.read()?);
    }
    if attempts.is_empty() {
        output.line("no attempts yet")?;
    } else {
        output.table(&table(&attempts))?;
    }
    Ok(Exit::Done)
}

/// A row for each attempt. The number in all is a column of its own if the task was replayed.
fn table(attempts: &[Attempt]) -> Table {
    let has_total = attempts.iter().any(Attempt::is_of_later_run);
    let mut columns = vec!["ATTEMPT", "OUTCOME", "STATUS", "TOOK", "NEXT AFTER", "STARTED", "ERROR"];
    if has_total {
        columns.insert(1, "IN ALL");
    }
    let mut table = Table::new(&columns).folding(1);
    for attempt in attempts {
        let mut cells = Vec::from(row(attempt));
        if has_total {
            cells.insert(1, attempt.attempt_number.to_string().into());
        }
        table.row(cells);
    }
    table
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
        attempt.number_text().into(),
        Cell::coloured(attempt.outcome.as_str(), colour),
        attempt.response_status.map_or_else(|| "-".into(), |status| status.to_string()).into(),
        span(attempt.duration_ms).into(),
        span(attempt.backoff_ms).into(),
        Cell::from(precise_moment(attempt.started_at, now_millis())).or_short(timestamp(attempt.started_at)),
        error.into(),
    ]
}
