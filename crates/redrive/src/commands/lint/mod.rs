//! `redrive lint`: files with policies and services, judged by the retry standard.

use std::io;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use redrive_core::Date;
use redrive_standard::files::{Topic, Verdict, judge, page, report};
use redrive_standard::rules::Gate;

use crate::commands::sources;
use crate::exit::{Exit, ExitError};
use crate::output::{Output, today};

const EXAMPLES: &str = "\
Examples:
  redrive lint policies.toml services.yaml         # several files are checked as one set
  redrive lint - < policies.json
  redrive lint retry/*.yaml --format github        # annotations in a GitHub workflow
  redrive lint retry/*.yaml --format sarif > retry.sarif
  redrive lint policies.toml --fail-on deploy      # findings that only need an approval pass
  redrive lint --explain R-7                       # what a rule requires, and why
  redrive lint --explain fixed-interval

A file has policies (a list, or a table by name, as for `redrive policies apply`) and services:
  [policies.payments]
  context = \"sync\"
  [[services]]
  name = \"checkout\"
  context = \"sync\"
  [[services.dependencies]]
  name = \"billing\"
  policy = \"payments\"
  methods = [\"POST\"]
  idempotency = { key = \"uuid-v4\" }
  retryBudget = { ratio = 0.2, opensBreaker = true }
More retries than the standard allows need an approval, which may be recorded in the policy:
  approval = { by = \"Integration Architecture Board\", until = \"2027-06-30\", maxAttempts = 16 }";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// TOML, YAML or JSON files; - is standard input
    #[arg(required_unless_present = "explain", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How findings are printed
    #[arg(long, value_enum, default_value_t = Format::People)]
    format: Format,
    /// The lowest gate at which a finding makes the exit code 1
    #[arg(long, value_name = "GATE", default_value = "approval", value_parser = gates())]
    fail_on: Gate,
    /// The day (UTC) on which approvals are judged [default: today]
    #[arg(long, value_name = "YYYY-MM-DD")]
    today: Option<Date>,
    /// Explain a rule or a check (fixed-interval) instead
    #[arg(long, value_name = "RULE", conflicts_with_all = ["files", "format", "fail_on", "today"])]
    explain: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people: the lines of the file, with the finding underlined
    People,
    /// For programs
    Json,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// For GitHub workflows: an annotation for each finding
    Github,
}

/// The gates by name, the mildest first.
fn gates() -> impl TypedValueParser<Value = Gate> {
    PossibleValuesParser::new(Gate::ALL.map(Gate::as_str))
        .try_map(|name| Gate::from_name(&name).ok_or_else(|| format!("there is no gate {name}")))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if let Some(name) = &args.explain {
        return explain(name);
    }
    let today = args.today.unwrap_or_else(today);
    let files = sources::distinct(&args.files).into_iter().map(sources::read).collect();
    let verdict = judge(files, today);
    print(&text(&verdict, args.format)?)?;
    Ok(exit(&verdict, args.fail_on))
}

fn text(verdict: &Verdict, format: Format) -> anyhow::Result<String> {
    Ok(match format {
        Format::People => report::people(verdict, Output::standard().coloured),
        Format::Json => report::json(verdict)?,
        Format::Sarif => report::sarif(verdict, env!("CARGO_PKG_VERSION"))?,
        Format::Github => report::github(verdict),
    })
}

/// Prints the report. If it cannot be written, the exit code must not be that of findings. A reader that closes the pipe
/// early (`| head`) still gets the exit code of the verdict.
fn print(text: &str) -> anyhow::Result<()> {
    match Output::standard().text(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(ExitError::of(Exit::UNREAD, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// What could not be read may hide anything, so it weighs more than what was found.
fn exit(verdict: &Verdict, fail_on: Gate) -> Exit {
    match verdict {
        verdict if !verdict.problems.is_empty() => Exit::UNREAD,
        verdict if verdict.is_stopped_at(fail_on) => Exit::FINDINGS,
        _ => Exit::Done,
    }
}

fn explain(name: &str) -> anyhow::Result<Exit> {
    let Some(topic) = Topic::named(name) else {
        let topics: String = Topic::list().lines().map(|line| format!("\n  {line}")).collect();
        return Err(ExitError::of(Exit::UNREAD, format!("there is no rule or check {name:?}; there are:{topics}")));
    };
    print(&page(topic))?;
    Ok(Exit::Done)
}
