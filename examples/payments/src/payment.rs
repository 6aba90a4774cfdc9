//! `POST /payments`: one charge for each idempotency key.
//!
//! The record is in Redrive, the payment in this service's database, the charge at the provider: three systems without a
//! common transaction. What makes it safe: the payment is written down before the provider is called, the provider gets the
//! same key every time, and the record is completed only when the charge is in the database. A process that dies in between
//! leaves a record in progress; the next one takes over after the lease and goes on from what the database says.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::http::{Request, Response, post};
use crate::redrive::{Ended, Execution, Reserved};
use crate::{crash, database, redrive};

/// The name of the operation in Redrive.
const OPERATION: &str = "create-payment";

/// What the service needs.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) database: String,
    pub(crate) redrive: String,
    pub(crate) provider: String,
}

pub(crate) async fn create(shop: &Shop, request: Request) -> Result<Response> {
    let Some(key) = request.idempotency_key.clone() else {
        return Ok(Response::error(400, "send an Idempotency-Key"));
    };
    let document: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let Some(amount) = document["amount"].as_i64().filter(|amount| *amount > 0) else {
        return Ok(Response::error(400, "amount must be a positive number of cents"));
    };
    match redrive::reserve(&shop.redrive, OPERATION, &key, &request).await? {
        Reserved::Granted(execution) => execute(shop, &execution, &key, amount).await,
        Reserved::Replay(status, body) => Ok(Response { is_replay: true, ..Response::new(status, body) }),
        Reserved::InProgress => Ok(Response::error(409, "this payment is being made; try again")),
        Reserved::OtherRequest => Ok(Response::error(422, "the key belongs to another payment")),
    }
}

/// Every payment, with the number of its charges in the ledger.
pub(crate) async fn list(shop: &Shop) -> Result<Response> {
    let database = database::connect(&shop.database).await?;
    Ok(Response::new(200, Value::Array(database::payments(&database).await?)))
}

async fn execute(shop: &Shop, execution: &Execution, key: &str, amount: i64) -> Result<Response> {
    crash::here("after-reserve");
    let charge = match pay(shop, key, amount).await {
        Ok(charge) => charge,
        Err(error) => {
            // It may have been charged: the next execution asks the provider with the same key.
            execution.fail().await?;
            return Err(error);
        }
    };
    let (id, epoch) = (&execution.id, &execution.epoch);
    let body = json!({ "key": key, "amount": amount, "charge": charge, "execution": id, "epoch": epoch });
    crash::here("before-complete");
    let ended = execution.complete(201, &body).await?;
    crash::here("after-complete");
    let fenced =
        json!({ "error": "fenced: another process has taken over; try again", "execution": id, "epoch": epoch });
    Ok(match ended {
        Ended::Done => Response::new(201, body),
        Ended::Fenced => Response::new(409, fenced),
    })
}

/// Charges the card once, and returns the charge.
async fn pay(shop: &Shop, key: &str, amount: i64) -> Result<String> {
    let mut database = database::connect(&shop.database).await?;
    if let Some(charge) = database::intend(&database, key, amount).await? {
        return Ok(charge);
    }
    crash::here("after-intent");
    let (status, answer) = post(&shop.provider, "/charges", Some(key), &json!({ "amount": amount })).await?;
    let charge = answer["charge"].as_str().with_context(|| format!("the provider answered {status} {answer}"))?;
    crash::here("after-charge");
    database::charged(&mut database, key, charge, amount).await?;
    Ok(charge.to_owned())
}
