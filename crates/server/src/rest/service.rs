//! From a request to a response: route, handler, problem details, and nothing that a panic could slip through.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use http::request::Parts;
use http::{Method, Request, Response, Version};
use hyper::body::Incoming;

use super::call::{Call, Context};
use super::gate;
use super::problem::Refusal;
use super::query::Query;
use super::reply::Reply;
use super::route::Effect;
use super::router;
use super::sent::Sent;
use super::unread::{self, Lent};
use crate::app::Limits;

/// Answers one request.
pub(crate) async fn respond(context: Arc<Context>, request: Request<Incoming>) -> Result<Response<Sent>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let version = request.version();
    // A handler owns all that it works with: what a panic leaves half done is dropped with it.
    let outcome = AssertUnwindSafe(answer(context, request)).catch_unwind().await;
    let reply = outcome.unwrap_or_else(|_| refused(&Refusal::Panicked));
    let mut response = reply.into_response(is_head);
    if version == Version::HTTP_2 {
        // HTTP/2 closes streams, not connections.
        response.headers_mut().remove(http::header::CONNECTION);
    }
    Ok(response)
}

async fn answer(context: Arc<Context>, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let (body, unread) = unread::lend(&parts, body);
    let (most, within) = (most_discarded(&context.app.limits), context.body_read_timeout);
    let (route, outcome) = match find(&context, &parts) {
        Ok(found) => (Some(found.route), handle(context, parts, body, found).await),
        Err(refusal) => {
            drop(body);
            (None, Err(refusal))
        }
    };
    let reply = match outcome {
        Ok(reply) => reply,
        Err(refusal) => {
            if !refusal.is_for_silence() {
                unread.discard(most, within).await;
            }
            refused(&refusal)
        }
    };
    if let Some(route) = route {
        // What the reference does not say, the service does not do: the tests find every answer that drifts.
        let (status, kind) = (reply.status_code(), reply.kind);
        debug_assert!(route.declares(&reply), "{} answers {status} ({kind:?}) undeclared", route.id);
    }
    reply
}

fn find(context: &Context, parts: &Parts) -> Result<router::Found, Refusal> {
    gate::check(&context.names, parts)?;
    let found = router::find(&parts.method, parts.uri.path())?;
    gate::check_site(parts, found.route)?;
    Ok(found)
}

async fn handle(context: Arc<Context>, parts: Parts, body: Lent, found: router::Found) -> Result<Reply, Refusal> {
    let query = query(&parts, &found)?;
    (found.route.handler)(Call { context, parts, body, query, parameter: found.parameter }).await
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
        500 => tracing::error!(error = %refusal, "a request failed"),
        501.. => tracing::warn!(error = %refusal, "a request could not be served"),
        status => tracing::debug!(status, error = %refusal, "a request was refused"),
    }
    reply
}
