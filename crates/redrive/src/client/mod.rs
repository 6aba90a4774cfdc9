//! A small HTTP/1.1 client for the server's API: one kept connection, and answers that are either JSON or a problem.
//!
//! Not here: what is done with an answer (`commands`), the transport that delivers tasks (`redrive-transport`).

mod address;
mod pages;
mod problem;
mod views;

pub use address::Address;
pub use pages::{Page, Pages};
pub use problem::Problem;
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

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer may take, more than the longest wait that the server offers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The largest answer that is read.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// A client of one server.
#[derive(Debug)]
pub struct Client {
    address: Address,
    connection: Option<SendRequest<Full<Bytes>>>,
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

    /// Deletes `path`.
    pub async fn delete(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.call(Method::DELETE, path, None).await
    }

    async fn call(&mut self, method: Method, path: &str, body: Option<Bytes>) -> anyhow::Result<Answer> {
        let answer = self.ask(method, path, body).await?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        let problem = Problem::read(&answer);
        let is_missing = answer.status == StatusCode::NOT_FOUND || problem.is_unknown_policy();
        let exit = if is_missing { Exit::NotFound } else { Exit::Failed };
        Err(anyhow::Error::new(Failure { exit, message: problem.to_string(), document: Some(answer.body) }))
    }

    async fn ask(&mut self, method: Method, path: &str, body: Option<Bytes>) -> anyhow::Result<Answer> {
        let request = self.request(method, path, body)?;
        let answer = timeout(ANSWER_TIMEOUT, self.exchange(request)).await;
        answer.unwrap_or_else(|_| Err(self.unreachable("no answer within a minute")))
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
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

    async fn connect(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
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

    fn request(&self, method: Method, path: &str, body: Option<Bytes>) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address.prefix))
            .header(HOST, &self.address.authority)
            .header(USER_AGENT, concat!("redrive/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json");
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(body.unwrap_or_default())).context("the request cannot be written down")
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
