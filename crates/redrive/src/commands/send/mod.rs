//! `redrive send`: hands a request over for delivery, and if asked waits for its end.

mod body;
mod repeat;

use std::time::Duration;

use redrive_engine::entropy::Entropy;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::client::{Answer, Task, Upload, is_passing};
use crate::commands::{Connection, connection, pairs, policies};
use crate::exit::{Exit, ExitError, with_advice};
use crate::follow::{Follow, Wait};
use crate::output::{Colour, Output, notice};
use crate::serve::ThreadEntropy;
use body::Data;

const EXAMPLES: &str = "\
Examples:
  redrive send https://example.com/hook -d hello
  redrive send https://example.com/hook --json-body '{\"order\": 7}' --key order-7 --wait
  redrive send https://example.com/items/7 -X PUT -H 'Content-Type: image/png' -d @picture.png
  redrive send https://example.com/hook -d hello --wait=30s --set maxAttempts=3
  redrive send https://example.com/hook -d hello --policy webhook   # a preset
  redrive send https://example.com/hook -d - --policy webhooks --delay 15m < body.txt
  redrive send https://example.com/hook -d hello --dependency billing --label team=pay";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The URL to call
    url: String,
    /// The HTTP method; a common one is sent in capitals, however you write it [default: POST]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<String>,
    /// A header field; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = pairs::header)]
    headers: Vec<(String, String)>,
    /// The body: text, @FILE for the bytes of a file, - for standard input. A body over 1 MiB is uploaded first; its
    /// content type is the one of the header, if there is one
    #[arg(short = 'd', long, value_name = "TEXT|@FILE|-", allow_hyphen_values = true, conflicts_with = "json_body")]
    data: Option<String>,
    /// The body as JSON, sent byte for byte as written; @FILE and - as for --data
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    json_body: Option<String>,
    /// The idempotency key that every attempt carries, 1 to 64 visible ASCII characters; the same request with the same
    /// key is the same task [default: a new one, which is printed before anything is sent]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The retry policy: one of yours, or a preset: sync, event, webhook, webhook-patient, batch, grpc
    /// [default: default]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Override a field of the policy for this task, such as maxAttempts=3; may be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = pairs::override_field)]
    overrides: Vec<(String, Value)>,
    /// The name of the dependency that the URL belongs to [default: the URL's origin]
    #[arg(long, value_name = "NAME")]
    dependency: Option<String>,
    /// How long to wait before the first attempt
    #[arg(long, value_name = "DURATION", value_parser = crate::config::parse_duration)]
    delay: Option<Duration>,
    /// Your own id of the work that the task belongs to, for logs and events
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// A label to find the task by; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pairs::label)]
    labels: Vec<(String, String)>,
    /// Wait until the task has ended, at most for this long, and show its attempts
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = Wait::parse)]
    wait: Option<Wait>,
    #[command(flatten)]
    connection: Connection,
}

/// The task as the server wants it; what is not given is left for the server to decide.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Submission {
    target_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    headers: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_json: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_id: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    policy: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    labels: Map<String, Value>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    let (connection, wait) = (args.connection.clone(), args.wait);
    if !args.url.contains("://") {
        let url = &args.url;
        let message = format!("the URL must begin with http:// or https://; did you mean http://{url}?");
        return Err(ExitError::of(Exit::Usage, message));
    }
    for (flag, twice) in [
        ("--label", pairs::twice(args.labels.iter().map(|(name, _)| name.as_str()))),
        ("--set", pairs::twice(args.overrides.iter().map(|(name, _)| name.as_str()))),
    ] {
        if let Some(name) = twice {
            return Err(ExitError::of(Exit::Usage, format!("{flag} {name} is given twice")));
        }
    }
    let (mut submission, large) = submission(args)?;
    let advice = make_key(&mut submission, connection.server_flag().as_deref());
    connection::run(async {
        let mut client = connection.client()?;
        if let Some(advice) = &advice {
            notice(advice);
        }
        if let Some(large) = large {
            submission.body_ref = Some(client.upload(large).await?);
        }
        let answer = client.post("/retry-tasks", serde_json::to_vec(&submission)?).await;
        let answer = answer.map_err(|error| in_doubt(error, submission.idempotency_key.as_deref()));
        let answer = answer.map_err(|error| policies::with_preset_hint(error, submission.policy_id.as_deref()))?;
        let task: Task = answer.read()?;
        let output = connection.output();
        let follow = wait.map(|wait| Follow::new(&connection, wait)).transpose()?;
        if !connection.json {
            announce(output, &answer, &task)?;
        }
        match follow {
            Some(follow) => return follow.knowing(answer.body).until_ended(&mut client, &task.task_id).await,
            None if connection.json => output.json(&answer.body)?,
            None => output.line(format!("watch it: {}", connection.hint(&format!("tasks watch {}", task.task_id))))?,
        }
        Ok(Exit::Done)
    })
}

