//! From a request to a response: route, handler, problem details, and nothing that a panic could slip through.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use http::request::Parts;
use http::{Method, Request, Response, Version};
use hyper::body::Incoming;

use super::authentication;
use super::call::{Call, Context};
use super::gate;
use super::memory::Must;
use super::peer::{Exchange, Peer, Purpose};
use super::problem::Refusal;
use super::query::Query;
use super::reply::Reply;
use super::route::{Effect, Route};
use super::router;
use super::sent::Sent;
use super::unread::{self, Lent};
use crate::app::Limits;

/// What a head takes beyond its bytes.
const HEAD: usize = 1024;

/// Answers one request.
pub(crate) async fn respond(
    context: Arc<Context>,
    peer: Arc<Peer>,
    request: Request<Incoming>,
) -> Result<Response<Sent>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let version = request.version();
    let exchange = Exchange::begin(peer);
    // A handler owns all that it works with: what a panic leaves half done is dropped with it.
    let outcome = AssertUnwindSafe(answer(context, exchange.clone(), request)).catch_unwind().await;
    let reply = outcome.unwrap_or_else(|_| given_anyway(refused(&Refusal::Panicked), &exchange));
    let mut response = reply.into_response(is_head, exchange);
    if version == Version::HTTP_2 {
        // HTTP/2 closes streams, not connections.
        response.headers_mut().remove(http::header::CONNECTION);
    }
    Ok(response)
}

async fn answer(context: Arc<Context>, exchange: Arc<Exchange>, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let (body, unread) = unread::lend(&parts, body);
    let (most, within) = (most_discarded(&context.app.limits), context.body_read_timeout);
    let engine = context.app.engine.clone();
    let (route, outcome) = match find(&context, &parts) {
        Ok(found) => (Some(found.route), handle(context, exchange.clone(), parts, body, found).await),
        Err(refusal) => {
            drop(body);
            (None, Err(refusal))
        }
    };
    let outcome = outcome.and_then(|reply| charged(reply, &exchange, route));
    let reply = match outcome {
        Ok(reply) => {
            route.into_iter().for_each(|route| engine.store_worked(route.id));
            reply
        }
        Err(refusal) => {
            if let (Some(route), Some(error)) = (route, refusal.store_error()) {
                engine.store_failed(route.id, error);
            }
            let reply = given_anyway(refused(&refusal), &exchange);
            if !refusal.is_body_cut_off() {
                let _waiting = exchange.wait_for_caller();
                unread.discard(most, within).await;
            }
            reply
        }
    };
    if let Some(route) = route {
        // What the reference does not say, the service does not do: the tests find every answer that drifts.
        let (status, kind) = (reply.status_code(), reply.kind);
        debug_assert!(route.declares(&reply), "{} answers {status} ({kind:?}) undeclared", route.id);
    }
    reply
}

/// The reply, if there is memory for it. What has been done is answered in any case, and so are health checks.
fn charged(reply: Reply, exchange: &Exchange, route: Option<&Route>) -> Result<Reply, Refusal> {
    let is_done = route.is_some_and(|route| route.effect == Effect::Writes || route.is_health());
    let must = if is_done { Must::BeCounted } else { Must::Fit };
    reply.charge(exchange, must)?;
    Ok(reply)
}

/// A reply that takes little and is given in any case.
fn given_anyway(reply: Reply, exchange: &Exchange) -> Reply {
    if let Err(error) = reply.charge(exchange, Must::BeCounted) {
        tracing::error!(%error, "counting an answer that is given in any case");
    }
    reply
}

fn find(context: &Context, parts: &Parts) -> Result<router::Found, Refusal> {
    gate::check(&context.names, parts)?;
    let found = router::find(&parts.method, parts.uri.path())?;
    gate::check_site(parts, found.route)?;
    Ok(found)
}

async fn handle(
    context: Arc<Context>,
    exchange: Arc<Exchange>,
    parts: Parts,
    body: Lent,
    found: router::Found,
) -> Result<Reply, Refusal> {
    let caller = authentication::admit(&parts, &context.local, found.route.access)?;
    let must = match found.route.is_health() {
        true => Must::BeCounted,
        false if exchange.purpose() == Purpose::Health => return Err(Refusal::NoPlace),
        false => Must::Fit,
    };
    exchange.charge.head(head_bytes(&parts), must)?;
    let query = query(&parts, &found)?;
    let body = if found.route.request.is_some() { body } else { Lent::none() };
    (found.route.handler)(Call { context, caller, exchange, parts, body, query, parameter: found.parameter }).await
}

/// The bytes that a request's head takes.
fn head_bytes(parts: &Parts) -> usize {
    let path = parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    let fields: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    HEAD + path + fields
}

/// The most of a refused body that is read for its caller to hear the refusal: more than the largest that is taken.
fn most_discarded(limits: &Limits) -> u64 {
    limits.stored_body_bytes.saturating_add(limits.stored_body_bytes / 4)
}

fn query(parts: &Parts, found: &router::Found) -> Result<Query, Refusal> {
    // A page or a probe may be asked with whatever; an operation must not ignore what it does not know.
    match found.route.effect {
        Effect::Nothing => Ok(Query::default()),
        Effect::Reads | Effect::Writes => Query::parse(parts.uri.query(), found.route),
    }
}

fn refused(refusal: &Refusal) -> Reply {
    let reply = Reply::problem(refusal);
    match reply.status_code() {
        // These can be as many as a caller likes: the server logs their number.
        _ if matches!(refusal, Refusal::NoRoom(_) | Refusal::NoPlace) => {
            tracing::debug!(error = %refusal, "a request had no room");
        }
        // These, too, and the engine logs the outage.
        _ if refusal.store_error().is_some() => {
            tracing::debug!(error = %refusal, "a request could not be served");
        }
        500 => tracing::error!(error = %refusal, "a request failed"),
        501.. => tracing::warn!(error = %refusal, "a request could not be served"),
        status => tracing::debug!(status, error = %refusal, "a request was refused"),
    }
    reply
}
