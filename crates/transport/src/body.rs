//! Reading no more of an answer than is kept.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use redrive_core::Answer;

use crate::deadline::Deadline;
use crate::line::Line;

/// What was read of an answer's body.
pub(crate) struct Read {
    /// The body, or its beginning.
    pub(crate) bytes: Bytes,
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

/// Reads `body` to its end, or as much of it as is kept.
pub(crate) async fn read(line: &mut Line, mut body: Incoming, deadline: &mut Deadline<'_>) -> Result<Read, Cut> {
    // Copied out of the connection's buffer, which can then be filled again and is not held for as long as the answer.
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(expected.min(Answer::BODY_LIMIT));
    while !body.is_end_stream() {
        let full = bytes.len() == Answer::BODY_LIMIT;
        if full && body.size_hint().lower() > 0 {
            return Ok(Read { bytes: bytes.into(), truncated: true });
        }
        match deadline.limit(line.drive(body.frame())).await {
            Some(None) => break,
            Some(Some(Ok(frame))) => {
                let Some(data) = frame.data_ref() else { continue };
                let room = Answer::BODY_LIMIT - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
                if data.len() > room {
                    return Ok(Read { bytes: bytes.into(), truncated: true });
                }
            }
            // All that is kept has come; only whether there was more to come is not known, so it is not called whole.
            None | Some(Some(Err(_))) if full => return Ok(Read { bytes: bytes.into(), truncated: true }),
            None => return Err(Cut::Late),
            Some(Some(Err(error))) => return Err(Cut::Broken(error)),
        }
    }
    Ok(Read { bytes: bytes.into(), truncated: false })
}
