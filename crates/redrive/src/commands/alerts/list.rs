//! `redrive alerts list`.

use serde::Deserialize;

use super::colour;
use crate::commands::Connection;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, moment_cell, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive alerts list
  redrive alerts list --past         # those that are over, too
  redrive alerts list --json

Alerts are what this node sees; silences are those of all nodes. docs/alerts.md says what each
rule means and what to do.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Also list alerts that are over
    #[arg(long)]
    past: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AlertList {
    firing: Vec<Alert>,
    firing_count: usize,
    past: Vec<Alert>,
    silences: Option<Vec<Silence>>,
    sinks: Vec<Sink>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Alert {
    rule: String,
    severity: String,
    dependency: Option<String>,
    why: String,
    fired_at: u64,
    resolved_at: Option<u64>,
    silenced: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Silence {
    silence_id: String,
    rule: Option<String>,
    dependency: Option<String>,
    reason: Option<String>,
    by: String,
    until: u64,
}

#[derive(Debug, Deserialize)]
struct Sink {
    sink: String,
    kind: String,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let answer = client.get("/alerts").await?;
    if args.connection.json {
        output.json(&answer.body)?;
        return Ok(Exit::Done);
    }
    let (list, now): (AlertList, u64) = (answer.read()?, now_millis());
    firing(output, &list, now)?;
    if args.past && !list.past.is_empty() {
        past(output, &list.past, now)?;
    }
    match &list.silences {
        Some(silenced) if silenced.is_empty() => {}
        Some(silenced) => silences(output, silenced, now)?,
        None => output.text("\nsilences are unknown: the store does not answer\n")?,
    }
    output.text("\n")?;
    output.prose(&sinks(&list.sinks))?;
    Ok(Exit::Done)
}

fn firing(output: Output, list: &AlertList, now: u64) -> anyhow::Result<()> {
    if list.firing.is_empty() {
        output.line("nothing fires")?;
        return Ok(());
    }
    let mut table = Table::new(&["RULE", "SEVERITY", "DEPENDENCY", "SINCE", "WHY"]).folding(1);
    for alert in &list.firing {
        let silenced = if alert.silenced == Some(true) { " (silenced)" } else { "" };
        table.row([
            alert.rule.as_str().into(),
            Cell::coloured(&alert.severity, colour(&alert.severity)),
            alert.dependency.as_deref().unwrap_or("-").into(),
            moment_cell(alert.fired_at, now),
            format!("{}{silenced}", alert.why).into(),
        ]);
    }
    output.table(&table)?;
    let hidden = list.firing_count.saturating_sub(list.firing.len());
    if hidden > 0 {
        output.text(&format!("{hidden} more\n"))?;
    }
    Ok(())
}

fn past(output: Output, past: &[Alert], now: u64) -> anyhow::Result<()> {
    output.text("\n")?;
    let mut table = Table::new(&["OVER", "SEVERITY", "DEPENDENCY", "FROM", "TO", "WHY"]).folding(1);
    for alert in past {
        table.row([
            alert.rule.as_str().into(),
            alert.severity.as_str().into(),
            alert.dependency.as_deref().unwrap_or("-").into(),
            moment_cell(alert.fired_at, now),
            alert.resolved_at.map_or_else(|| "-".into(), |at| moment_cell(at, now)),
            alert.why.as_str().into(),
        ]);
    }
    output.table(&table)?;
    Ok(())
}

fn silences(output: Output, silences: &[Silence], now: u64) -> anyhow::Result<()> {
    output.text("\n")?;
    let mut table = Table::new(&["SILENCE", "RULE", "DEPENDENCY", "UNTIL", "BY", "REASON"]).folding(2).leading();
    for silence in silences {
        table.row([
            silence.silence_id.as_str().into(),
            silence.rule.as_deref().unwrap_or("all").into(),
            silence.dependency.as_deref().unwrap_or("all").into(),
            moment_cell(silence.until, now),
            silence.by.as_str().into(),
            silence.reason.as_deref().unwrap_or("-").into(),
        ]);
    }
    output.table(&table)?;
    Ok(())
}

fn sinks(sinks: &[Sink]) -> String {
    if sinks.is_empty() {
        return "sinks: none; alerts are only listed here and logged (see [alerts] in `redrive config --example`)"
            .into();
    }
    let names: Vec<String> = sinks.iter().map(|sink| format!("{} ({})", sink.sink, sink.kind)).collect();
    format!("sinks: {}", names.join(", "))
}
