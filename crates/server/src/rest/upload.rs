//! Reads a request's body piece by piece, as fast as it is taken.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use redrive_engine::bodies::{BodyError, Pieces};

use super::unread::Lent;

/// The body's pieces. Each must come `within` this long of the one before: a body may be large and still must not stand
/// still.
pub(crate) fn pieces(body: Lent, within: Duration) -> Pieces {
    Box::pin(stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        match next(&mut body, within).await? {
            Ok(piece) => Some((Ok(piece), Some(body))),
            Err(error) => Some((Err(error), None)),
        }
    }))
}

#[expect(clippy::disallowed_methods, reason = "how long a caller may take to send is told by the machine's clock")]
async fn next(body: &mut Lent, within: Duration) -> Option<Result<Bytes, BodyError>> {
    loop {
        match tokio::time::timeout(within, body.frame()).await {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => return Some(Ok(data)),
                Err(_) => continue,
            },
            Ok(Some(Err(error))) => return Some(Err(BodyError::BrokenOff(error.to_string()))),
            Ok(None) => return None,
            Err(_) => return Some(Err(BodyError::BrokenOff(format!("nothing came for {within:?}")))),
        }
    }
}
