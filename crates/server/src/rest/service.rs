//! From a request to a response: route, caller, handler, problem details. A panic of a handler becomes a 500.

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
use super::memory::ChargeMode;
use super::peer::{Exchange, Peer, Purpose};
use super::problem::Refusal;
use super::query::Query;
use super::reply::Reply;
use super::request_body::{self, RequestBody};
use super::response_body::ResponseBody;
use super::route::{Effect, Route};
use super::router;
use crate::app::Limits;

/// The memory that a head takes beyond its bytes.
const HEAD: usize = 1024;

/// Answers one request.
pub(crate) async fn respond(
    context: Arc<Context>,
    peer: Arc<Peer>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let version = request.version();
    let exchange = Exchange::begin(peer);
    // A handler owns all that it works with: what a panic leaves half done is dropped with it.
    let outcome = AssertUnwindSafe(answer(context, exchange.clone(), request)).catch_unwind().await;
    let reply = outcome.unwrap_or_else(|_| charged_always(refused(&Refusal::Panicked), &exchange));
    let mut response = reply.into_response(is_head, exchange);
    if version == Version::HTTP_2 {
        // HTTP/2 closes streams, not connections.
        response.headers_mut().remove(http::header::CONNECTION);
    }
    Ok(response)
}

async fn answer(context: Arc<Context>, exchange: Arc<Exchange>, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let (body, unread) = request_body::lend(&parts, body);
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
            let reply = charged_always(refused(&refusal), &exchange);
            if !refusal.is_body_cut_off() {
                let _waiting = exchange.wait_for_caller();
                unread.discard(most, within).await;
            }
            reply
        }
    };
    if let Some(route) = route {
        // Every answer must be declared in the reference; the tests find those that are not.
        let (status, kind) = (reply.status_code(), reply.kind);
        debug_assert!(route.declares(&reply), "{} answers {status} ({kind:?}) undeclared", route.id);
    }
    reply
}

/// The reply, if there is memory for it. Completed writes and health checks are answered in any case.
fn charged(reply: Reply, exchange: &Exchange, route: Option<&Route>) -> Result<Reply, Refusal> {
    let is_done = route.is_some_and(|route| route.effect == Effect::Writes || route.is_health());
    let mode = if is_done { ChargeMode::Always } else { ChargeMode::IfRoom };
    reply.charge(exchange, mode)?;
    Ok(reply)
}

/// A small reply that is sent even if the memory is used up.
fn charged_always(reply: Reply, exchange: &Exchange) -> Reply {
    if let Err(error) = reply.charge(exchange, ChargeMode::Always) {
        tracing::error!(%error, "counting a reply that is sent in any case");
    }
    reply
}

fn find(context: &Context, parts: &Parts) -> Result<router::RouteMatch, Refusal> {
    gate::check(&context.names, parts)?;
    let found = router::find(&parts.method, parts.uri.path())?;
    gate::check_site(parts, found.route)?;
    Ok(found)
}

async fn handle(
    context: Arc<Context>,
    exchange: Arc<Exchange>,
    parts: Parts,
    body: RequestBody,
    found: router::RouteMatch,
) -> Result<Reply, Refusal> {
    let caller = authentication::admit(&parts, &context.local, found.route.access)?;
    let mode = match found.route.is_health() {
        true => ChargeMode::Always,
        false if exchange.purpose() == Purpose::Health => return Err(Refusal::ConnectionsExhausted),
        false => ChargeMode::IfRoom,
    };
    exchange.charge.head(head_bytes(&parts), mode)?;
    let query = query(&parts, &found)?;
    let body = if found.route.request.is_some() { body } else { RequestBody::none() };
    (found.route.handler)(Call { context, caller, exchange, parts, body, query, parameters: found.parameters }).await
}

/// The bytes that a request's head takes.
fn head_bytes(parts: &Parts) -> usize {
    let path = parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    let fields: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    HEAD + path + fields
}

/// The most bytes of a refused body that are discarded before the refusal is sent: more than the largest body that is
/// accepted.
fn most_discarded(limits: &Limits) -> u64 {
    limits.stored_body_bytes.saturating_add(limits.stored_body_bytes / 4)
}

fn query(parts: &Parts, found: &router::RouteMatch) -> Result<Query, Refusal> {
    // Pages and probes ignore query parameters; an operation refuses those that it does not know.
    match found.route.effect {
        Effect::Nothing => Ok(Query::default()),
        Effect::Reads | Effect::Writes => Query::parse(parts.uri.query(), found.route),
    }
}

fn refused(refusal: &Refusal) -> Reply {
    let reply = Reply::problem(refusal);
    match reply.status_code() {
        // Callers can cause any number of these: the server logs how many.
        _ if matches!(refusal, Refusal::MemoryExhausted(_) | Refusal::ConnectionsExhausted) => {
            tracing::debug!(error = %refusal, "a request was refused for lack of memory or connections");
        }
        // The same, and the engine logs the outage.
        _ if refusal.store_error().is_some() => {
            tracing::debug!(error = %refusal, "a request could not be served");
        }
        500 => tracing::error!(error = %refusal, "a request failed"),
        501.. => tracing::warn!(error = %refusal, "a request could not be served"),
        status => tracing::debug!(status, error = %refusal, "a request was refused"),
    }
    reply
}
