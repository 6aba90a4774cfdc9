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

use crate::answer_body::{self, AnswerLimits, Incomplete};
use crate::checked_out::{CheckedOut, SendFailure};
use crate::deadline::Deadline;
use crate::failure;
use crate::http2::Use;
use crate::informational::{self, Informational};
use crate::message::{self, Message};
use crate::origin::Origin;
use crate::origin_pool::OriginPool;
use crate::pool::Pool;
use crate::request_body::{BodyState, RequestBody};
use crate::target::Target;

/// A larger body has an HTTP/2 connection for itself. A peer that is slow to read it leaves no window for others, and
/// many peers allow no more than 64 KiB unread on all streams together.
const LARGE_BODY: u64 = 16 * 1024;

/// Sends `outbound` over a connection of `pool`.
pub(crate) async fn run(
    pool: Arc<Pool>,
    bodies: Option<Arc<dyn Bodies>>,
    outbound: Outbound,
) -> Result<Answer, SendError> {
    let target = Target::parse(&outbound.request.target_url)?;
    let origin_pool = pool.origin_pool(&outbound.lane.tenant, &target)?;
    let timer = pin!(tokio::time::sleep(outbound.attempt_timeout));
    let mut deadline = Deadline::new(timer, outbound.attempt_timeout);
    let body_state = BodyState::default();
    let body = open(bodies.as_ref(), &outbound, &body_state, &mut deadline).await?;
    let usage = if body.length() > LARGE_BODY { Use::Exclusive } else { Use::Shared };
    let message = message::build(&outbound, body, &target, &origin_pool.origin)?;
    let attempt = Attempt {
        pool: &pool,
        origin_pool: &origin_pool,
        usage,
        connect_timeout: outbound.connect_timeout,
        gate: &*outbound.gate,
        body_state,
        keep: keep(&pool, bodies.as_ref(), &outbound.lane.tenant),
    };
    let (checked_out, response) = attempt.send(message, &mut deadline).await?;
    attempt.receive(checked_out, response, &mut deadline).await
}

/// Whether this request can be put on the wire: what [`run`] finds out before it connects. For tests that what a server
/// accepts can be sent.
pub fn check(outbound: &Outbound) -> Result<(), SendError> {
    let target = Target::parse(&outbound.request.target_url)?;
    let origin = Origin::parse(&target)?;
    let body = RequestBody::whole(outbound.request.body.inline().cloned().unwrap_or_default());
    let mut message = message::build(outbound, body, &target, &origin)?;
    message::into_http2(&mut message, &origin)
}

/// How much of the answer is kept, and where.
fn keep<'a>(pool: &Pool, bodies: Option<&'a Arc<dyn Bodies>>, tenant: &'a TenantId) -> AnswerLimits<'a> {
    let most = pool.options.kept_answer_bytes;
    let inline = usize::try_from(most).unwrap_or(usize::MAX).min(pool.options.inline_answer_bytes);
    let storage = bodies.filter(|_| most > inline as u64).map(|bodies| (bodies, most));
    AnswerLimits { inline, storage, tenant }
}

/// The body to send. A stored one is opened before the dependency is contacted.
async fn open(
    bodies: Option<&Arc<dyn Bodies>>,
    outbound: &Outbound,
    body_state: &BodyState,
    deadline: &mut Deadline<'_>,
) -> Result<RequestBody, SendError> {
    let stored = match &outbound.request.body {
        Body::Inline(bytes) => return Ok(RequestBody::whole(bytes.clone())),
        Body::Stored(stored) => stored,
        Body::LeftOut(_) => return Err(failure::unread(&BodyError::Unavailable("it was not read".into()))),
    };
    let nowhere = || BodyError::Unavailable("no blob storage is configured (--blobs)".into());
    let bodies = bodies.ok_or_else(|| failure::unread(&nowhere()))?;
    match deadline.limit(bodies.open(&outbound.lane.tenant, stored)).await {
        Some(Ok(pieces)) => Ok(RequestBody::streamed(pieces, stored.length, body_state.clone())),
        Some(Err(error)) => Err(failure::unread(&error)),
        None => {
            let late = format!("no answer within {:?}", deadline.timeout());
            Err(failure::unread(&BodyError::Unavailable(late)))
        }
    }
}

struct Attempt<'a> {
    pool: &'a Pool,
    origin_pool: &'a OriginPool,
    usage: Use,
    connect_timeout: Duration,
    gate: &'a dyn Gate,
    /// Says if it is the stored body that failed, and not the dependency.
    body_state: BodyState,
    keep: AnswerLimits<'a>,
}