/// Makes a key if none is given, here and not on the server. If contact is lost before the answer arrives, the user knows the key
/// and can repeat the request without making a second task. Returns the advice how.
fn make_key(submission: &mut Submission, server: Option<&str>) -> Option<String> {
    if submission.idempotency_key.is_some() {
        return None;
    }
    let (high, low) = (ThreadEntropy.bits(), ThreadEntropy.bits());
    let key = redrive_core::id::make_key(u128::from(high) << 64 | u128::from(low));
    submission.idempotency_key = Some(key.to_string());
    Some(repeat::advice(&key, server))
}

/// An error of the submission; if contact was lost or the server can accept nothing now, with the key that makes it safe to repeat the command.
fn in_doubt(error: anyhow::Error, key: Option<&str>) -> anyhow::Error {
    match key {
        Some(key) if is_passing(&error) => {
            let advice = format!("with --key {key} the same command can be repeated: it never makes a second task");
            with_advice(error, &advice)
        }
        _ => error,
    }
}

/// A common method in capitals: methods are case-sensitive, and `get` is none that a server knows.
fn in_capitals(method: String) -> String {
    const COMMON: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let common = COMMON.iter().find(|common| common.eq_ignore_ascii_case(&method));
    common.map_or(method.clone(), |common| (*common).to_owned())
}

/// The task, and what must be uploaded before it.
fn submission(args: Args) -> anyhow::Result<(Submission, Option<Upload>)> {
    let mut submission = Submission {
        target_url: args.url,
        method: args.method.map(in_capitals),
        headers: pairs::header_map(args.headers),
        policy_id: args.policy,
        policy: args.overrides.into_iter().collect(),
        idempotency_key: args.key,
        dependency: args.dependency,
        correlation_id: args.correlation_id,
        delay_ms: args.delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
        labels: args.labels.into_iter().map(|(name, value)| (name, Value::String(value))).collect(),
        ..Submission::default()
    };
    if let Some(json) = args.json_body {
        submission.body_json = Some(body::json(&json)?);
    }
    let bytes = match args.data.map(|data| body::data(&data)).transpose()? {
        Some(Data::Bytes(bytes)) => bytes,
        Some(Data::Large(upload)) => return Ok((submission, Some(upload))),
        None => return Ok((submission, None)),
    };
    match String::from_utf8(bytes) {
        Ok(text) => submission.body = Some(text),
        Err(not_text) => submission.body_base64 = Some(body::base64(not_text.as_bytes())),
    }
    Ok((submission, None))
}

/// Says what was accepted.
fn announce(output: Output, answer: &Answer, task: &Task) -> std::io::Result<()> {
    let replayed = answer.headers.contains_key("idempotent-replayed");
    let how = if replayed { "already accepted, with the same key and the same request:" } else { "accepted" };
    output.line(format!("{how} {}", output.paint(&task.task_id, Colour::Strong)))?;
    output.line(format!("  {} {}", task.method, task.target_url))?;
    output.line(format!("  key {}, policy {}", task.idempotency_key, task.policy_text()))?;
    output.line(format!("  {}", task.plan_text()))?;
    task.findings.iter().for_each(|finding| notice(finding.text()));
    Ok(())
}
