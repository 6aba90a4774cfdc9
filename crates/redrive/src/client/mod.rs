//! A small HTTP/1.1 client for the server's API, with TLS or without: one kept connection, and answers that are either
//! JSON or a problem document.
//!
//! Not here: what is done with an answer (`commands`), the transport that delivers tasks (`redrive-transport`).

mod address;
mod dependency;
mod event_stream;
mod id_prefix;
mod pages;
mod problem;
mod record;
mod upload;
mod views;

pub use address::Address;
pub use dependency::{Backlog, Control, Dependency, Totals};
pub use event_stream::{EventStream, ServerEvent};
pub use id_prefix::the_only;
pub use pages::{Page, Pages};
pub use problem::Problem;
pub use record::{InboxStats, OperationStats, Record, bounded_text};
pub use upload::Upload;
pub use views::{Attempt, Policy, Task};

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, HeaderMap, HeaderName, HeaderValue, IF_MATCH, USER_AGENT,
};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use redrive_dial::{DialError, DialErrorKind, Dialer, Roots};
use tokio::time::timeout;

use crate::exit::{Exit, ExitError, exit_of};
use upload::RequestBody;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer may take, more than the longest wait that the server offers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an upload may take.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// The largest answer that is read.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// The type of a stream of events.
const EVENTS: &str = "text/event-stream";

/// The name of HTTP/1.1 in the TLS handshake (ALPN).
const HTTP1: &[u8] = b"http/1.1";

/// A client of one server.
pub struct Client {
    address: Address,
    dialer: Dialer,
    connection: Option<SendRequest<RequestBody>>,
}

/// What is said of an answer that no Redrive server gives.
const NOT_REDRIVE: &str = "the answer is not that of a Redrive server; check --server";

/// What is said of a proxy that asks who is there.
const UNAUTHORIZED: &str = "a proxy in front of the server asks for a user and a password: put them into the URL of --server, or name \
    a server with user and password_file (`redrive servers --example`)";

/// What a proxy answers while it does not reach the server.
const GATEWAY: [StatusCode; 3] =
    [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];

/// What is said of an answer that a proxy gives while it does not reach the server.
const PROXY: &str = "this is the answer of a proxy in front of the server, or of another server; check --server";

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
        serde_json::from_slice(&self.body).map_err(|error| foreign(&format!("{error}"), &self.body))
    }

    /// That it has no content, as the answer to a deletion. Another server may answer anything with 200.
    pub fn expect_no_content(&self) -> anyhow::Result<()> {
        match self.status {
            StatusCode::NO_CONTENT => Ok(()),
            status => Err(foreign(&format!("it answered {status}"), &self.body)),
        }
    }
}

/// An answer that no Redrive server gives. The server may be back in a moment: proxies answer so while it is away.
pub fn foreign(why: &str, body: &Bytes) -> anyhow::Error {
    let message = format!("{NOT_REDRIVE} ({why})");
    anyhow::Error::new(ExitError { exit: Exit::Failed, message, document: Some(body.clone()), is_temporary: true })
}

impl Answer {
    /// The `ETag` without its quotes; empty if there is none.
    pub fn etag(&self) -> &str {
        self.headers.get(ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default().trim_matches('"')
    }
}

/// An answer that is not a success, as an error.
fn success(answer: Answer) -> anyhow::Result<Answer> {
    if answer.status.is_success() {
        return Ok(answer);
    }
    let problem = Problem::read(&answer);
    let is_missing = answer.status == StatusCode::NOT_FOUND || problem.is_unknown_policy();
    let (exit, message) = match problem.is_of_redrive() {
        // A proxy says that it does not reach the server.
        false if GATEWAY.contains(&answer.status) => (Exit::Unreachable, format!("{problem}\n({PROXY})")),
        false if answer.status == StatusCode::UNAUTHORIZED => (Exit::Failed, format!("{problem}\n({UNAUTHORIZED})")),
        false => (Exit::Failed, format!("{problem}\n({NOT_REDRIVE}, and the proxy in front of it if there is one)")),
        true if is_missing => (Exit::NotFound, problem.to_string()),
        true => (Exit::Failed, problem.to_string()),
    };
    // Whatever answers in place of the server may not do so in a moment.
    let is_temporary = is_temporary(answer.status) || !problem.is_of_redrive();
    Err(anyhow::Error::new(ExitError { exit, message, document: Some(answer.body), is_temporary }))
}

/// Whether the same request may succeed in a moment: the server is overloaded, restarts, or has lost its store.
fn is_temporary(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || GATEWAY.contains(&status)
}

impl Client {
    /// A client of the server at `address`, which is trusted if the system's authorities or those in these PEM files
    /// say so. Connects with the first request.
    pub fn new(address: Address, extra_ca: &[PathBuf]) -> anyhow::Result<Self> {
        // Without TLS, no certificates are read.
        let options = match address.endpoint.is_secure() {
            true => redrive_dial::Options {
                extra_ca: extra_ca.to_vec(),
                alpn: vec![HTTP1.to_vec()],
                ..redrive_dial::Options::default()
            },
            false => redrive_dial::Options { roots: Roots::ExtraOnly, ..redrive_dial::Options::default() },
        };
        let dialer = Dialer::new(&options).map_err(|error| {
            let message = format!("cannot connect to {address}: {:#}", anyhow::Error::new(error));
            ExitError::of(Exit::BadConfiguration, message)
        })?;
        Ok(Client { address, dialer, connection: None })
    }

