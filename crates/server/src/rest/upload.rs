//! Reads a request's body piece by piece, as fast as it is taken.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use redrive_engine::bodies::{BodyError, Pieces};

use super::peer::Exchange;
use super::unread::Lent;

/// The most bytes of an upload that are in memory: what object storage takes as one part.
const HELD: usize = 5 * 1024 * 1024;

/// The body's pieces, counted in memory up to one part. Each must come `within` this long of the one before: a body may be large and still must not stand
/// still.
pub(crate) fn pieces(body: Lent, within: Duration, exchange: Arc<Exchange>) -> Pieces {
    let room = HELD.min(exchange.charge.most());
    Box::pin(stream::unfold(Some((body, room)), move |state| {
        let exchange = exchange.clone();
        async move {
            let (mut body, room) = state?;
            let arrived = {
                let _waiting = exchange.wait_for_caller();
                next(&mut body, within).await?
            };
            let counted = arrived.and_then(|piece| {
                let more = piece.len().min(room);
                exchange.charge.grow(more).map_err(|error| BodyError::Unavailable(error.to_string()))?;
                Ok((piece, room - more))
            });
            match counted {
                Ok((piece, room)) => Some((Ok(piece), Some((body, room)))),
                Err(error) => Some((Err(error), None)),
            }
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