impl Attempt<'_> {
    /// Sends `message`: once, except that a kept connection that turns out to be closed before a single byte was
    /// written hands the message back, and it goes out on another.
    async fn send(
        &self,
        message: Message,
        deadline: &mut Deadline<'_>,
    ) -> Result<(CheckedOut, Response<Incoming>), SendError> {
        let mut checked_out = self.pool.checkout(self.origin_pool, self.usage, self.connect_timeout, deadline).await?;
        let message = match self.try_send(&mut checked_out, message, deadline).await? {
            TryOutcome::Answered(response) => return Ok((checked_out, response)),
            TryOutcome::Withdrawn => return self.withdrawn(checked_out).await,
            TryOutcome::HandedBack(message, _) => message,
        };
        checked_out = match checked_out {
            CheckedOut::Exclusive { .. } => {
                let another = self.pool.open_another(self.origin_pool, self.usage, self.connect_timeout, deadline);
                Box::pin(another).await?
            }
            CheckedOut::Shared(_) => {
                self.pool.checkout(self.origin_pool, self.usage, self.connect_timeout, deadline).await?
            }
        };
        match self.try_send(&mut checked_out, message, deadline).await? {
            TryOutcome::Answered(response) => Ok((checked_out, response)),
            TryOutcome::Withdrawn => self.withdrawn(checked_out).await,
            TryOutcome::HandedBack(_, error) => Err(failure::exchange(&self.origin_pool.origin, &error)),
        }
    }

    async fn try_send(
        &self,
        checked_out: &mut CheckedOut,
        mut message: Message,
        deadline: &mut Deadline<'_>,
    ) -> Result<TryOutcome, SendError> {
        if let CheckedOut::Shared(_) = checked_out {
            message::into_http2(&mut message, &self.origin_pool.origin)?;
        }
        if let Err(Withdrawn) = self.gate.open() {
            return Ok(TryOutcome::Withdrawn);
        }
        let informational = Informational::answers_to(&mut message);
        match deadline.limit(informational.limit(checked_out.send(message))).await {
            Some(Some(Ok(response))) => Ok(TryOutcome::Answered(response)),
            Some(None) => {
                let origin = &self.origin_pool.origin;
                let many = format!("more than {} informational answers (1xx) from {origin}", informational::MOST);
                Err(failure::of(ErrorType::MalformedAnswer, many))
            }
            Some(Some(Err(SendFailure { error, message }))) => {
                if let Some(broken) = self.body_state.get() {
                    return Err(failure::incomplete(&broken));
                }
                self.doubt(checked_out, Some(&error));
                match (&*checked_out, message) {
                    (CheckedOut::Exclusive { kept: true, .. }, Some(message)) => {
                        Ok(TryOutcome::HandedBack(message, error))
                    }
                    (CheckedOut::Shared(_), Some(mut message)) => {
                        message::back_from_http2(&mut message, &self.origin_pool.origin);
                        Ok(TryOutcome::HandedBack(message, error))
                    }
                    // A new connection that hands a message back was never a good one.
                    _ => Err(failure::exchange(&self.origin_pool.origin, &error)),
                }
            }
            None if self.body_state.is_waited_for() => {
                let late = format!("the next piece did not come within {:?}", deadline.timeout());
                Err(failure::incomplete(&BodyError::Unavailable(late)))
            }
            None => {
                self.doubt(checked_out, None);
                Err(self.late("no answer", deadline))
            }
        }
    }

    /// Keeps the connection, on which nothing was written, for others.
    async fn withdrawn<T>(&self, checked_out: CheckedOut) -> Result<T, SendError> {
        self.pool.put_back(self.origin_pool, checked_out).await;
        Err(failure::not_sent(Withdrawn.to_string()))
    }

    /// The whole answer, or as much of it as is kept.
    async fn receive(
        &self,
        mut checked_out: CheckedOut,
        response: Response<Incoming>,
        deadline: &mut Deadline<'_>,
    ) -> Result<Answer, SendError> {
        let (head, body) = response.into_parts();
        match answer_body::read(&mut checked_out, body, deadline, self.keep).await {
            Ok(read) => {
                // With an unread rest it is dropped: an exclusive connection closes, a stream is reset.
                if !read.truncated {
                    self.pool.put_back(self.origin_pool, checked_out).await;
                }
                let headers = fields(&head.headers);
                Ok(Answer { status: head.status.as_u16(), headers, body: read.body, truncated: read.truncated })
            }
            Err(Incomplete::Late) => {
                self.doubt(&checked_out, None);
                Err(self.late("no complete answer", deadline))
            }
            Err(Incomplete::Broken(error)) => {
                if let Some(broken) = self.body_state.get() {
                    return Err(failure::incomplete(&broken));
                }
                self.doubt(&checked_out, Some(&error));
                Err(failure::exchange(&self.origin_pool.origin, &error))
            }
        }
    }

    /// Retires a shared connection that failed, or on which nothing at all came in time: it may be dead, so later sends
    /// use a new one. While other streams get answers, only this one is late.
    fn doubt(&self, checked_out: &CheckedOut, error: Option<&hyper::Error>) {
        let CheckedOut::Shared(stream) = checked_out else { return };
        let doubtful = match error {
            Some(error) => !failure::is_of_one_stream(error),
            None => stream.is_connection_silent(),
        };
        if doubtful {
            self.origin_pool.retire(stream.connection());
        }
    }

    fn late(&self, what: &str, deadline: &Deadline<'_>) -> SendError {
        let message = format!("{what} from {} within {:?}", self.origin_pool.origin, deadline.timeout());
        failure::of(ErrorType::ReadTimeout, message)
    }
}

/// What trying to send on one connection came to.
enum TryOutcome {
    /// The head of the answer has come.
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
