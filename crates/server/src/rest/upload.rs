//! Reads a request's body as a stream of pieces.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use redrive_engine::bodies::{BodyError, Pieces};

use super::peer::Exchange;
use super::request_body::RequestBody;

/// The most bytes of an upload that are in memory: one part of a multipart upload.
const MAX_BUFFERED: usize = 5 * 1024 * 1024;

/// The body's pieces, counted in memory up to one part. Each piece must arrive `within` this long of the one before.
pub(crate) fn pieces(body: RequestBody, within: Duration, exchange: Arc<Exchange>) -> Pieces {
    let room = MAX_BUFFERED.min(exchange.charge.most());
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
async fn next(body: &mut RequestBody, within: Duration) -> Option<Result<Bytes, BodyError>> {
    loop {
        match tokio::time::timeout(within, body.frame()).await {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => return Some(Ok(data)),
                Err(_) => continue,
            },
            Ok(Some(Err(error))) => return Some(Err(BodyError::BrokenOff(error.to_string()))),
            Ok(None) => return None,
            Err(_) => return Some(Err(BodyError::BrokenOff(format!("nothing arrived for {within:?}")))),
        }
    }
}
