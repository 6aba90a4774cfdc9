//! Waits for a task's end, and shows its attempts as they happen.
//!
//! The task is polled: often while an attempt is in progress or about to start, rarely while it waits. If the server
//! cannot be reached for a moment (a restart), polling goes on.

mod poll;
mod view;

pub(crate) use poll::Wait;
pub(crate) use view::status_text;

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::client::{Client, Task};
use crate::commands::Connection;
use crate::exit::Exit;
use crate::output::{Output, duration, notice};

use poll::{Poll, Progress};
use view::View;

/// Follows a task. As long as it exists, Ctrl-C does not kill the program but stops following.
pub(crate) struct Follow<'a> {
    connection: &'a Connection,
    wait: Wait,
    interrupt: Signal,
    known: Option<Bytes>,
}

impl<'a> Follow<'a> {
    /// Follows for as long as `wait` says.
    pub(crate) fn new(connection: &'a Connection, wait: Wait) -> anyhow::Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
        Ok(Follow { connection, wait, interrupt, known: None })
    }

    /// Sets the task as it is known already, for a wait that ends before the first poll.
    pub(crate) fn knowing(self, task: Bytes) -> Self {
        Follow { known: Some(task), ..self }
    }

    /// Waits for the task's end. For programs: prints the task as it ends.
    pub(crate) async fn until_ended(self, client: &mut Client, id: &str) -> anyhow::Result<Exit> {
        let view = if self.connection.json { View::Last } else { View::Lines(self.connection.output()) };
        self.follow(client, id, view).await
    }

    /// Waits for the task's end. For programs: prints each attempt and each change as a line of JSON.
    pub(crate) async fn watch(self, client: &mut Client, id: &str) -> anyhow::Result<Exit> {
        let view = if self.connection.json { View::Events } else { View::Lines(self.connection.output()) };
        self.follow(client, id, view).await
    }

    async fn follow(mut self, client: &mut Client, id: &str, view: View) -> anyhow::Result<Exit> {
        let output = self.connection.output();
        let hint = self.connection.hint(&format!("tasks watch {id}"));
        let mut poll = Poll::new(client, id, view, hint.clone(), self.known.take());
        let (exit, why) = tokio::select! {
            ended = to_the_end(&mut poll) => {
                let (task, document) = ended?;
                view.ended(output, &task, &document)?;
                return Ok(if task.status == "SUCCEEDED" { Exit::Done } else { Exit::NotDelivered });
            }
            why = ran_out(self.wait) => (Exit::WaitTimedOut, why),
            _ = self.interrupt.recv() => (Exit::Interrupted, "interrupted".to_owned()),
        };
        view.left(output, poll.last())?;
        notice(format!("{why}; the task goes on: {hint}"));
        Ok(exit)
    }
}

async fn to_the_end(poll: &mut Poll<'_>) -> anyhow::Result<(Task, Bytes)> {
    loop {
        match poll.step().await? {
            Progress::Ended(task, document) => return Ok((*task, document)),
            Progress::Waiting(task) => poll.pause(&task).await?,
        }
    }
}

async fn ran_out(wait: Wait) -> String {
    match wait {
        Wait::UntilEnded => std::future::pending().await,
        Wait::AtMost(limit) => {
            tokio::time::sleep(limit).await;
            format!("the task has not ended after {}", duration(limit))
        }
    }
}

/// How often a countdown is redrawn.
const TICK: Duration = Duration::from_millis(100);

/// Draws a countdown until the next look; where nothing can be drawn over, it only waits.
async fn count_down(output: Option<Output>, pause: Duration, line: impl Fn() -> String) -> anyhow::Result<()> {
    let until = Instant::now() + pause;
    while Instant::now() < until {
        match output {
            Some(output) if output.live => {
                output.overwrite(line())?;
                sleep_until(until.min(Instant::now() + TICK)).await;
            }
            _ => sleep_until(until).await,
        }
    }
    Ok(())
}
