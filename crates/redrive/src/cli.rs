//! The command line: the list of commands, and how each is run.

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::arguments::with_durations_joined;
use crate::commands::{
    alerts, completions, config, dependencies, doctor, events, idempotency, inbox, lint, man_pages, migrate, nodes,
    outbox, policies, report, send, serve, servers, simulate, target, tasks,
};
use crate::exit::{self, EXIT_CODES, Exit, LINT_EXIT_CODES, SIMULATE_EXIT_CODES};

const ABOUT: &str = "Redrive: a durable retry service.\n\n\
    It stores HTTP requests and retries them until they are delivered or their attempts or time run out.";

const EXAMPLES: &str = "\
Examples:
  redrive serve                                           # start the service on 127.0.0.1:8620
  redrive send https://example.com/hook -d hello --wait   # send a request, and watch it
  redrive target --fail 3                                 # a server to try it with
  redrive tasks list --status FAILED --status EXHAUSTED   # what could not be delivered";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "redrive", version, about = ABOUT, after_help = EXAMPLES)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service
    Serve(serve::Args),
    /// Send a request through the service
    Send(Box<send::Args>),
    /// List, show, cancel, retry and replay tasks
    #[command(subcommand)]
    Tasks(tasks::Command),
    /// List, show, apply and delete retry policies
    #[command(subcommand)]
    Policies(policies::Command),
    /// List, watch, pause and limit dependencies, and control their circuit breakers
    #[command(subcommand)]
    Dependencies(dependencies::Command),
    /// List, show, count and delete idempotency records
    #[command(subcommand)]
    Idempotency(idempotency::Command),
    /// Count the events that consumers have seen
    #[command(subcommand)]
    Inbox(inbox::Command),
    /// Check retry policies and service declarations against the retry standard
    Lint(lint::Args),
    /// Simulate what retry policies do to a dependency during an outage
    Simulate(Box<simulate::Args>),
    /// Report the health of deliveries in the last hour
    Report(report::Args),
    /// List and silence alerts, and test the sinks that are told of them
    #[command(subcommand)]
    Alerts(alerts::Command),
    /// Show what happens on a node, and follow it live
    Events(events::Args),
    /// List the servers that have names
    Servers(servers::Args),
    /// List the nodes of the service
    Nodes(nodes::Args),
    /// Check whether a service is ready and report problems
    Doctor(doctor::Args),
    /// Run a test server that prints what arrives, and fails as you tell it
    Target(target::Args),
    /// Move rows of an outbox table into Redrive
    #[command(subcommand)]
    Outbox(outbox::Command),
    /// Update the schema of a PostgreSQL store
    Migrate(migrate::Args),
    /// Show the effective configuration and where each value comes from
    Config(config::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Write the manual pages of all commands
    ManPages(man_pages::Args),
}

/// The command line as clap knows it, with the exit codes at the end of every help.
pub fn command() -> clap::Command {
    with_exit_codes(Cli::command().mut_subcommand("migrate", migrate::with_short_help))
}

fn with_exit_codes(command: clap::Command) -> clap::Command {
    let examples = command.get_after_help().map(|examples| format!("{examples}\n\n")).unwrap_or_default();
    let codes = match command.get_name() {
        "lint" => LINT_EXIT_CODES,
        "simulate" => SIMULATE_EXIT_CODES,
        _ => EXIT_CODES,
    };
    command.after_help(format!("{examples}{codes}")).mut_subcommands(with_exit_codes)
}

/// The path that this program was started with, so that printed command lines can be copied.
pub(crate) fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "redrive".into())
}

/// Runs the command that the command line names, and returns how the program exits.
pub fn main() -> Exit {
    let matches = match command().try_get_matches_from(with_durations_joined(std::env::args_os())) {
        Ok(matches) => matches,
        Err(error) => return usage(&error),
    };
    let done = match Cli::from_arg_matches(&matches) {
        Ok(cli) => run(cli),
        Err(error) => return usage(&error),
    };
    done.unwrap_or_else(|error| exit::report(&error, wants_json(&matches)))
}

fn wants_json(matches: &ArgMatches) -> bool {
    let here = matches.try_get_one("json").ok().flatten().copied().unwrap_or(false);
    here || matches.subcommand().is_some_and(|(_, matches)| wants_json(matches))
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Send(args) => send::run(*args),
        Command::Tasks(command) => tasks::run(command),
        Command::Policies(command) => policies::run(command),
        Command::Dependencies(command) => dependencies::run(command),
        Command::Idempotency(command) => idempotency::run(command),
        Command::Inbox(command) => inbox::run(command),
        Command::Lint(args) => lint::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Report(args) => report::run(args),
        Command::Alerts(command) => alerts::run(command),
        Command::Events(args) => events::run(args),
        Command::Servers(args) => servers::run(&args),
        Command::Nodes(args) => nodes::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Target(args) => target::run(&args),
        Command::Outbox(command) => outbox::run(command),
        Command::Migrate(args) => migrate::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::ManPages(args) => man_pages::run(&args),
    }
}

/// `--help` and `--version` succeed; everything else is a usage error.
fn usage(error: &clap::Error) -> Exit {
    // Fails only if the pipe is closed, and then there is no reader.
    error.print().ok();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
        _ => Exit::Usage,
    }
}
