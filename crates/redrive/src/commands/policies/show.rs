//! `redrive policies show`.

use std::path::{Path, PathBuf};

use redrive_core::policy::{Context, Spec};
use redrive_standard::printable_json;
use redrive_standard::rules::{self, Finding, Permission};
use serde_json::Value;

use super::{document, timetable, with_preset_hint};
use crate::client::{Policy, escape, is_unanswered};
use crate::commands::Connection;
use crate::config::duration_text;
use crate::exit::{Exit, ExitError, exit_of};
use crate::output::{Colour, Output, Table, moment, notice, now_millis, printable, today};

const EXAMPLES: &str = "\
Examples:
  redrive policies show default
  redrive policies show webhook                        # a preset; also sync, event, batch, grpc
  redrive policies show payments --file policies.toml  # before it is applied
  redrive policies show webhooks --json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The name of a policy or a preset
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    /// Read the policy from this TOML, YAML or JSON file instead of the server
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let output = args.connection.output();
    let (mut document, note) = match &args.file {
        Some(file) => (of_file(file, &args.name)?, None),
        None => of_server(&args).await?,
    };
    if let Some(note) = note.as_ref().filter(|_| args.connection.json) {
        notice(note);
    }
    let understood = timetable::spec_of(&document);
    if args.connection.json {
        if let Some((_, policy)) = &understood {
            document["timetable"] = timetable::json(policy);
        }
        output.json(printable_json(&serde_json::to_string(&document)?).as_bytes())?;
        return Ok(Exit::Done);
    }
    print(output, &serde_json::from_value(document)?)?;
    if let Some((spec, policy)) = &understood {
        timetable::print(output, policy)?;
        judge(output, spec)?;
    }
    if let Some(note) = note {
        notice(note);
    }
    Ok(Exit::Done)
}

/// Says what of the retry standard the policy breaks today.
fn judge(output: Output, spec: &Spec) -> std::io::Result<()> {
    let findings = rules::check_policy(spec, None, today());
    if findings.is_empty() {
        return output.line("the policy conforms to the retry standard");
    }
    for Finding { check, wrong, permission, .. } in &findings {
        let why_not = permission.as_ref().and_then(Permission::why_not);
        let (gate, colour) = match permission {
            Some(Permission { by, until, .. }) if why_not.is_none() => {
                (format!("approved by {by} until {until}"), Colour::Good)
            }
            _ => (check.gate.action().to_owned(), Colour::Bad),
        };
        let but = why_not.map(|why_not| format!("; {}", printable(&why_not))).unwrap_or_default();
        output.line(format!(
            "{}: {} {}: {wrong}{but}",
            output.paint(&printable(&gate), colour),
            check.rule,
            check.id
        ))?;
    }
    Ok(())
}

/// The server's policy; the preset of that name if the server has none, or is not there to be asked.
async fn of_server(args: &Args) -> anyhow::Result<(Value, Option<String>)> {
    let error = match args.connection.client()?.get(&format!("/retry-policies/{}", escape(&args.name))).await {
        Ok(answer) => return Ok((answer.read()?, None)),
        Err(error) => error,
    };
    let Some(context) = Context::from_name(&args.name) else {
        return Err(with_preset_hint(error, Some(&args.name)));
    };
    let why = match exit_of(&error) {
        Exit::NotFound => "the server has no policy of this name".to_owned(),
        Exit::Unreachable if is_unanswered(&error) => format!("the server was not asked: {error:#}"),
        _ => return Err(error),
    };
    let note = format!("this is what a policy with context = \"{context}\" inherits; {why}");
    Ok((resolved(&args.name, &Spec { context: Some(context), ..Spec::default() })?, Some(note)))
}

fn of_file(file: &Path, name: &str) -> anyhow::Result<Value> {
    let policies = document::written(&[file])?;
    let Some(policy) = policies.iter().find(|policy| policy.name == name) else {
        return Err(ExitError::of(Exit::NotFound, format!("there is no policy {name} in {}", file.display())));
    };
    match policy.resolve() {
        Ok(_) => resolved(name, &policy.spec),
        Err(problems) => document::refuse(&problems),
    }
}

/// A policy that no server has, as a server would show it.
fn resolved(name: &str, spec: &Spec) -> anyhow::Result<Value> {
    let shown = Spec { approval: spec.approval.clone(), ..redrive_core::Policy::resolve(spec)?.to_spec() };
    let mut document = serde_json::to_value(shown)?;
    document["policyId"] = name.into();
    Ok(document)
}

fn print(output: Output, policy: &Policy) -> std::io::Result<()> {
    let now = now_millis();
    let mut table = Table::without_header();
    table.field("policy", policy.policy_id.as_str());
    if let Some(version) = policy.version {
        let built_in = if policy.built_in { ", built in" } else { "" };
        table.field("version", format!("{version}{built_in}, since {}", moment(policy.created_at, now)));
    }
    for (name, value) in &policy.fields {
        table.field(name, readable(name, value));
    }
    for version in policy.versions.iter().rev().filter(|version| version.version != policy.version) {
        let number = version.version.unwrap_or_default();
        let since = moment(version.created_at, now);
        table.field("before", format!("version {number}, since {since}{}", differences(version, policy)));
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
        Value::Array(items) if name.ends_with("Ms") => {
            let texts = items.iter().filter_map(Value::as_u64).map(std::time::Duration::from_millis).map(duration_text);
            format!("{value} ({})", texts.collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}
