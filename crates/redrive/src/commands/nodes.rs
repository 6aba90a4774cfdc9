//! `redrive nodes`: lists the nodes of the service.

use std::time::Duration;

use serde::Deserialize;

use crate::commands::{Connection, connection};
use crate::exit::Exit;
use crate::output::{Cell, Colour, Table, duration, moment_cell, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive nodes
  redrive nodes --json

A node is SILENT after three missed heartbeats. Its leases expire, and the other nodes take over
its tasks. LEASES is the number of leases that it still holds.
CLOCK is the difference between the node's clock and the database's, if it is more than a second.
All nodes use the database's time, so tasks are not affected; correct the clock all the same.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Deserialize)]
struct List {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    node: String,
    state: String,
    address: String,
    version: String,
    started_at: u64,
    seen_at: u64,
    #[serde(default)]
    clock_ahead_ms: i64,
    in_flight: u64,
    leases: u64,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    connection::run(list(args))
}

async fn list(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let answer = client.get("/nodes").await?;
    if args.connection.json {
        output.json(&answer.body)?;
        return Ok(Exit::Done);
    }
    let List { nodes } = answer.read()?;
    let now = now_millis();
    let mut table =
        Table::new(&["NODE", "STATE", "ADDRESS", "VERSION", "STARTED", "SEEN", "CLOCK", "IN FLIGHT", "LEASES"])
            .leading();
    nodes.iter().for_each(|node| table.row(row(node, now)));
    output.table(&table)?;
    Ok(Exit::Done)
}

fn row(node: &Node, now: u64) -> [Cell; 9] {
    let state = match node.state.as_str() {
        "ALIVE" => Cell::coloured(&node.state, Colour::Good),
        "SILENT" => Cell::coloured(&node.state, Colour::Bad),
        _ => Cell::coloured(&node.state, Colour::Busy),
    };
    [
        node.node.as_str().into(),
        state,
        node.address.as_str().into(),
        node.version.as_str().into(),
        moment_cell(node.started_at, now),
        moment_cell(node.seen_at, now),
        clock(node.clock_ahead_ms),
        node.in_flight.to_string().into(),
        node.leases.to_string().into(),
    ]
}

/// The difference of a node's clock; up to a second is shown as ok.
fn clock(ahead_ms: i64) -> Cell {
    match ahead_ms.unsigned_abs() {
        0..=1_000 => "ok".into(),
        off => {
            let off = duration(Duration::from_millis(off));
            Cell::coloured(format!("{off} {}", if ahead_ms > 0 { "ahead" } else { "behind" }), Colour::Bad)
        }
    }
}
