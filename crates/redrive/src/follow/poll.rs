//! Asks for a task and its new attempts, and decides when to ask again.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::client::{Attempt, Client, Pages, Task, escape, is_passing};
use crate::config::parse_duration;
use crate::exit::with_advice;
use crate::output::{duration, notice, now_millis};

use super::count_down;
use super::view::View;

/// The polling interval while an attempt is in progress or due.
const FAST: Duration = Duration::from_millis(100);
/// The longest polling interval.
const SLOW: Duration = Duration::from_secs(1);
/// How long to wait for a server that cannot be reached: long enough for a restart by hand.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long to wait for a task's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until the task ends.
    UntilEnded,
    /// At most for this time.
    AtMost(Duration),
}

impl Wait {
    /// A duration, or nothing.
    pub(crate) fn parse(text: &str) -> Result<Wait, String> {
        if text.is_empty() { Ok(Wait::UntilEnded) } else { parse_duration(text).map(Wait::AtMost) }
    }
}

pub(super) enum Progress {
    Waiting(Box<Task>),
    Ended(Box<Task>, Bytes),
}

pub(super) struct Poll<'a> {
    client: &'a mut Client,
    path: String,
    view: View,
    /// The command that looks at the task again.
    hint: String,
    /// The state that was seen last, to look at the attempts only when there is something new.
    seen: Option<(String, u32, Option<u64>)>,
    /// The attempts that were shown.
    shown: u32,
    last: Option<Bytes>,
    unreachable_since: Option<Instant>,
}

impl<'a> Poll<'a> {
    pub(super) fn new(client: &'a mut Client, id: &str, view: View, hint: String, known: Option<Bytes>) -> Self {
        let path = format!("/retry-tasks/{}", escape(id));
        Poll { client, path, view, hint, seen: None, shown: 0, last: known, unreachable_since: None }
    }

    /// The task as it was seen last.
    pub(super) fn last(&self) -> Option<&Bytes> {
        self.last.as_ref()
    }

    /// Looks once, and shows what is new.
    pub(super) async fn step(&mut self) -> anyhow::Result<Progress> {
        let (task, document) = self.look().await?;
        let state = (task.status.clone(), task.attempt_number, task.next_attempt_at);
        if self.seen.as_ref() != Some(&state) {
            self.new_attempts(&task).await?;
            self.view.changed(&document)?;
            self.seen = Some(state);
        }
        self.last = Some(document.clone());
        let task = Box::new(task);
        Ok(if task.is_ended() { Progress::Ended(task, document) } else { Progress::Waiting(task) })
    }

    /// Waits until it is worth looking again.
    pub(super) async fn pause(&self, task: &Task) -> anyhow::Result<()> {
        let until_due = task.next_attempt_at.map_or(0, |due| due.saturating_sub(now_millis()));
        let pause = match task.status.as_str() {
            "PENDING" => Duration::from_millis(until_due).clamp(FAST, SLOW),
            _ => FAST,
        };
        count_down(self.view.output(), pause, || self.view.waiting(task, now_millis())).await
    }

    async fn look(&mut self) -> anyhow::Result<(Task, Bytes)> {
        loop {
            match self.client.get(&self.path).await {
                Ok(answer) => match answer.read() {
                    Ok(task) => {
                        if self.unreachable_since.take().is_some() {
                            self.say("the server is back")?;
                        }
                        return Ok((task, answer.body));
                    }
                    Err(error) => self.be_patient(error).await?,
                },
                Err(error) => self.be_patient(error).await?,
            }
        }
    }

    /// Prints a notice in place of the countdown.
    fn say(&self, text: &str) -> std::io::Result<()> {
        if let Some(output) = self.view.output() {
            output.overwrite("")?;
        }
        notice(text);
        Ok(())
    }

    async fn be_patient(&mut self, error: anyhow::Error) -> anyhow::Result<()> {
        // A server that never answered is probably not there; one that did, for example by accepting the task, will
        // probably be back.
        if self.last.is_none() || !is_passing(&error) {
            return Err(error);
        }
        let since = match self.unreachable_since {
            Some(since) => since,
            None => {
                self.say(&format!(
                    "lost contact with the server; the task was accepted and goes on without this command: {}\n\
                     waiting for the server, for up to {}; Ctrl-C stops the waiting and not the task",
                    self.hint,
                    duration(PATIENCE)
                ))?;
                *self.unreachable_since.insert(Instant::now())
            }
        };
        if since.elapsed() > PATIENCE {
            return Err(with_advice(error, &format!("the task was accepted and goes on: {}", self.hint)));
        }
        count_down(self.view.output(), FAST * 5, || "waiting for the server".into()).await
    }

    async fn new_attempts(&mut self, task: &Task) -> anyhow::Result<()> {
        let mut pages = Pages::new(format!("{}/attempts", self.path), Vec::new(), "attempts", usize::MAX);
        loop {
            let page = match pages.next(self.client).await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(()),
                // The next look finds out whether the server is really gone.
                Err(error) if is_passing(&error) => return Ok(()),
                Err(error) => return Err(error),
            };
            for (document, attempt) in page.items.iter().zip(page.read::<Attempt>()?) {
                if attempt.attempt_number > self.shown {
                    self.view.attempt(task, &attempt, document)?;
                    self.shown = attempt.attempt_number;
                }
            }
        }
    }
}
