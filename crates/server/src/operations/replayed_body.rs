//! Reads the stored body of a response that is replayed.

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use redrive_core::BodyRef;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// The whole body that a record refers to. The caller decides whether it is small enough.
pub async fn replayed_body(app: &App, caller: &Caller, body: &BodyRef) -> Result<Bytes, OperationError> {
    let bodies = app.engine.bodies().ok_or(OperationError::NoBodyStorage)?;
    let mut pieces = bodies.open(&caller.tenant, body).await?;
    let mut whole = BytesMut::with_capacity(usize::try_from(body.length).unwrap_or_default());
    while let Some(piece) = pieces.try_next().await? {
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}
