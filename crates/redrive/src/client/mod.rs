//! A small HTTP/1.1 client for the server's API: one kept connection, and answers that are either JSON or a problem.
//!
//! Not here: what is done with an answer (`commands`), the transport that delivers tasks (`redrive-transport`).

mod address;
mod pages;
mod problem;
mod upload;
mod views;

pub use address::Address;
pub use pages::{Page, Pages};
pub use problem::Problem;
pub use upload::Upload;
pub use views::{Attempt, Policy, Task};

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::exit::{Exit, Failure, exit_of};
use upload::Sent;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer may take, more than the longest wait that the server offers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an upload may take.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// The largest answer that is read.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// A client of one server.
#[derive(Debug)]
pub struct Client {
    address: Address,
    connection: Option<SendRequest<Sent>>,
}

/// What the server answered; a success unless it says otherwise.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status code.
    pub status: StatusCode,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its body, JSON unless it is empty.
    pub body: Bytes,
}

impl Answer {
    /// The body as `T`.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_slice(&self.body).context("the server's answer is not what a Redrive server answers")
    }
}

/// An answer that is not a success, as an error.
fn success(answer: Answer) -> anyhow::Result<Answer> {
    if answer.status.is_success() {
        return Ok(answer);
    }
    let problem = Problem::read(&answer);
    let is_missing = answer.status == StatusCode::NOT_FOUND || problem.is_unknown_policy();
    let exit = if is_missing { Exit::NotFound } else { Exit::Failed };
    Err(anyhow::Error::new(Failure { exit, message: problem.to_string(), document: Some(answer.body) }))
}

impl Client {
    /// A client of the server at `address`; connects when it has to.
    pub fn new(address: Address) -> Self {
        Client { address, connection: None }
    }

    /// Reads `path`.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        let kept = self.connection.is_some();
        match self.call(Method::GET, path, None).await {
            // A kept connection may have been closed by the server meanwhile; reading again changes nothing.
            Err(error) if kept && is_unreachable(&error) => self.call(Method::GET, path, None).await,
            other => other,
        }
    }

    /// Posts `body` to `path`.
    pub async fn post(&mut self, path: &str, body: Vec<u8>) -> anyhow::Result<Answer> {
        self.call(Method::POST, path, Some(body.into())).await
    }

    /// Posts `body` to `path`, and answers whatever the server does. For what may be posted twice: over a kept connection
    /// that the server has closed meanwhile, it is.
    pub async fn post_again(&mut self, path: &str, body: Bytes) -> anyhow::Result<Answer> {
        let kept = self.connection.is_some();
        match self.ask(Method::POST, path, Some(body.clone())).await {
            Err(error) if kept && is_unreachable(&error) => self.ask(Method::POST, path, Some(body)).await,
            other => other,
        }
    }

    /// Uploads a body that a later submission refers to; says how.
    pub async fn upload(&mut self, upload: Upload) -> anyhow::Result<String> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Stored {
            body_ref: String,
        }
        let request = self.request(Method::POST, "/blobs", "application/octet-stream", upload.into())?;
        let answered = self.answered(upload::when_asked(request), UPLOAD_TIMEOUT).await?;
        let stored: Stored = success(answered)?.read()?;
        Ok(stored.body_ref)
    }

    /// Deletes `path`.
    pub async fn delete(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.call(Method::DELETE, path, None).await
    }

    async fn call(&mut self, method: Method, path: &str, body: Option<Bytes>) -> anyhow::Result<Answer> {
        success(self.ask(method, path, body).await?)
    }

    /// Whatever the server answers.
    async fn ask(&mut self, method: Method, path: &str, body: Option<Bytes>) -> anyhow::Result<Answer> {
        let content_type = if body.is_some() { "application/json" } else { "" };
        let body = Sent::Whole(Full::new(body.unwrap_or_default()));
        let request = self.request(method, path, content_type, body)?;
        self.answered(request, ANSWER_TIMEOUT).await
    }

    async fn answered(&mut self, request: Request<Sent>, within: Duration) -> anyhow::Result<Answer> {
        let answer = timeout(within, self.exchange(request)).await;
        let late = || self.unreachable(format!("no answer within {} s", within.as_secs()));
        answer.unwrap_or_else(|_| Err(late()))
    }

    async fn exchange(&mut self, request: Request<Sent>) -> anyhow::Result<Answer> {
        // Taken out while it is used: whatever goes wrong, a connection in an unknown state is not used again.
        let kept = match self.connection.take() {
            Some(mut kept) => kept.ready().await.is_ok().then_some(kept),
            None => None,
        };
        let mut connection = match kept {
            Some(kept) => kept,
            None => self.connect().await?,
        };
        let sent = connection.send_request(request).await;
        let (head, body) = sent.map_err(|error| self.unreachable(error))?.into_parts();
        let read = Limited::new(body, MAX_ANSWER).collect().await;
        let body = read.map_err(|error| self.unreachable(error))?.to_bytes();
        self.connection = Some(connection);
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Sent>> {
        let connecting = timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.address.authority)).await;
        let stream = connecting
            .map_err(|_| self.unreachable("no connection within 5 seconds"))?
            .map_err(|error| self.unreachable(error))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| self.unreachable(error))?;
        // What ends the connection also ends the request under way, and is reported there.
        tokio::spawn(async move { connection.await.ok() });
        Ok(sender)
    }

    fn request(&self, method: Method, path: &str, content_type: &str, body: Sent) -> anyhow::Result<Request<Sent>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address.prefix))
            .header(HOST, &self.address.authority)
            .header(USER_AGENT, concat!("redrive/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json");
        if !content_type.is_empty() {
            request = request.header(CONTENT_TYPE, content_type);
        }
        request.body(body).context("the request cannot be written down")
    }

    fn unreachable(&self, cause: impl std::fmt::Display) -> anyhow::Error {
        let message = format!(
            "cannot reach the server at {}: {cause}\n(is `redrive serve` running? --server or REDRIVE_SERVER name another)",
            self.address
        );
        Failure::error(Exit::Unreachable, message)
    }
}

/// Whether this error says that the server could not be reached.
pub fn is_unreachable(error: &anyhow::Error) -> bool {
    exit_of(error) == Exit::Unreachable
}

/// `text` as one part of a path or query: everything that could be taken for its syntax is escaped.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped += &format!("%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_types_cannot_change_the_path() {
        assert_eq!(escape("a-b.c_d~e"), "a-b.c_d~e");
        assert_eq!(escape("../x?y=z&ä"), "..%2Fx%3Fy%3Dz%26%C3%A4");
    }
}
