//! Server-sent events (HTML standard, section 9.2), as far as the server sends them.

use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

/// How long a stream may be silent before its connection counts as broken: the server says something every 15 s.
const SILENCE: Duration = Duration::from_secs(45);

/// The most bytes of one event.
const MAX_EVENT: usize = 1024 * 1024;

/// A stream of events.
#[derive(Debug)]
pub struct EventStream {
    body: Incoming,
    parser: Parser,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// Its kind.
    pub name: String,
    /// Its content, one line.
    pub data: String,
}

impl EventStream {
    pub(super) fn new(body: Incoming) -> Self {
        EventStream { body, parser: Parser::default() }
    }

    /// The next event; nothing if the server has ended the stream.
    pub async fn next(&mut self) -> anyhow::Result<Option<ServerEvent>> {
        loop {
            if let Some(event) = self.parser.next()? {
                return Ok(Some(event));
            }
            let frame = timeout(SILENCE, self.body.frame()).await;
            let Some(frame) = frame.context("the server has been silent for too long")? else { return Ok(None) };
            if let Ok(bytes) = frame.context("the connection broke")?.into_data() {
                self.parser.add(&bytes);
            }
        }
    }

    /// The id to resume after, once the server has sent one.
    pub fn last_id(&self) -> Option<&str> {
        self.parser.last_id.as_deref()
    }
}

/// Makes events of bytes.
#[derive(Debug, Default)]
struct Parser {
    bytes: Vec<u8>,
    /// The id of the block that is being read.
    id: Option<String>,
    name: String,
    data: String,
    last_id: Option<String>,
}

impl Parser {
    fn add(&mut self, bytes: &Bytes) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next event that is complete.
    fn next(&mut self) -> anyhow::Result<Option<ServerEvent>> {
        let mut read = 0;
        let mut event = None;
        while let Some(length) = self.bytes[read..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.bytes[read..read + length]).into_owned();
            read += length + 1;
            if line.is_empty() {
                event = self.end_block();
                if event.is_some() {
                    break;
                }
            } else {
                self.line(&line);
            }
        }
        self.bytes.drain(..read);
        if self.bytes.len() + self.data.len() > MAX_EVENT {
            bail!("an event has more than {MAX_EVENT} bytes");
        }
        Ok(event)
    }

    fn line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.name),
            "data" => self.data.push_str(value),
            // A comment has no name, and how long to wait is this program's own decision.
            _ => {}
        }
    }

    /// A block without data moves the position only.
    fn end_block(&mut self) -> Option<ServerEvent> {
        if let Some(id) = self.id.take() {
            self.last_id = Some(id);
        }
        let event = ServerEvent { name: std::mem::take(&mut self.name), data: std::mem::take(&mut self.data) };
        (!event.data.is_empty()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\nretry: 1000\nid: a-1\n\nid: a-2\nevent: attempt\ndata: {\"x\":\"a: b\"}\n\n: heartbeat\nid: a-7\n\ndata:y\n\nid: a-9";

    #[test]
    fn events_come_out_however_the_bytes_are_cut() {
        let attempt = ServerEvent { name: "attempt".into(), data: "{\"x\":\"a: b\"}".into() };
        let nameless = ServerEvent { name: String::new(), data: "y".into() };
        for size in 1..STREAM.len() {
            let mut parser = Parser::default();
            let mut seen = Vec::new();
            for part in STREAM.as_bytes().chunks(size) {
                parser.add(&Bytes::copy_from_slice(part));
                while let Some(event) = parser.next().unwrap() {
                    seen.push((event, parser.last_id.clone().unwrap()));
                }
            }
            assert_eq!(seen, [(attempt.clone(), "a-2".to_owned()), (nameless.clone(), "a-7".to_owned())], "{size}");
            assert_eq!(parser.last_id.as_deref(), Some("a-7"), "the last block is not complete");
        }
    }

    #[test]
    fn an_event_is_bounded() {
        let mut parser = Parser::default();
        parser.add(&Bytes::from(vec![b'x'; MAX_EVENT + 1]));
        assert!(parser.next().is_err());
    }
}
