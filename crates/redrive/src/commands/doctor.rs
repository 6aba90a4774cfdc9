//! `redrive doctor`: what is wrong with a service, if anything is.

use redrive_core::counted;
use serde::Deserialize;

use crate::commands::{Connection, connection};
use crate::exit::Exit;
use crate::output::Table;

const EXAMPLES: &str = "\
Examples:
  redrive doctor
  redrive doctor --json

Calls GET /readyz. Rows that the service cannot read, because a newer version wrote them or the
database was edited by hand, are set aside. They do not block other tasks and are not lost: a
version that can read them takes them back when it starts.
The exit code is 1 if there are problems.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Health {
    /// Only there to be required: other servers answer with documents, too.
    #[serde(rename = "status")]
    _status: String,
    set_aside: Option<SetAside>,
    clock: Option<Clock>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Clock {
    ahead_ms: i64,
    stepped_ms: Option<i64>,
    is_claiming: bool,
}

impl Clock {
    fn text(&self) -> String {
        let Clock { ahead_ms, stepped_ms, is_claiming } = self;
        let claims = match (is_claiming, stepped_ms) {
            (true, _) => "tasks are claimed".to_owned(),
            (false, Some(step)) => format!("no tasks are claimed: the database's clock has stepped by {step} ms"),
            (false, None) => "no tasks are claimed: the database's time is not known".to_owned(),
        };
        format!("clock: the machine's clock is {ahead_ms} ms ahead of the time that the service uses; {claims}\n")
    }
}

#[derive(Debug, Deserialize)]
struct SetAside {
    count: u64,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    row: String,
    problem: String,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    connection::run(examine(args))
}

async fn examine(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let answer = client.get("/readyz").await?;
    let health: Health = answer.read()?;
    let exit = if health.set_aside.is_some() || health.clock.is_some() { Exit::Failed } else { Exit::Done };
    if args.connection.json {
        output.json(&answer.body)?;
        return Ok(exit);
    }
    output.text("ready: the store accepts writes, and all parts of the service run\n")?;
    if let Some(clock) = &health.clock {
        output.text(&clock.text())?;
    }
    if let Some(SetAside { count, rows }) = health.set_aside {
        output.text(&format!(
            "set aside: {} that this version cannot read; all other tasks continue\n",
            counted(count, "row")
        ))?;
        let mut table = Table::new(&["ROW", "PROBLEM"]).folding(1);
        for Row { row, problem } in &rows {
            table.row([row.as_str().into(), problem.as_str().into()]);
        }
        output.table(&table)?;
    }
    Ok(exit)
}
