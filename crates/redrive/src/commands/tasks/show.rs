//! `redrive tasks show`.

use redrive_core::counted;
use serde_json::{Map, Value};

use super::TaskArgs;
use crate::client::Task;
use crate::exit::Exit;
use crate::follow::status_text;
use crate::output::{Cell, Output, Table, moment, now_millis, printable, status_colour};

const EXAMPLES: &str = "\
Examples:
  redrive tasks show 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55
  redrive tasks show 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55 --json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,
}

pub(crate) async fn run(Args { task }: Args) -> anyhow::Result<Exit> {
    let (mut client, path) = task.find().await?;
    let answer = client.get(&path).await?;
    let output = task.connection.output();
    if task.connection.json {
        output.json(&answer.body)?;
    } else {
        print(output, &answer.read()?)?;
    }
    Ok(Exit::Done)
}

fn print(output: Output, task: &Task) -> std::io::Result<()> {
    let now = now_millis();
    let mut table = Table::without_header();
    table.field("task", task.task_id.as_str());
    table.field("status", Cell::coloured(task.status_text(), status_colour(&task.status)));
    table.field("attempts", attempts(task));
    if let Some(due) = task.next_attempt_at.filter(|_| task.status == "PENDING") {
        let since = if due <= now { "due since " } else { "" };
        table.field("next attempt", format!("{since}{}", moment(due, now)));
    }
    if let Some(what) = waiting(task, now) {
        table.field("waits for", what);
    }
    if let Some(error) = &task.last_error {
        table.field("last error", error.text());
    }
    table.field("accepted", moment(task.created_at, now));
    match task.ended_at {
        Some(ended) => table.field("ended", moment(ended, now)),
        None => table.field("deadline", moment(task.deadline_at, now)),
    }
    table.field("request", format!("{} {}", task.method, task.target_url));
    rows(&mut table, "header", &task.headers);
    table.field("body", body(task.body_bytes, task.body_ref.as_deref()));
    table.field("key", task.idempotency_key.as_str());
    if let Some(id) = &task.correlation_id {
        table.field("correlation", id.as_str());
    }
    table.field("dependency", task.dependency.as_str());
    table.field("policy", task.policy_text());
    rows(&mut table, "changed", task.policy.as_ref().unwrap_or(&Map::new()));
    table.field("plan", task.plan_text());
    for (name, value) in &task.labels {
        table.field("label", format!("{name}={value}"));
    }
    output.table(&table)?;
    response(output, task)
}

/// What holds a task back that is due.
fn waiting(task: &Task, now: u64) -> Option<String> {
    let what = match task.waiting_for.as_deref()? {
        "backoff" => return None,
        "budget" => "the retry budget of its dependency",
        "breaker" => "the circuit breaker of its dependency",
        "concurrency" => "other attempts to its dependency",
        "pause" => "its dependency to be resumed",
        "capacity" => "the capacity of the node",
        other => other,
    };
    let until = task.waiting_until.map(|until| format!(", until {}", moment(until, now))).unwrap_or_default();
    Some(format!("{what}{until}"))
}

/// How much it is, and where it is if it is not a part of the task: `GET /blobs/{bodyRef}` shows it.
fn body(bytes: u64, stored: Option<&str>) -> String {
    let bytes = counted(bytes, "byte");
    stored.map_or_else(|| bytes.clone(), |stored| format!("{bytes}, /blobs/{stored}"))
}

/// `2 of 6`, and of a task that was replayed `2 of 6 in run 2, 8 in all`
fn attempts(task: &Task) -> String {
    let in_run = format!("{} of {}", task.attempts_in_run(), task.max_attempts);
    if task.run > 1 { format!("{in_run} in run {}, {} in all", task.run, task.attempt_number) } else { in_run }
}

fn response(output: Output, task: &Task) -> std::io::Result<()> {
    let Some(response) = &task.response else { return Ok(()) };
    let mut table = Table::without_header();
    table.field("answer", status_text(response.status));
    rows(&mut table, "header", &response.headers);
    if response.body_ref.is_some() {
        table.field("body", body(response.body_bytes, response.body_ref.as_deref()));
    }
    output.text("\n")?;
    output.table(&table)?;
    let rest = if response.truncated { "\n(there was more, it is not kept)" } else { "" };
    match (&response.body, &response.body_base64) {
        (Some(text), _) if text.is_empty() => Ok(()),
        // The lines of a body are its own; everything else in it must not reach the terminal.
        (Some(text), _) => {
            output.text(&format!("\n{}{rest}\n", text.lines().map(printable).collect::<Vec<_>>().join("\n")))
        }
        (None, Some(base64)) => output.text(&format!("\n(base64) {base64}{rest}\n")),
        (None, None) => Ok(()),
    }
}

/// A row for each member of an object; a list of values has a row each.
fn rows(table: &mut Table, name: &str, object: &Map<String, Value>) {
    for (member, value) in object {
        let values = match value {
            Value::Array(values) if values.iter().all(Value::is_string) => values.clone(),
            value => vec![value.clone()],
        };
        for value in values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            table.field(name, format!("{member}: {text}"));
        }
    }
}
