//! `redrive dependencies`: shows what holds a dependency's tasks back, and controls it.

mod close;
mod limits;
mod list;
mod open;
mod pause;
mod reset;
mod resume;
mod show;
mod watch;

use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;

use crate::client::{Answer, Dependency, escape, foreign};
use crate::commands::{Connection, connection};
use crate::exit::Exit;
use crate::output::{Colour, printable};

const EXAMPLES: &str = "\
Examples:
  redrive dependencies list
  redrive dependencies show https://api.example.com
  redrive dependencies pause https://api.example.com --reason maintenance

A dependency has the name that a task was sent with (`redrive send --dependency`), or else the
origin of the target: https://api.example.com. Nodes over one PostgreSQL share its retry budget
and circuit breaker; its adaptive limit is per node. What you set here applies to all nodes.";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List dependencies
    List(list::Args),
    /// Show a dependency: what holds its tasks back and why
    Show(show::Args),
    /// Watch all dependencies, the ones in trouble first
    Watch(watch::Args),
    /// Send nothing to a dependency until it is resumed
    Pause(pause::Args),
    /// End the pause of a dependency
    Resume(resume::Args),
    /// Open the circuit breaker of a dependency
    Open(open::Args),
    /// Close the circuit breaker of a dependency
    Close(close::Args),
    /// Forget what the guards of a dependency have counted
    Reset(reset::Args),
    /// Set or remove the limits of concurrent attempts to a dependency
    Limits(limits::Args),
}

pub(crate) fn run(command: Command) -> anyhow::Result<Exit> {
    connection::run(async {
        match command {
            Command::List(args) => list::run(args).await,
            Command::Show(args) => show::run(args).await,
            Command::Watch(args) => watch::run(args).await,
            Command::Pause(args) => pause::run(args).await,
            Command::Resume(args) => resume::run(args).await,
            Command::Open(args) => open::run(args).await,
            Command::Close(args) => close::run(args).await,
            Command::Reset(args) => reset::run(args).await,
            Command::Limits(args) => limits::run(args).await,
        }
    })
}

/// The arguments of a command for one dependency.
#[derive(Debug, clap::Args)]
struct DependencyArgs {
    /// The dependency's name, such as https://api.example.com
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    #[command(flatten)]
    connection: Connection,
}

impl DependencyArgs {
    /// The path of the dependency, or of an action on it.
    fn path(&self, action: &str) -> String {
        format!("/dependencies/{}{action}", escape(&self.name))
    }

    /// Whether there is, or was, any task of the dependency.
    async fn is_known(&self) -> anyhow::Result<bool> {
        let of: Dependency = self.connection.client()?.get(&self.path("")).await?.read()?;
        let has_tasks = of.backlog.is_none_or(|backlog| backlog.due + backlog.waiting > 0);
        Ok(has_tasks || of.totals.attempts > 0 || of.concurrency.in_flight > 0)
    }

    /// Posts a document, and prints where the dependency stands.
    async fn post(&self, action: &str, document: Vec<u8>) -> anyhow::Result<Exit> {
        let answer = self.connection.client()?.post(&self.path(action), document).await?;
        self.print(&answer)
    }

    /// Prints where the dependency stands, in a line.
    fn print(&self, answer: &Answer) -> anyhow::Result<Exit> {
        let output = self.connection.output();
        let Dependency { dependency, state, why, .. } = answer.read()?;
        if dependency.is_empty() {
            return Err(foreign("there is no dependency in it", &answer.body));
        }
        if self.connection.json {
            output.json(&answer.body)?;
            return Ok(Exit::Done);
        }
        let state = output.paint(&printable(&state), colour(&state));
        output.line(format!("{} {state}: {}", printable(&dependency), printable(&why)))?;
        Ok(Exit::Done)
    }
}

/// The colour of a dependency's state.
fn colour(state: &str) -> Colour {
    match state {
        "ok" => Colour::Good,
        "paused" | "open" => Colour::Bad,
        _ => Colour::Busy,
    }
}
