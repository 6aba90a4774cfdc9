//! Shows a stored body: what a task is to send, or what a dependency answered.

use redrive_core::BodyRef;
use redrive_engine::bodies::Pieces;

use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;

/// The body with the content that `name` says, piece by piece, and how long it is.
pub async fn read_body(app: &App, caller: &Caller, name: &str) -> Result<(BodyRef, Pieces), Failure> {
    let nothing = || Failure::NoSuchBody(name.to_owned());
    let hash = name.parse().map_err(|_| nothing())?;
    let bodies = app.engine.bodies().ok_or(Failure::NoBodyStorage)?;
    let body = bodies.find(&caller.tenant, hash).await?.ok_or_else(nothing)?;
    Ok((body, bodies.open(&caller.tenant, &body).await?))
}
