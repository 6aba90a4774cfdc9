//! `POST /webhooks`: the provider's events, each applied once although it may be delivered many times.

use anyhow::Result;
use serde_json::{Value, json};

use crate::http::{Request, Response};
use crate::payment::Shop;
use crate::redrive::{Ended, Event};
use crate::{crash, database, redrive};

/// The name of this consumer's inbox in Redrive.
const CONSUMER: &str = "payments";

pub(crate) async fn receive(shop: &Shop, request: Request) -> Result<Response> {
    let event: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let (Some(id), Some(charge)) = (event["id"].as_str(), event["charge"].as_str()) else {
        return Ok(Response::error(400, "an event has an id and a charge"));
    };
    let execution = match redrive::begin(&shop.redrive, CONSUMER, id).await? {
        Event::New(execution) => execution,
        Event::Duplicate => return Ok(Response::new(200, json!({ "event": "duplicate" }))),
        // Not 409, which many senders take for a final answer, Redrive among them.
        Event::InProgress => return Ok(Response::error(503, "this event is being applied; deliver it again")),
    };
    crash::here("after-begin");
    let database = database::connect(&shop.database).await?;
    // Only an event that may have been applied before is looked for: that nothing else is applied twice is the inbox's work.
    let is_applied = execution.has_previous && database::is_settled_by(&database, charge, id).await?;
    let is_known = is_applied || database::settled(&database, charge, id).await?;
    crash::here("before-confirm");
    if execution.confirm().await? == Ended::Fenced {
        return Ok(Response::error(503, "fenced: another process applies this event"));
    }
    let event = match (is_applied, is_known) {
        (true, _) => "applied before",
        (false, true) => "applied",
        (false, false) => "ignored",
    };
    Ok(Response::new(200, json!({ "event": event })))
}