    /// Reads `path`.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        let kept = self.connection.is_some();
        let answer = match self.ask(Method::GET, path, None).await {
            // A kept connection may have been closed by the server meanwhile; reading again changes nothing.
            Err(error) if kept && is_unreachable(&error) => self.ask(Method::GET, path, None).await,
            other => other,
        };
        success(answer?)
    }

    /// Opens the stream of events at `path`, after the event with the id `last_id` if there is one. The stream has a
    /// connection of its own.
    pub async fn events(&mut self, path: &str, last_id: Option<&str>) -> anyhow::Result<EventStream> {
        let mut request = self.request(Method::GET, path, "", RequestBody::Whole(Full::default()))?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(id) = last_id {
            let id = id.parse().context("the id of an event has characters that cannot be sent")?;
            request.headers_mut().insert(HeaderName::from_static("last-event-id"), id);
        }
        let late = || self.unreachable(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()));
        let opening = async {
            let sent = self.connect().await?.send_request(request).await;
            let (head, body) = sent.map_err(|error| self.unreachable(error))?.into_parts();
            if head.status.is_success() {
                let is_stream =
                    head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(EVENTS.as_bytes()));
                ensure!(is_stream, NOT_REDRIVE);
                return Ok(EventStream::new(body));
            }
            let read = Limited::new(body, MAX_ANSWER).collect().await;
            let body = read.map_err(|error| self.unreachable(error))?.to_bytes();
            let refused = success(Answer { status: head.status, headers: head.headers, body });
            refused.and_then(|_| bail!(NOT_REDRIVE))
        };
        timeout(ANSWER_TIMEOUT, opening).await.unwrap_or_else(|_| Err(late()))
    }

    /// Posts `body` to `path`.
    pub async fn post(&mut self, path: &str, body: Vec<u8>) -> anyhow::Result<Answer> {
        self.call(Method::POST, path, Some(body.into())).await
    }

    /// Posts `body` to `path` and returns the answer, whatever its status is. Only for idempotent requests: if a kept
    /// connection turns out to be closed, the request is sent again.
    pub async fn post_again(&mut self, path: &str, body: Bytes) -> anyhow::Result<Answer> {
        let kept = self.connection.is_some();
        match self.ask(Method::POST, path, Some(body.clone())).await {
            Err(error) if kept && is_unreachable(&error) => self.ask(Method::POST, path, Some(body)).await,
            other => other,
        }
    }

    /// Uploads a body and returns the reference for a later submission.
    pub async fn upload(&mut self, upload: Upload) -> anyhow::Result<String> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Stored {
            body_ref: String,
        }
        let request = self.request(Method::POST, "/blobs", "application/octet-stream", upload.into())?;
        let answered = self.answered(upload::with_expect_continue(request), UPLOAD_TIMEOUT).await?;
        let stored: Stored = success(answered)?.read()?;
        Ok(stored.body_ref)
    }

    /// Puts `body` at `path`.
    pub async fn put(&mut self, path: &str, body: Vec<u8>) -> anyhow::Result<Answer> {
        self.call(Method::PUT, path, Some(body.into())).await
    }

    /// Deletes `path`.
    pub async fn delete(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.call(Method::DELETE, path, None).await
    }

    /// Deletes `path` if `etag`, which has no quotes here, is still its `ETag`.
    pub async fn delete_if_match(&mut self, path: &str, etag: &str) -> anyhow::Result<Answer> {
        let mut request = self.request(Method::DELETE, path, "", RequestBody::Whole(Full::default()))?;
        let value = format!("\"{etag}\"").parse().context("the ETag has characters that cannot be sent")?;
        request.headers_mut().insert(IF_MATCH, value);
        success(self.answered(request, ANSWER_TIMEOUT).await?)
    }

    async fn call(&mut self, method: Method, path: &str, body: Option<Bytes>) -> anyhow::Result<Answer> {
        success(self.ask(method, path, body).await?)
    }

    /// The answer, whatever its status is.
    async fn ask(&mut self, method: Method, path: &str, body: Option<Bytes>) -> anyhow::Result<Answer> {
        let content_type = if body.is_some() { "application/json" } else { "" };
        let body = RequestBody::Whole(Full::new(body.unwrap_or_default()));
        let request = self.request(method, path, content_type, body)?;
        self.answered(request, ANSWER_TIMEOUT).await
    }

    async fn answered(&mut self, request: Request<RequestBody>, within: Duration) -> anyhow::Result<Answer> {
        let answer = timeout(within, self.exchange(request)).await;
        let late = || self.unreachable(format!("no answer within {} s", within.as_secs()));
        answer.unwrap_or_else(|_| Err(late()))
    }

    async fn exchange(&mut self, request: Request<RequestBody>) -> anyhow::Result<Answer> {
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

    async fn connect(&self) -> anyhow::Result<SendRequest<RequestBody>> {
        let dialed = self.dialer.dial(&self.address.endpoint, CONNECT_TIMEOUT, |_| ()).await;
        let stream = dialed.map_err(|error| self.not_connected(&error))?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| self.unreachable(error))?;
        // What ends the connection also ends the request under way, and is reported there.
        tokio::spawn(async move { connection.await.ok() });
        Ok(sender)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: RequestBody,
    ) -> anyhow::Result<Request<RequestBody>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address.prefix))
            .header(HOST, self.address.endpoint.to_string())
            .header(USER_AGENT, concat!("redrive/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json");
        if !content_type.is_empty() {
            request = request.header(CONTENT_TYPE, content_type);
        }
        if let Some(authorization) = &self.address.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(body).context("the request cannot be built")
    }

    fn unreachable(&self, cause: impl std::fmt::Display) -> anyhow::Error {
        self.unreachable_with_hint(
            cause,
            "is `redrive serve` running? choose another server with --server or REDRIVE_SERVER",
        )
    }

    fn not_connected(&self, error: &DialError) -> anyhow::Error {
        match error.kind {
            DialErrorKind::TlsCertificate => self.unreachable_with_hint(error, certificate_hint(&error.to_string())),
            DialErrorKind::TlsHandshake => self.unreachable_with_hint(
                error,
                "does it speak TLS? `redrive serve` itself does not; a proxy in front of it may",
            ),
            _ => self.unreachable(error),
        }
    }

    fn unreachable_with_hint(&self, cause: impl std::fmt::Display, hint: &str) -> anyhow::Error {
        let message = format!("cannot reach the server at {}: {cause}\n({hint})", self.address);
        ExitError::of(Exit::Unreachable, message)
    }
}

