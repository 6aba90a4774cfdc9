//! One send, from the URL to the answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use hyper::Response;
use hyper::body::Incoming;
use redrive_core::{Answer, ErrorType};
use redrive_engine::transport::{Outbound, SendError};

use crate::body::{self, Cut};
use crate::deadline::Deadline;
use crate::failure;
use crate::line::{Line, Unsent};
use crate::message::{self, Message};
use crate::peer::Peer;
use crate::pool::Pool;
use crate::target::Target;

/// Sends `outbound` over a connection of `pool`.
pub(crate) async fn run(pool: Arc<Pool>, outbound: Outbound) -> Result<Answer, SendError> {
    let target = Target::parse(&outbound.request.target_url)?;
    let peer = pool.peer(&outbound.lane, &target)?;
    let message = message::build(&outbound, &target, &peer.origin)?;
    let timer = pin!(tokio::time::sleep(outbound.attempt_timeout));
    let mut deadline = Deadline::new(timer, outbound.attempt_timeout);
    let attempt = Attempt { pool: &pool, peer: &peer, connect_timeout: outbound.connect_timeout };
    let (line, response) = attempt.send(message, &mut deadline).await?;
    attempt.receive(line, response, &mut deadline).await
}

struct Attempt<'a> {
    pool: &'a Pool,
    peer: &'a Peer,
    connect_timeout: Duration,
}

impl Attempt<'_> {
    /// Sends `message`: once, except that a kept connection that turns out to be closed before a single byte was
    /// written hands the message back, and it goes out on another.
    async fn send(
        &self,
        message: Message,
        deadline: &mut Deadline<'_>,
    ) -> Result<(Line, Response<Incoming>), SendError> {
        let mut line = self.pool.checkout(self.peer, self.connect_timeout, deadline).await?;
        let message = match self.try_send(&mut line, message, deadline).await? {
            Sent::Answered(response) => return Ok((line, response)),
            Sent::HandedBack(message, _) => message,
        };
        line = match line {
            Line::Own { place, .. } => self.pool.open(self.peer, place, self.connect_timeout, deadline).await?,
            Line::Shared(_) => self.pool.checkout(self.peer, self.connect_timeout, deadline).await?,
        };
        match self.try_send(&mut line, message, deadline).await? {
            Sent::Answered(response) => Ok((line, response)),
            Sent::HandedBack(_, error) => Err(failure::exchange(&self.peer.origin, &error)),
        }
    }

    async fn try_send(
        &self,
        line: &mut Line,
        mut message: Message,
        deadline: &mut Deadline<'_>,
    ) -> Result<Sent, SendError> {
        if let Line::Shared(_) = line {
            message::into_http2(&mut message, &self.peer.origin)?;
        }
        match deadline.limit(line.send(message)).await {
            Some(Ok(response)) => Ok(Sent::Answered(response)),
            Some(Err(Unsent { error, message })) => {
                self.doubt(line, Some(&error));
                match (&*line, message) {
                    (Line::Own { kept: true, .. }, Some(message)) => Ok(Sent::HandedBack(message, error)),
                    (Line::Shared(_), Some(mut message)) => {
                        message::back_from_http2(&mut message, &self.peer.origin);
                        Ok(Sent::HandedBack(message, error))
                    }
                    // A new connection that hands a message back was never a good one.
                    _ => Err(failure::exchange(&self.peer.origin, &error)),
                }
            }
            None => {
                self.doubt(line, None);
                Err(self.late("no answer", deadline))
            }
        }
    }

    /// The whole answer, or as much of it as is kept.
    async fn receive(
        &self,
        mut line: Line,
        response: Response<Incoming>,
        deadline: &mut Deadline<'_>,
    ) -> Result<Answer, SendError> {
        let (head, body) = response.into_parts();
        match body::read(&mut line, body, deadline).await {
            Ok(read) => {
                // With a rest that nobody reads, the line is dropped: an own connection closes, a stream is reset.
                if !read.truncated {
                    self.pool.put_back(self.peer, line).await;
                }
                let headers = fields(&head.headers);
                Ok(Answer { status: head.status.as_u16(), headers, body: read.bytes, truncated: read.truncated })
            }
            Err(Cut::Late) => {
                self.doubt(&line, None);
                Err(self.late("no complete answer", deadline))
            }
            Err(Cut::Broken(error)) => {
                self.doubt(&line, Some(&error));
                Err(failure::exchange(&self.peer.origin, &error))
            }
        }
    }

    /// A shared connection that failed, or on which nothing came in time, may be dead without knowing it: the sends
    /// that come after this one use a new one.
    fn doubt(&self, line: &Line, error: Option<&hyper::Error>) {
        if let Line::Shared(connection) = line
            && !error.is_some_and(failure::is_of_one_stream)
        {
            self.peer.retire(connection);
        }
    }

    fn late(&self, what: &str, deadline: &Deadline<'_>) -> SendError {
        let message = format!("{what} from {} within {:?}", self.peer.origin, deadline.timeout());
        failure::of(ErrorType::ReadTimeout, message)
    }
}

/// What a try came to.
enum Sent {
    Answered(Response<Incoming>),
    /// Not a byte of the message was written.
    HandedBack(Message, hyper::Error),
}

fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    // Bytes that are no text cannot be kept as they are; nothing that a decision reads has any.
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}
