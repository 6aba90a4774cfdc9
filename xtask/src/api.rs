//! A client of Redrive's REST API, as far as the tools need it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::http::Connection;

/// Tasks by status.
pub type Counts = BTreeMap<String, u64>;

/// Whether a task with this status will never change again.
pub fn is_ended(status: &str) -> bool {
    !matches!(status, "PENDING" | "IN_FLIGHT")
}

/// A task as the API returns it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id.
    pub task_id: String,
    /// Its status.
    pub status: String,
    /// Attempts made so far, in all runs, the one in flight included.
    pub attempt_number: u32,
    /// The number of its current run.
    pub run: u32,
    /// Attempts made in this run.
    pub attempt_in_run: u32,
    /// The most attempts it may make in a run.
    pub max_attempts: u32,
    /// When the next attempt is due, in milliseconds since the epoch; `None` once ended.
    pub next_attempt_at: Option<u64>,
    /// The key that every attempt carries.
    pub idempotency_key: String,
}

/// A line of the attempt log.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Its number.
    pub attempt_number: u32,
    /// When it began, in milliseconds since the epoch.
    pub started_at: u64,
    /// Its outcome.
    pub outcome: String,
    /// The answer's status, if there was one.
    pub response_status: Option<u16>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskList {
    tasks: Vec<Task>,
    next_cursor: Option<String>,
    counts: Counts,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttemptList {
    attempts: Vec<Attempt>,
    next_cursor: Option<String>,
}

/// The head of a request whose body is JSON of this length.
pub fn head(method: &str, path: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// An answer with status and body.
#[derive(Debug)]
pub struct Answered {
    /// The status code.
    pub status: u16,
    body: Vec<u8>,
}

impl Answered {
    /// The document in its body.
    pub fn document<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).with_context(|| format!("reading the answer {}", self.describe()))
    }

    /// Status and body, for an error message.
    pub fn describe(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(&self.body))
    }
}

/// A caller of the API with one kept connection.
pub struct Api {
    connection: Connection,
}

impl Api {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        Ok(Api { connection: Connection::open(address).await? })
    }

    /// Sends one request; `body` is JSON.
    pub async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Answered> {
        let request = head(method, path, body.len()) + body;
        let answer = self.connection.call(request.as_bytes()).await?;
        Ok(Answered { status: answer.status, body: answer.body.to_vec() })
    }

    /// How many tasks there are in each status.
    pub async fn counts(&mut self) -> Result<Counts> {
        Ok(self.get::<TaskList>("/retry-tasks?limit=1").await?.counts)
    }

    /// One task; `None` if there is no such task.
    pub async fn task(&mut self, id: &str) -> Result<Option<Task>> {
        let answer = self.call("GET", &format!("/retry-tasks/{id}"), "").await?;
        match answer.status {
            200 => answer.document().map(Some),
            404 => Ok(None),
            _ => bail!("GET of task {id} was answered {}", answer.describe()),
        }
    }

    /// All of a task's attempts.
    pub async fn attempts(&mut self, id: &str) -> Result<Vec<Attempt>> {
        let mut attempts = Vec::new();
        let mut path = format!("/retry-tasks/{id}/attempts");
        loop {
            let page: AttemptList = self.get(&path).await?;
            attempts.extend(page.attempts);
            match page.next_cursor {
                Some(cursor) => path = format!("/retry-tasks/{id}/attempts?cursor={cursor}"),
                None => return Ok(attempts),
            }
        }
    }

    /// The ids of all tasks with this status.
    pub async fn ids_with_status(&mut self, status: &str) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        let first = format!("/retry-tasks?status={status}&limit=100");
        let mut path = first.clone();
        loop {
            let page: TaskList = self.get(&path).await?;
            ids.extend(page.tasks.into_iter().map(|task| task.task_id));
            match page.next_cursor {
                Some(cursor) => path = format!("{first}&cursor={cursor}"),
                None => return Ok(ids),
            }
        }
    }

    async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T> {
        let answer = self.call("GET", path, "").await?;
        if answer.status != 200 {
            bail!("GET {path} was answered {}", answer.describe());
        }
        answer.document()
    }
}
