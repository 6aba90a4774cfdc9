//! Submits rows to Redrive, and reads the result of each.

use std::time::Duration;

use bytes::Bytes;
use redrive_core::{Timestamp, retry_after};
use serde::Deserialize;

use crate::client::{Address, Answer, Client, Problem};
use crate::commands::connection::Server;
use crate::exit::{Exit, exit_of};
use crate::output::now_millis;

const BATCH: &str = "/retry-tasks/batch";
/// How much of a reason is kept.
const LONGEST_REASON: usize = 1_000;

/// The server that takes the rows.
pub(super) struct RedriveServer {
    server: Address,
    client: Client,
}

/// The result of a batch.
#[derive(Debug, PartialEq)]
pub(super) enum BatchResult {
    /// Each row has its own result, in their order.
    Each(Vec<RowResult>),
    /// The batch as a whole is not acceptable: fewer rows may be.
    Refused(String),
    /// Try again later.
    Later(RetryLater),
}

/// The result of one row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RowResult {
    /// It is stored as a task, now or by an earlier try.
    Accepted,
    /// It is not valid and will not be accepted as it is.
    Refused(String),
    /// Try again later.
    Later(RetryLater),
}

impl RowResult {
    /// The result of a row that the answer does not mention.
    pub(super) fn none() -> Self {
        RowResult::Later(RetryLater {
            reason: "the server's answer has no result for this row".to_owned(),
            retry_after: None,
            exit: Exit::Failed,
        })
    }
}

/// Why the server accepted nothing, and its Retry-After.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RetryLater {
    pub(super) reason: String,
    pub(super) retry_after: Option<Duration>,
    pub(super) exit: Exit,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    status: u16,
    error: Option<Problem>,
}

impl RedriveServer {
    pub(super) fn new(server: &Server) -> anyhow::Result<Self> {
        Ok(RedriveServer { client: server.client()?, server: server.chosen()?.server.address })
    }

    /// The server's address.
    pub(super) fn address(&self) -> &Address {
        &self.server
    }

    /// Submits these submissions in their order. Doing that again is safe: each has a key.
    pub(super) async fn submit(&mut self, submissions: &[String]) -> BatchResult {
        let document = format!("{{\"tasks\":[{}]}}", submissions.join(","));
        match self.client.post_again(BATCH, Bytes::from(document)).await {
            Ok(answer) => read(&self.server, &answer, submissions.len()),
            Err(error) => {
                let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
                BatchResult::Later(RetryLater { reason, retry_after: None, exit: exit_of(&error) })
            }
        }
    }
}

fn read(server: &Address, answer: &Answer, rows: usize) -> BatchResult {
    let later =
        |reason| BatchResult::Later(RetryLater { reason, retry_after: asked_retry_after(answer), exit: Exit::Failed });
    let problem = || shortened(&Problem::read(answer).to_string());
    match answer.status.as_u16() {
        200 => match serde_json::from_slice::<Results>(&answer.body) {
            Ok(Results { results }) if results.len() == rows => {
                BatchResult::Each(results.into_iter().enumerate().map(|(at, one)| row_result(at, one)).collect())
            }
            _ => later(format!("the answer of {server} to a batch is not that of a Redrive server")),
        },
        400 | 413 | 422 => BatchResult::Refused(problem()),
        _ => later(problem()),
    }
}

fn row_result(at: usize, one: One) -> RowResult {
    // The index in the batch means nothing to the reader of the row.
    let place = format!("tasks[{at}].");
    let said = one.error.map(|problem| problem.to_string()).unwrap_or_else(|| format!("status {}", one.status));
    let reason = shortened(&said.replace(&place, ""));
    match one.status {
        200..=299 => RowResult::Accepted,
        408 | 429 | 500.. => RowResult::Later(RetryLater { reason, retry_after: None, exit: Exit::Failed }),
        _ => RowResult::Refused(reason),
    }
}

fn asked_retry_after(answer: &Answer) -> Option<Duration> {
    let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
    retry_after::parse(header("retry-after")?, header("date"), Timestamp::from_millis(now_millis()))
}

fn shortened(reason: &str) -> String {
    reason.chars().take(LONGEST_REASON).collect()
}

#[cfg(test)]
mod tests {
    use hyper::{HeaderMap, StatusCode};

    use super::*;

    fn read(answer: &Answer, rows: usize) -> BatchResult {
        super::read(&"http://127.0.0.1:9".parse().unwrap(), answer, rows)
    }

    fn answer(status: u16, body: &str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "7".parse().unwrap());
        Answer { status: StatusCode::from_u16(status).unwrap(), headers, body: Bytes::from(body.to_owned()) }
    }

    #[test]
    fn each_row_is_judged_by_its_own_status() {
        let problem = r#"{"title":"A value is invalid","detail":"tasks[2].targetUrl must not contain spaces"}"#;
        let body = format!(
            r#"{{"results":[{{"status":201,"task":{{}}}},{{"status":200,"task":{{}}}},
                {{"status":422,"error":{problem}}},{{"status":503,"error":{{"title":"no"}}}}]}}"#
        );
        let BatchResult::Each(judged) = read(&answer(200, &body), 4) else { panic!() };
        let refused = RowResult::Refused("A value is invalid: targetUrl must not contain spaces".into());
        let later = RowResult::Later(RetryLater { reason: "no".into(), retry_after: None, exit: Exit::Failed });
        assert_eq!(judged, [RowResult::Accepted, RowResult::Accepted, refused, later]);
    }

    #[test]
    fn only_what_a_redrive_server_says_counts() {
        for (status, body) in [(200, "<html>"), (200, r#"{"results":[]}"#), (201, r#"{"results":[{"status":201}]}"#)] {
            let BatchResult::Later(later) = read(&answer(status, body), 1) else { panic!("{status} {body}") };
            assert!(status != 200 || later.reason.contains("the answer of http://127.0.0.1:9 to a batch"), "{later:?}");
        }
    }

    #[test]
    fn a_batch_is_refused_for_what_is_in_it_and_put_off_for_everything_else() {
        for status in [400, 413, 422] {
            let expected =
                BatchResult::Refused(format!("the server answered {}: x", StatusCode::from_u16(status).unwrap()));
            assert_eq!(read(&answer(status, "x"), 1), expected);
        }
        for status in [301, 401, 403, 404, 405, 408, 415, 429, 500, 502, 503, 507] {
            let BatchResult::Later(later) = read(&answer(status, "x"), 1) else { panic!("{status}") };
            assert_eq!(later.retry_after, Some(Duration::from_secs(7)), "{status}");
        }
    }
}
