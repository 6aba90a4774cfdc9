//! Reads as much of an answer as is kept.
//!
//! An answer that does not fit into its task is streamed to blob storage. If it cannot be stored, its beginning is kept
//! in the task, as if there were no blob storage.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use redrive_core::{Body, TenantId};
use redrive_engine::bodies::{Bodies, BodyError, Pieces};
use tokio::sync::mpsc;

use crate::checked_out::CheckedOut;
use crate::deadline::Deadline;

/// What was read of an answer's body.
pub(crate) struct ReadBody {
    /// The body, or its beginning.
    pub(crate) body: Body,
    /// Whether there is more of it, still unread: the connection cannot be used for anything else.
    pub(crate) truncated: bool,
}

/// Why the body is not complete.
pub(crate) enum Incomplete {
    /// The attempt's time ran out.
    Late,
    /// The connection failed.
    Broken(hyper::Error),
}

/// How much of an answer is kept, and where.
#[derive(Clone, Copy)]
pub(crate) struct AnswerLimits<'a> {
    /// The most bytes that are kept with the task.
    pub(crate) inline: usize,
    /// Blob storage for larger answers, and the most bytes of one.
    pub(crate) storage: Option<(&'a Arc<dyn Bodies>, u64)>,
    /// The tenant that the answer belongs to.
    pub(crate) tenant: &'a TenantId,
}

/// Reads `body` to its end, or as much of it as is kept.
pub(crate) async fn read(
    checked_out: &mut CheckedOut,
    mut body: Incoming,
    deadline: &mut Deadline<'_>,
    keep: AnswerLimits<'_>,
) -> Result<ReadBody, Incomplete> {
    // Copied out of the connection's buffer, which can then be filled again and is not held for as long as the answer.
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(expected.min(keep.inline));
    while !body.is_end_stream() {
        let full = bytes.len() == keep.inline;
        if full && body.size_hint().lower() > 0 {
            return rest(checked_out, body, deadline, keep, bytes.into(), Bytes::new()).await;
        }
        match deadline.limit(checked_out.drive(body.frame())).await {
            Some(None) => break,
            Some(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                let room = keep.inline - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
                if data.len() > room {
                    return rest(checked_out, body, deadline, keep, bytes.into(), data.slice(room..)).await;
                }
            }
            // All that is kept has come; only whether there was more to come is not known, so it is not called whole.
            None | Some(Some(Err(_))) if full && keep.storage.is_none() => {
                return Ok(ReadBody { body: Body::from(bytes), truncated: true });
            }
            None => return Err(Incomplete::Late),
            Some(Some(Err(error))) => return Err(Incomplete::Broken(error)),
        }
    }
    Ok(ReadBody { body: Body::from(bytes), truncated: false })
}

/// Stores an answer that does not fit into its task: `begun` is what fits, `next` and more follow.
async fn rest(
    checked_out: &mut CheckedOut,
    body: Incoming,
    deadline: &mut Deadline<'_>,
    keep: AnswerLimits<'_>,
    begun: Bytes,
    next: Bytes,
) -> Result<ReadBody, Incomplete> {
    let beginning = ReadBody { body: Body::from(begun.clone()), truncated: true };
    let Some((bodies, most)) = keep.storage else { return Ok(beginning) };
    let (pieces, keeping) = channel();
    let mut kept = pin!(bodies.keep(keep.tenant, keeping, most));
    let mut stored = None;
    let read = {
        let mut reading = pin!(pass_on(checked_out, body, deadline, [begun, next], most, pieces));
        poll_fn(|cx| {
            if stored.is_none()
                && let Poll::Ready(end) = kept.as_mut().poll(cx)
            {
                stored = Some(end);
            }
            reading.as_mut().poll(cx)
        })
        .await
    };
    let truncated = match read {
        Ok(truncated) => truncated,
        Err(PassOnError::Incomplete(cut)) => return Err(cut),
        Err(PassOnError::ReceiverGone) => true,
    };
    let stored = match stored {
        Some(end) => Some(end),
        None => deadline.limit(kept).await,
    };
    match stored {
        Some(Ok(stored)) => Ok(ReadBody { body: Body::Stored(stored), truncated }),
        Some(Err(error)) => {
            tracing::warn!(%error, "an answer could not be stored; its beginning is kept");
            Ok(beginning)
        }
        None => {
            tracing::warn!("an answer could not be stored in time; its beginning is kept");
            Ok(beginning)
        }
    }
}

/// Why an answer was not passed on to its end.
enum PassOnError {
    Incomplete(Incomplete),
    ReceiverGone,
}

/// A piece of an answer on its way, or its end: a sender that is merely gone has not brought all of it.
type Passed = Option<Bytes>;

fn channel() -> (mpsc::Sender<Passed>, Pieces) {
    let (sender, receiver) = mpsc::channel::<Passed>(1);
    let pieces = stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Some(piece)) => Some((Ok(piece), Some(receiver))),
            Some(None) => None,
            None => Some((Err(BodyError::BrokenOff("the answer was not complete".into())), None)),
        }
    });
    (sender, Box::pin(pieces))
}

/// Passes on `begun` and what follows, up to `most` bytes. Says whether there is more.
async fn pass_on(
    checked_out: &mut CheckedOut,
    mut body: Incoming,
    deadline: &mut Deadline<'_>,
    begun: [Bytes; 2],
    most: u64,
    pieces: mpsc::Sender<Passed>,
) -> Result<bool, PassOnError> {
    let mut left = most;
    let mut more = begun.to_vec();
    loop {
        for piece in more.drain(..).filter(|piece| !piece.is_empty()) {
            let fits = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            left -= fits as u64;
            give(&pieces, Some(piece.slice(..fits)), deadline).await?;
            if fits < piece.len() {
                give(&pieces, None, deadline).await?;
                return Ok(true);
            }
        }
        if body.is_end_stream() {
            break;
        }
        match deadline.limit(checked_out.drive(body.frame())).await {
            Some(None) => break,
            Some(Some(Ok(frame))) => more.extend(frame.into_data()),
            None => return Err(PassOnError::Incomplete(Incomplete::Late)),
            Some(Some(Err(error))) => return Err(PassOnError::Incomplete(Incomplete::Broken(error))),
        }
    }
    give(&pieces, None, deadline).await?;
    Ok(false)
}

async fn give(pieces: &mpsc::Sender<Passed>, piece: Passed, deadline: &mut Deadline<'_>) -> Result<(), PassOnError> {
    match deadline.limit(pieces.send(piece)).await {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) => Err(PassOnError::ReceiverGone),
        // The answer came in time, but storing it did not end in time.
        None => Err(PassOnError::ReceiverGone),
    }
}