/// What to do about a certificate that cannot be used, by what the TLS library says of it.
fn certificate_hint(why: &str) -> &'static str {
    const HINTS: [(&str, &str); 4] = [
        (
            "not valid for name",
            "connect to a name that the certificate has, or give the server a certificate for this one",
        ),
        (
            "CaUsedAsEndEntity",
            "the certificate is that of an authority (CA:TRUE): give the server one with CA:FALSE, and trust what signed it with \
             --extra-ca FILE",
        ),
        ("expired", "renew the certificate; if it is valid, the clock of this machine is wrong"),
        ("not valid yet", "the clock of this machine or of the one that made the certificate is wrong"),
    ];
    let hint = HINTS.iter().find(|(part, _)| why.contains(part)).map(|(_, hint)| *hint);
    hint.unwrap_or("trust the authority of its certificate with --extra-ca FILE or REDRIVE_TRANSPORT_EXTRA_CA")
}

/// Whether this error may be over in a moment: the server cannot be reached, or accepts nothing now.
pub fn is_passing(error: &anyhow::Error) -> bool {
    is_unreachable(error) || error.downcast_ref::<ExitError>().is_some_and(|error| error.is_temporary)
}

/// Whether there was no answer at all, also none of a proxy.
pub fn is_unanswered(error: &anyhow::Error) -> bool {
    is_unreachable(error) && error.downcast_ref::<ExitError>().is_none_or(|error| error.document.is_none())
}

/// Whether this error says that the server could not be reached.
pub fn is_unreachable(error: &anyhow::Error) -> bool {
    exit_of(error) == Exit::Unreachable
}

/// What stands for itself in a segment of a path (RFC 3986, unreserved).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `text` as one segment of a path: characters that could be taken for syntax are percent-encoded.
pub fn escape(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
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
