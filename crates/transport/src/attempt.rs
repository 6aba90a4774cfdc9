//! One send, from the URL to the answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use hyper::Response;
use hyper::body::Incoming;
use redrive_core::{Answer, Body, ErrorType, TenantId};
use redrive_engine::bodies::{Bodies, BodyError};
use redrive_engine::transport::{Gate, Outbound, SendError, Withdrawn};

use crate::body::{self, Cut, Keep};
use crate::deadline::Deadline;
use crate::failure;
use crate::http2::Use;
use crate::informational::{self, Informational};
use crate::line::{Line, Unsent};
use crate::message::{self, Message};
use crate::origin::Origin;
use crate::outgoing::{BodyState, Outgoing};
use crate::peer::Peer;
use crate::pool::Pool;
use crate::target::Target;

/// A larger body has an HTTP/2 connection for itself. A peer that is slow to read it leaves no window for others, and many
/// peers allow no more than 64 KiB unread on all streams together.
const LARGE_BODY: u64 = 16 * 1024;

/// Sends `outbound` over a connection of `pool`.
pub(crate) async fn run(
    pool: Arc<Pool>,
    bodies: Option<Arc<dyn Bodies>>,
    outbound: Outbound,
) -> Result<Answer, SendError> {
    let target = Target::parse(&outbound.request.target_url)?;
    let peer = pool.peer(&outbound.lane.tenant, &target)?;
    let timer = pin!(tokio::time::sleep(outbound.attempt_timeout));
    let mut deadline = Deadline::new(timer, outbound.attempt_timeout);
    let body_state = BodyState::default();
    let body = open(bodies.as_ref(), &outbound, &body_state, &mut deadline).await?;
    let usage = if body.length() > LARGE_BODY { Use::Exclusive } else { Use::Shared };
    let message = message::build(&outbound, body, &target, &peer.origin)?;
    let attempt = Attempt {
        pool: &pool,
        peer: &peer,
        usage,
        connect_timeout: outbound.connect_timeout,
        gate: &*outbound.gate,
        body_state,
        keep: keep(&pool, bodies.as_ref(), &outbound.lane.tenant),
    };
    let (line, response) = attempt.send(message, &mut deadline).await?;
    attempt.receive(line, response, &mut deadline).await
}

/// Whether this request can be put on the wire: what [`run`] finds out before it connects. For tests that what a server
/// accepts can be sent.
pub fn check(outbound: &Outbound) -> Result<(), SendError> {
    let target = Target::parse(&outbound.request.target_url)?;
    let origin = Origin::parse(&target)?;
    let body = Outgoing::whole(outbound.request.body.inline().cloned().unwrap_or_default());
    let mut message = message::build(outbound, body, &target, &origin)?;
    message::into_http2(&mut message, &origin)
}

/// How much of the answer is kept, and where.
fn keep<'a>(pool: &Pool, bodies: Option<&'a Arc<dyn Bodies>>, tenant: &'a TenantId) -> Keep<'a> {
    let most = pool.options.kept_answer_bytes;
    let inline = usize::try_from(most).unwrap_or(usize::MAX).min(pool.options.inline_answer_bytes);
    let apart = bodies.filter(|_| most > inline as u64).map(|bodies| (bodies, most));
    Keep { inline, apart, tenant }
}

/// The body to send. A stored one is looked for before anything is said to the dependency: if it is not there, nothing is.
async fn open(
    bodies: Option<&Arc<dyn Bodies>>,
    outbound: &Outbound,
    body_state: &BodyState,
    deadline: &mut Deadline<'_>,
) -> Result<Outgoing, SendError> {
    let stored = match &outbound.request.body {
        Body::Inline(bytes) => return Ok(Outgoing::whole(bytes.clone())),
        Body::Stored(stored) => stored,
    };
    let nowhere = || BodyError::Unavailable("nothing says where bodies are kept".into());
    let bodies = bodies.ok_or_else(|| failure::unread(&nowhere()))?;
    match deadline.limit(bodies.open(&outbound.lane.tenant, stored)).await {
        Some(Ok(pieces)) => Ok(Outgoing::streamed(pieces, stored.length, body_state.clone())),
        Some(Err(error)) => Err(failure::unread(&error)),
        None => {
            let late = format!("no answer within {:?}", deadline.timeout());
            Err(failure::unread(&BodyError::Unavailable(late)))
        }
    }
}

