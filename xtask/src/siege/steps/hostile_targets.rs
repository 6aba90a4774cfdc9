//! Targets whose answers never end: every attempt still ends on time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::super::field::Field;
use super::super::outcome::Outcome;
use super::super::run::Run;
use crate::api::Task;
use crate::http::{Reply, Request, Respond, Server};

const TIMEOUT: Duration = Duration::from_secs(2);
/// How much later than its timeout an attempt may end on a busy machine.
const SLACK: Duration = Duration::from_secs(1);
/// How long all attempts together may take.
const LIMIT: Duration = Duration::from_secs(20);
/// Tasks for each kind of target.
const TASKS: usize = 30;
const KINDS: [&str; 7] = ["continue", "slow-hints", "head-bytes", "head-fields", "slow-fields", "body", "slow-body"];

pub fn run(field: &Field) -> Result<Outcome> {
    let mut run = Run::ordinary(field)?;
    let target = Server::start("hostile target", Arc::new(Hostile))?;
    let begin = Instant::now();
    let mut ids = Vec::new();
    for kind in KINDS {
        for number in 0..TASKS {
            let task = json!({
                "targetUrl": format!("http://{}/{kind}?{number}", target.address()),
                "dependency": kind,
                "policy": { "maxAttempts": 1, "attemptTimeoutMs": TIMEOUT.as_millis() as u64 },
            });
            let answer = run.call("POST", "/retry-tasks", &task.to_string())?;
            ensure!(answer.status == 201, "a submission was answered {}", answer.describe());
            ids.push((kind, answer.document::<Task>()?.task_id));
        }
    }
    let mut longest = [Duration::ZERO; KINDS.len()];
    let mut unended = 0;
    for (kind, id) in &ids {
        // Slow lanes wait for each other's slots, so not all begin at once.
        let path = format!("/retry-tasks/{id}/attempts");
        let took = loop {
            let list: AttemptList = run.call("GET", &path, "")?.document()?;
            let took = list.attempts.first().and_then(|attempt| attempt.duration_ms).map(Duration::from_millis);
            if took.is_some() || begin.elapsed() > LIMIT {
                break took;
            }
            run.go_on_for(Duration::from_millis(50))?;
        };
        match (took, KINDS.iter().position(|known| known == kind)) {
            (Some(took), Some(at)) => longest[at] = longest[at].max(took),
            _ => unended += 1,
        }
    }
    run.done(format!("{TASKS} attempts with a timeout of {TIMEOUT:?} for each of {}", KINDS.join(", ")));
    run.check(unended == 0, format!("{unended} of {} attempts have not ended", ids.len()));
    for (kind, longest) in KINDS.iter().zip(longest) {
        let what = format!("{kind}: the longest attempt took {} ms", longest.as_millis());
        run.check(longest <= TIMEOUT + SLACK, what);
    }
    run.end(&[])
}

#[derive(Deserialize)]
struct AttemptList {
    attempts: Vec<TimedAttempt>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TimedAttempt {
    duration_ms: Option<u64>,
}

/// A target whose answer never ends; the first part of the path selects the kind.
struct Hostile;

impl Respond for Hostile {
    fn respond(&self, request: &Request<'_>) -> Reply {
        let kind = request.path().trim_start_matches('/').split('?').next().unwrap_or_default();
        let (head, part, every_ms): (&str, String, u64) = match kind {
            "continue" => ("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100), 0),
            "slow-hints" => ("", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".to_owned(), 100),
            "head-bytes" => ("HTTP/1.1 200 OK\r\nx-long: ", "x".to_owned(), 20),
            "head-fields" => ("HTTP/1.1 200 OK\r\n", "x-many: y\r\n".repeat(100), 0),
            "slow-fields" => ("HTTP/1.1 200 OK\r\n", "x-many: y\r\n".to_owned(), 50),
            "body" => ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n".repeat(100), 0),
            _ => ("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n", "x".to_owned(), 20),
        };
        let every = Duration::from_millis(every_ms);
        Reply::Endless { head: Bytes::from(head.to_owned()), part: Bytes::from(part), every }
    }
}
