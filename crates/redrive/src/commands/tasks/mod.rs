//! `redrive tasks`: lists, shows, cancels, retries and replays tasks.

mod attempts;
mod cancel;
mod list;
mod replay;
mod retry_now;
mod show;
mod watch;

use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;

use crate::client::{Client, Task, escape};
use crate::commands::{Connection, connection};
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive tasks list --since 1h
  redrive tasks show 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55
  redrive tasks watch 0199c2a5-7c1e   # as much of the id as no other task has";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List tasks, newest first
    List(list::Args),
    /// Show a task in full
    Show(show::Args),
    /// List the attempts of a task
    Attempts(attempts::Args),
    /// Watch a task until it has ended
    Watch(watch::Args),
    /// Cancel a task: once it is CANCELLED, no further attempt is sent
    Cancel(cancel::Args),
    /// Make the next attempt of a waiting task now
    RetryNow(retry_now::Args),
    /// Replay a dead letter: the same task and key in a new run
    Replay(replay::Args),
}

pub(crate) fn run(command: Command) -> anyhow::Result<Exit> {
    connection::run(async {
        match command {
            Command::List(args) => list::run(args).await,
            Command::Show(args) => show::run(args).await,
            Command::Attempts(args) => attempts::run(args).await,
            Command::Watch(args) => watch::run(args).await,
            Command::Cancel(args) => cancel::run(args).await,
            Command::RetryNow(args) => retry_now::run(args).await,
            Command::Replay(args) => replay::run(args).await,
        }
    })
}

/// The arguments of a command for one task.
#[derive(Debug, clap::Args)]
struct TaskArgs {
    /// The task's id, or the beginning of it that no other task has
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    id: String,
    #[command(flatten)]
    connection: Connection,
}

impl TaskArgs {
    /// A client, and the task's path.
    async fn find(&self) -> anyhow::Result<(Client, String)> {
        let mut client = self.connection.client()?;
        let id = client.task_id(&self.id).await?;
        Ok((client, format!("/retry-tasks/{}", escape(&id))))
    }

    /// Where the task stands, in a few words.
    fn line(&self, task: &Task) -> std::io::Result<()> {
        let output = self.connection.output();
        let status = output.paint(&task.status_text(), crate::output::status_colour(&task.status));
        let (made, at_most, run) = (task.attempts_in_run(), task.max_attempts, task.run_text());
        output.line(format!("{} {status}, attempt {made} of {at_most}{run}", task.task_id))
    }
}
