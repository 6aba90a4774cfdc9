//! An answer before it is sent.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    LOCATION, RETRY_AFTER,
};
use http::{Response, StatusCode};
use redrive_engine::bodies::Pieces;
use serde::Serialize;

use super::docs;
use super::event_stream;
use super::memory::{ChargeMode, MemoryExhausted};
use super::peer::Exchange;
use super::problem::{self, Kind, Refusal, kind};
use super::record_path;
use super::response_body::ResponseBody;
use crate::operation_error::{OperationError, seconds};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// The longest `Retry-After` while an execution is under way, in seconds: most end long before their lease does.
const LONGEST_RETRY_AFTER: u128 = 30;

/// When to ask again for a place as a reader of events, in seconds.
const READER_RETRY_AFTER: &str = "5";

/// The bytes of an answer in pieces that are in memory at once: a piece, and what hyper buffers.
const STREAMED: usize = 256 * 1024;

/// An answer: status, header fields and a body.
pub(crate) struct Reply {
    /// With the complete body, unless it comes in pieces.
    response: Response<Bytes>,
    /// A body that comes in pieces, and how many bytes that are if it is known.
    pieces: Option<(Pieces, Option<u64>)>,
    /// The kind of problem, if it is one.
    pub(crate) kind: Option<&'static Kind>,
}

impl Reply {
    fn new(status: u16, content_type: Option<HeaderValue>, body: Bytes) -> Self {
        let mut response = Response::new(body);
        // Every status here is a constant of this crate; one that is no status would be a fault of ours.
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(content_type) = content_type {
            response.headers_mut().insert(CONTENT_TYPE, content_type);
        }
        Reply { response, pieces: None, kind: None }
    }

    /// A document.
    pub(crate) fn json<T: Serialize>(status: u16, document: &T) -> Result<Self, Refusal> {
        let mut body = Vec::with_capacity(1024);
        serde_json::to_writer(&mut body, document)?;
        Ok(Reply::new(status, Some(JSON), Bytes::from(body)))
    }

    /// A document that was written before.
    pub(crate) fn written_json(body: Bytes) -> Self {
        Reply::new(200, Some(JSON), body)
    }

    /// A page, which may apply its own style, run its own script, and do nothing else.
    pub(crate) fn html(page: impl Into<Bytes>) -> Self {
        Reply::new(200, Some(HTML), page.into()).with(CONTENT_SECURITY_POLICY, &*docs::SECURITY_POLICY)
    }

    /// A text of this type.
    pub(crate) fn text(content_type: &'static str, text: String) -> Self {
        Reply::new(200, Some(HeaderValue::from_static(content_type)), Bytes::from(text))
    }

    /// Bytes that come piece by piece, `length` of them.
    pub(crate) fn pieces(pieces: Pieces, length: u64) -> Self {
        let reply = Reply::new(200, Some(BYTES), Bytes::new());
        Reply { pieces: Some((pieces, Some(length))), ..reply }
    }

    /// Events that come piece by piece, until either side closes the connection.
    pub(crate) fn events(pieces: Pieces) -> Self {
        let reply = Reply::new(200, Some(HeaderValue::from_static(event_stream::CONTENT_TYPE)), Bytes::new());
        // A proxy must neither keep events nor collect them before it passes them on.
        let reply = reply.with(CACHE_CONTROL, "no-store").with(HeaderName::from_static("x-accel-buffering"), "no");
        Reply { pieces: Some((pieces, None)), ..reply }
    }

    /// An answer without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Reply::new(status, None, Bytes::new())
    }

    /// A redirect.
    pub(crate) fn redirect(path: &str) -> Self {
        let page = format!("<!doctype html><title>Redrive</title><a href=\"{path}\">{path}</a>\n");
        Reply::html(page).status(307).with(LOCATION, path)
    }

    /// Problem details.
    pub(crate) fn problem(refusal: &Refusal) -> Self {
        let kind = problem::kind_of(refusal);
        // Problem details are texts and numbers: there is nothing in them that could fail.
        let body = serde_json::to_vec(&problem::of_refusal(refusal)).unwrap_or_default();
        let mut reply = Reply::new(kind.status, Some(PROBLEM), Bytes::from(body));
        reply.kind = Some(kind);
        if kind == &kind::UNAVAILABLE {
            reply = reply.with(RETRY_AFTER, "1");
        }
        match refusal {
            Refusal::OperationError(OperationError::DependencyUnavailable { retry_in, .. }) => {
                reply.with(RETRY_AFTER, seconds(*retry_in).to_string())
            }
            Refusal::OperationError(OperationError::TooManyReaders { .. }) => {
                reply.with(RETRY_AFTER, READER_RETRY_AFTER)
            }
            Refusal::OperationError(OperationError::RecordInProgress { key, retry_in, .. }) => {
                let reply = reply.with(RETRY_AFTER, seconds(*retry_in).min(LONGEST_RETRY_AFTER).to_string());
                record_path::of(key).into_iter().fold(reply, |reply, path| reply.with(LOCATION, path))
            }
            Refusal::MethodNotAllowed { allow, .. } => reply.with(ALLOW, allow),
            // What is left of the body may not have been read, so nothing can follow on this connection.
            Refusal::TooLarge { .. }
            | Refusal::MemoryExhausted(_)
            | Refusal::ConnectionsExhausted
            | Refusal::TooSlow
            | Refusal::BrokenBody(_)
            | Refusal::OperationError(OperationError::Bodies(_)) => reply.with(CONNECTION, "close"),
            _ => reply,
        }
    }

    /// This reply with another status.
    fn status(mut self, status: u16) -> Self {
        *self.response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self
    }

    /// This reply with one more header field. A value that cannot be sent is left out: all of them are made here.
    pub(crate) fn with(mut self, name: HeaderName, value: impl AsRef<str>) -> Self {
        if let Ok(value) = HeaderValue::from_str(value.as_ref()) {
            self.response.headers_mut().insert(name, value);
        }
        self
    }

    pub(crate) fn status_code(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Counts the answer in place of its request.
    pub(crate) fn charge(&self, exchange: &Exchange, mode: ChargeMode) -> Result<(), MemoryExhausted> {
        let bytes = match &self.pieces {
            Some((_, Some(length))) => usize::try_from(*length).unwrap_or(usize::MAX).min(STREAMED),
            Some((_, None)) => STREAMED,
            None => self.response.body().len(),
        };
        exchange.charge.answer(bytes, mode)
    }

    /// The response to send. The answer to HEAD says how long the body would have been.
    pub(crate) fn into_response(mut self, is_head: bool, exchange: Arc<Exchange>) -> Response<ResponseBody> {
        if is_head {
            let whole = Some(self.response.body().len() as u64);
            if let Some(length) = self.pieces.as_ref().map_or(whole, |(_, length)| *length) {
                self.response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
            }
            *self.response.body_mut() = Bytes::new();
            self.pieces = None;
        }
        exchange.answered();
        match self.pieces {
            Some((pieces, length)) => {
                if length.is_none() {
                    exchange.has_no_end();
                }
                self.response.map(|_| ResponseBody::streamed(pieces, length, exchange))
            }
            None => self.response.map(|bytes| ResponseBody::whole(bytes, exchange)),
        }
    }
}
