//! `GET /livez` and `GET /readyz`

use std::time::Duration;

use http::Method;
use redrive_engine::bodies::BodyError;
use redrive_store::Error;

use crate::operation_error::OperationError;
use crate::operations::check_ready;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::Health;

/// The longest that the readiness check may take: load balancers and probes do not wait long.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The most rows set aside that the answer names.
const NAMED: usize = 20;

pub(crate) static LIVE: Route = Route {
    method: Method::GET,
    path: "/livez",
    id: "live",
    group: Group::Service,
    summary: "Liveness",
    description: "Answers as long as the process serves requests at all.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The process is alive.",
        headers: &[],
        content: Content::Json(of::<Health>),
    }],
    problems: &[],
    example: Example { target: "/livez", headers: &[], answer: r#"{ "status": "ok" }"# },
    handler: |_| Box::pin(async { Reply::json(200, &Health::OK) }),
};

pub(crate) static READY: Route = Route {
    method: Method::GET,
    path: "/readyz",
    id: "ready",
    group: Group::Service,
    summary: "Readiness",
    description: "The service is ready if its store and its directory of large bodies can be written to, all of its background loops run and it \
        is not stopping. A store that does not answer within 5 seconds counts as unavailable; object storage that does not answer does \
        not. `setAside` is present if the store holds rows that this version cannot read: they are set aside until a version can, and \
        everything else continues. `clock` is present if the machine's clock differs by more than a second from the time that \
        the service works with, or if that time is uncertain: then no tasks are claimed.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The service can accept work.",
        headers: &[],
        content: Content::Json(of::<Health>),
    }],
    problems: &[&kind::UNAVAILABLE],
    example: Example { target: "/readyz", headers: &[], answer: r#"{ "status": "ok" }"# },
    handler: |call| Box::pin(ready(call)),
};

async fn ready(call: Call) -> Result<Reply, Refusal> {
    let set_aside = in_time(check_ready(call.app(), NAMED)).await.map_err(unavailable)?;
    Reply::json(200, &Health::beside(set_aside, call.app().engine.clock_state()))
}

/// Every reason for not being ready has the status 503: probes look at nothing else.
fn unavailable(failure: OperationError) -> OperationError {
    match failure {
        OperationError::Store(full @ Error::Full(_))
        | OperationError::Bodies(BodyError::Store(full @ Error::Full(_))) => {
            Error::Unavailable(full.to_string()).into()
        }
        failure => failure,
    }
}

#[expect(clippy::disallowed_methods, reason = "the timeout of a probe is wall-clock time")]
async fn in_time<T>(check: impl Future<Output = Result<T, OperationError>>) -> Result<T, OperationError> {
    let late = || Err(Error::Unavailable(format!("no answer within {} s", CHECK_TIMEOUT.as_secs())).into());
    tokio::time::timeout(CHECK_TIMEOUT, check).await.unwrap_or_else(|_| late())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_space_means_not_available_like_everything_else() {
        let full = || Error::Full("disk".to_owned());
        for failure in [OperationError::from(full()), OperationError::from(BodyError::Store(full()))] {
            let told = unavailable(failure);
            assert!(matches!(&told, OperationError::Store(Error::Unavailable(_))), "{told:?}");
            assert!(told.to_string().contains("no space left"), "{told}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_answer_is_not_ready_after_five_seconds() {
        let began = tokio::time::Instant::now();
        let told = in_time::<()>(std::future::pending()).await.unwrap_err().to_string();
        assert_eq!((told.as_str(), began.elapsed()), ("the store is unavailable: no answer within 5 s", CHECK_TIMEOUT));
        assert!(in_time(async { Ok(()) }).await.is_ok());
    }
}