struct Attempt<'a> {
    pool: &'a Pool,
    peer: &'a Peer,
    usage: Use,
    connect_timeout: Duration,
    gate: &'a dyn Gate,
    /// Says if it is the stored body that failed, and not the dependency.
    body_state: BodyState,
    keep: Keep<'a>,
}

impl Attempt<'_> {
    /// Sends `message`: once, except that a kept connection that turns out to be closed before a single byte was
    /// written hands the message back, and it goes out on another.
    async fn send(
        &self,
        message: Message,
        deadline: &mut Deadline<'_>,
    ) -> Result<(Line, Response<Incoming>), SendError> {
        let mut line = self.pool.checkout(self.peer, self.usage, self.connect_timeout, deadline).await?;
        let message = match self.try_send(&mut line, message, deadline).await? {
            Sent::Answered(response) => return Ok((line, response)),
            Sent::Withdrawn => return self.withdrawn(line).await,
            Sent::HandedBack(message, _) => message,
        };
        line = match line {
            Line::Own { .. } => {
                let another = self.pool.open_another(self.peer, self.usage, self.connect_timeout, deadline);
                Box::pin(another).await?
            }
            Line::Shared(_) => self.pool.checkout(self.peer, self.usage, self.connect_timeout, deadline).await?,
        };
        match self.try_send(&mut line, message, deadline).await? {
            Sent::Answered(response) => Ok((line, response)),
            Sent::Withdrawn => self.withdrawn(line).await,
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
        if let Err(Withdrawn) = self.gate.open() {
            return Ok(Sent::Withdrawn);
        }
        let informational = Informational::answers_to(&mut message);
        match deadline.limit(informational.limit(line.send(message))).await {
            Some(Some(Ok(response))) => Ok(Sent::Answered(response)),
            Some(None) => {
                let origin = &self.peer.origin;
                let many = format!("more than {} informational answers (1xx) from {origin}", informational::MOST);
                Err(failure::of(ErrorType::MalformedAnswer, many))
            }
            Some(Some(Err(Unsent { error, message }))) => {
                if let Some(broken) = self.body_state.get() {
                    return Err(failure::incomplete(&broken));
                }
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
            None if self.body_state.is_waited_for() => {
                let late = format!("the next piece did not come within {:?}", deadline.timeout());
                Err(failure::incomplete(&BodyError::Unavailable(late)))
            }
            None => {
                self.doubt(line, None);
                Err(self.late("no answer", deadline))
            }
        }
    }

    /// Keeps the connection, on which nothing was written, for others.
    async fn withdrawn<T>(&self, line: Line) -> Result<T, SendError> {
        self.pool.put_back(self.peer, line).await;
        Err(failure::not_sent(Withdrawn.to_string()))
    }

    /// The whole answer, or as much of it as is kept.
    async fn receive(
        &self,
        mut line: Line,
        response: Response<Incoming>,
        deadline: &mut Deadline<'_>,
    ) -> Result<Answer, SendError> {
        let (head, body) = response.into_parts();
        match body::read(&mut line, body, deadline, self.keep).await {
            Ok(read) => {
                // With a rest that nobody reads, the line is dropped: an own connection closes, a stream is reset.
                if !read.truncated {
                    self.pool.put_back(self.peer, line).await;
                }
                let headers = fields(&head.headers);
                Ok(Answer { status: head.status.as_u16(), headers, body: read.body, truncated: read.truncated })
            }
            Err(Cut::Late) => {
                self.doubt(&line, None);
                Err(self.late("no complete answer", deadline))
            }
            Err(Cut::Broken(error)) => {
                if let Some(broken) = self.body_state.get() {
                    return Err(failure::incomplete(&broken));
                }
                self.doubt(&line, Some(&error));
                Err(failure::exchange(&self.peer.origin, &error))
            }
        }
    }

    /// A shared connection that failed, or on which nothing at all came in time, may be dead without knowing it: the
    /// sends that come after this one use a new one. While other streams get answers, it is only this one that is late.
    fn doubt(&self, line: &Line, error: Option<&hyper::Error>) {
        let Line::Shared(stream) = line else { return };
        let doubtful = match error {
            Some(error) => !failure::is_of_one_stream(error),
            None => stream.is_connection_silent(),
        };
        if doubtful {
            self.peer.retire(stream.connection());
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
    /// Not a byte of the message was written, because it must not go out any more.
    Withdrawn,
    /// Not a byte of the message was written.
    HandedBack(Message, hyper::Error),
}

fn fields(headers: &HeaderMap) -> Vec<(String, String)> {
    // Bytes that are no text cannot be kept as they are; nothing that a decision reads has any.
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}
