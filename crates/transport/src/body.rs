//! Reading no more of an answer than is kept.
//!
//! What is beyond the part that is kept with its task goes to where large bodies are kept, piece by piece, as it comes. An
//! answer is never lost for that: if it cannot be stored, its beginning is kept, as if there were nowhere to store it.

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

use crate::deadline::Deadline;
use crate::line::Line;

/// What was read of an answer's body.
pub(crate) struct Read {
    /// The body, or its beginning.
    pub(crate) body: Body,
    /// Whether there is more of it, still unread: the connection cannot be used for anything else.
    pub(crate) truncated: bool,
}

/// Why the body is not complete.
pub(crate) enum Cut {
    /// The attempt's time ran out.
    Late,
    /// The connection failed.
    Broken(hyper::Error),
}

/// How much of an answer is kept, and where.
#[derive(Clone, Copy)]
pub(crate) struct Keep<'a> {
    /// The most bytes that are kept with the task.
    pub(crate) inline: usize,
    /// Where more than that goes, and the most of it.
    pub(crate) apart: Option<(&'a Arc<dyn Bodies>, u64)>,
    /// Whose it is.
    pub(crate) tenant: &'a TenantId,
}

/// Reads `body` to its end, or as much of it as is kept.
pub(crate) async fn read(
    line: &mut Line,
    mut body: Incoming,
    deadline: &mut Deadline<'_>,
    keep: Keep<'_>,
) -> Result<Read, Cut> {
    // Copied out of the connection's buffer, which can then be filled again and is not held for as long as the answer.
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(expected.min(keep.inline));
    while !body.is_end_stream() {
        let full = bytes.len() == keep.inline;
        if full && body.size_hint().lower() > 0 {
            return rest(line, body, deadline, keep, bytes.into(), Bytes::new()).await;
        }
        match deadline.limit(line.drive(body.frame())).await {
            Some(None) => break,
            Some(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                let room = keep.inline - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
                if data.len() > room {
                    return rest(line, body, deadline, keep, bytes.into(), data.slice(room..)).await;
                }
            }
            // All that is kept has come; only whether there was more to come is not known, so it is not called whole.
            None | Some(Some(Err(_))) if full && keep.apart.is_none() => {
                return Ok(Read { body: Body::from(bytes), truncated: true });
            }
            None => return Err(Cut::Late),
            Some(Some(Err(error))) => return Err(Cut::Broken(error)),
        }
    }
    Ok(Read { body: Body::from(bytes), truncated: false })
}

/// What becomes of an answer of which `begun` is as much as is kept with a task: `next` and more follow.
async fn rest(
    line: &mut Line,
    body: Incoming,
    deadline: &mut Deadline<'_>,
    keep: Keep<'_>,
    begun: Bytes,
    next: Bytes,
) -> Result<Read, Cut> {
    let beginning = Read { body: Body::from(begun.clone()), truncated: true };
    let Some((bodies, most)) = keep.apart else { return Ok(beginning) };
    let (pieces, keeping) = channel();
    let mut kept = pin!(bodies.keep(keep.tenant, keeping, most));
    let mut stored = None;
    let read = {
        let mut reading = pin!(pass_on(line, body, deadline, [begun, next], most, pieces));
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
        Err(Passing::Cut(cut)) => return Err(cut),
        Err(Passing::NobodyTakesIt) => true,
    };
    let stored = match stored {
        Some(end) => Some(end),
        None => deadline.limit(kept).await,
    };
    match stored {
        Some(Ok(stored)) => Ok(Read { body: Body::Stored(stored), truncated }),
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
enum Passing {
    Cut(Cut),
    NobodyTakesIt,
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
    line: &mut Line,
    mut body: Incoming,
    deadline: &mut Deadline<'_>,
    begun: [Bytes; 2],
    most: u64,
    pieces: mpsc::Sender<Passed>,
) -> Result<bool, Passing> {
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
        match deadline.limit(line.drive(body.frame())).await {
            Some(None) => break,
            Some(Some(Ok(frame))) => more.extend(frame.into_data()),
            None => return Err(Passing::Cut(Cut::Late)),
            Some(Some(Err(error))) => return Err(Passing::Cut(Cut::Broken(error))),
        }
    }
    give(&pieces, None, deadline).await?;
    Ok(false)
}

async fn give(pieces: &mpsc::Sender<Passed>, piece: Passed, deadline: &mut Deadline<'_>) -> Result<(), Passing> {
    match deadline.limit(pieces.send(piece)).await {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) => Err(Passing::NobodyTakesIt),
        // The answer may come in time and its keeping not.
        None => Err(Passing::NobodyTakesIt),
    }
}
