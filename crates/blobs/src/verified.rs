//! Reads a body, and withholds its last piece unless its hash is right.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use object_store::GetResult;
use redrive_core::BodyRef;
use redrive_core::body::BodyHasher;
use redrive_engine::bodies::{BodyError, Pieces};

use crate::failure;

/// The pieces of an object that should be `body`. The hash is known only at the end, so the last piece is given out
/// after it was checked; if it is wrong, there is an error instead.
pub(crate) fn pieces(object: GetResult, body: BodyRef) -> Pieces {
    let pieces = object.into_stream();
    Box::pin(stream::unfold(Some((pieces, BodyHasher::default())), move |state| async move {
        let (mut pieces, mut hasher) = state?;
        let next = match pieces.next().await {
            Some(Ok(piece)) => check(&mut hasher, piece, &body),
            Some(Err(error)) => Err(failure::of(error)),
            None if hasher.length() == body.length => return None,
            // The object has the right length: the answer was cut short, not the object.
            None => {
                let (came, all) = (hasher.length(), body.length);
                Err(BodyError::Unavailable(format!("the answer ends after {came} of {all} bytes")))
            }
        };
        // Nothing comes after an error.
        let state = next.is_ok().then_some((pieces, hasher));
        Some((next, state))
    }))
}

fn check(hasher: &mut BodyHasher, piece: Bytes, body: &BodyRef) -> Result<Bytes, BodyError> {
    hasher.add(&piece);
    if hasher.length() > body.length {
        return Err(BodyError::Damaged(format!("it is longer than {} bytes", body.length)));
    }
    if hasher.length() == body.length {
        let hash = hasher.clone().finish();
        if hash != body.hash {
            return Err(BodyError::Damaged(format!("its bytes are those of {hash}, not of {}", body.hash)));
        }
    }
    Ok(piece)
}
