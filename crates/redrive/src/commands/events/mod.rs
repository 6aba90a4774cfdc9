//! `redrive events`: what happens on a node.

mod follow;
mod line;

use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use tokio::signal::unix::{SignalKind, signal};

use crate::commands::{Connection, connection};
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive events                                    # the last events
  redrive events --follow                           # and those that follow
  redrive events --follow --new --kind dead-letter  # only what becomes a dead letter from now on
  redrive events --task 0199c2a5-7c1e-7f3a-8a44-6f0d2b1c9e55
  redrive events --json                             # a JSON object a line

Events are those of the node that you ask, the last 10,000 unless it was started with another
--events. A gap is reported: after a restart, or because there were too many events.
Kinds: accepted, attempt, retry-scheduled, ended, dead-letter, lease-taken-over, breaker-opened,
breaker-closed, dependency-gone, paused, alert. Ctrl-C ends --follow.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Continue with events as they happen, also across restarts of the server
    #[arg(long, short)]
    follow: bool,
    /// Leave out events that have happened before
    #[arg(long, requires = "follow")]
    new: bool,
    /// Only events of this dependency and of its tasks
    #[arg(long, value_name = "NAME")]
    dependency: Option<String>,
    /// Only events of the task with this id, or with the only id that begins so
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    task: Option<String>,
    /// Only events of this kind; may be repeated
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Args {
    /// The path of the events, without where to resume.
    fn path(&self, task: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("follow", if self.follow { "true" } else { "false" });
        query.append_pair("past", if self.new { "false" } else { "true" });
        if let Some(dependency) = &self.dependency {
            query.append_pair("dependency", dependency);
        }
        if let Some(task) = task {
            query.append_pair("taskId", task);
        }
        for kind in &self.kind {
            query.append_pair("kind", kind);
        }
        format!("/events?{}", query.finish())
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    connection::run(async {
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
        tokio::select! {
            done = follow::follow(&args) => done.map(|()| Exit::Done),
            _ = interrupt.recv() => Ok(Exit::Interrupted),
        }
    })
}
