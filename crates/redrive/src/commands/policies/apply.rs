//! `redrive policies apply`.

use std::path::PathBuf;

use anyhow::Context;
use redrive_standard::printable_json;
use serde_json::Value;
use serde_json::value::RawValue;

use super::document;
use crate::client::{Answer, Client, Policy, escape};
use crate::commands::Connection;
use crate::exit::{Exit, exit_of};
use crate::output::{Colour, Output, notice, printable};

const EXAMPLES: &str = "\
Examples:
  redrive policies apply webhooks.toml
  redrive policies apply policies/a.json policies/b.yaml
  redrive policies apply - < webhooks.json

Policies are applied one after the other; those before an error stay applied.
A file has one policy, or several under `policies`:
  [policies.webhooks]
  maxAttempts = 8
  initialDelayMs = 500
  maxDelayMs = 60000
The section `services`, which is for `redrive lint`, is ignored.

Applying the same policy again changes nothing. A change makes a new version; tasks keep the
version that they were accepted with.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// TOML, YAML or JSON files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    // Every file is read before anything is changed: a mistake in the last one must not leave half of them applied.
    let policies = document::read(&args.files)?;
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let mut applied: Vec<Box<RawValue>> = Vec::new();
    for policy in &policies {
        let name = policy["policyId"].as_str().unwrap_or_default();
        let (before, answer) = apply(&mut client, name, policy).await.with_context(|| format!("policy {name}"))?;
        let (before, was_built_in) = before.map_or((None, false), |before| (before.version, before.built_in));
        if was_built_in && policy.get("context").is_none() {
            notice(format!(
                "note: {name} replaces the preset of this name and inherits nothing from it; context = \"{name}\" would let it inherit"
            ));
        }
        if args.connection.json {
            applied.push(answer.read()?);
        } else {
            print(output, before, &answer.read()?)?;
        }
    }
    if args.connection.json {
        let document = serde_json::to_string(&serde_json::json!({ "policies": applied }))?;
        output.json(printable_json(&document).as_bytes())?;
    }
    Ok(Exit::Done)
}

/// Applies one policy; says what it was before.
async fn apply(client: &mut Client, name: &str, policy: &Value) -> anyhow::Result<(Option<Policy>, Answer)> {
    let before = match client.get(&format!("/retry-policies/{}", escape(name))).await {
        Ok(answer) => Some(answer.read::<Policy>()?),
        Err(error) if exit_of(&error) == Exit::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok((before, client.post("/retry-policies", serde_json::to_vec(policy)?).await?))
}

fn print(output: Output, before: Option<u32>, policy: &Policy) -> anyhow::Result<()> {
    let done = match before {
        None => output.paint("created", Colour::Good),
        Some(version) if Some(version) < policy.version => output.paint("updated", Colour::Good),
        Some(_) => output.paint("unchanged", Colour::Faint),
    };
    let version = policy.version.unwrap_or_default();
    output.line(format!("{} {done}, version {version}", policy.policy_id))?;
    for finding in &policy.findings {
        let text = format!("{}: {}", policy.policy_id, finding.text());
        text.lines().for_each(|line| notice(printable(line)));
    }
    Ok(())
}
