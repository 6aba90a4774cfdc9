//! `GET /livez` and `GET /readyz`

use std::time::Duration;

use http::Method;
use redrive_engine::bodies::BodyError;
use redrive_store::Error;

use crate::failure::Failure;
use crate::operations::check_ready;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::Health;

/// How long the store may take to show that it is there. Whoever asks has little patience: a load balancer, a probe.
const CHECK_WITHIN: Duration = Duration::from_secs(5);

/// The most rows that are named of what is set aside.
const NAMED: usize = 20;

pub(crate) static LIVE: Route = Route {
    method: Method::GET,
    path: "/livez",
    id: "live",
    group: Group::Service,
    summary: "Whether the process lives",
    description: "Answers as long as the process serves requests at all.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[],
    request: None,
    answers: &[Answer { status: 200, description: "It lives.", headers: &[], content: Content::Json(of::<Health>) }],
    problems: &[],
    example: Example { target: "/livez", headers: &[], answer: r#"{ "status": "ok" }"# },
    handler: |_| Box::pin(async { Reply::json(200, &Health::OK) }),
};

pub(crate) static READY: Route = Route {
    method: Method::GET,
    path: "/readyz",
    id: "ready",
    group: Group::Service,
    summary: "Whether the service can take work",
    description: "Whether the store can be written to, large bodies would go where they are kept, no part of the service has died and \
        it is not about to stop. A store that has not said so after 5 seconds cannot. Object storage that does not answer is not \
        counted, except for a directory. `setAside` is there if the store holds rows that this program cannot understand: \
        they are set aside until a program does, and everything else goes on. `clock` is there if the machine's clock differs by more \
        than a second from the time that the service works on, or if that time is not certain: then no tasks are claimed.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "It can take work.",
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

/// One status says that it is not ready, whatever the reason: probes look at nothing else.
fn unavailable(failure: Failure) -> Failure {
    match failure {
        Failure::Store(full @ Error::Full(_)) | Failure::Bodies(BodyError::Store(full @ Error::Full(_))) => {
            Error::Unavailable(full.to_string()).into()
        }
        failure => failure,
    }
}

#[expect(clippy::disallowed_methods, reason = "whoever asks has a machine's clock as well")]
async fn in_time<T>(check: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let late = || Err(Error::Unavailable(format!("no answer within {} s", CHECK_WITHIN.as_secs())).into());
    tokio::time::timeout(CHECK_WITHIN, check).await.unwrap_or_else(|_| late())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_space_means_not_available_like_everything_else() {
        let full = || Error::Full("disk".to_owned());
        for failure in [Failure::from(full()), Failure::from(BodyError::Store(full()))] {
            let told = unavailable(failure);
            assert!(matches!(&told, Failure::Store(Error::Unavailable(_))), "{told:?}");
            assert!(told.to_string().contains("no space left"), "{told}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_answer_is_not_ready_after_five_seconds() {
        let began = tokio::time::Instant::now();
        let told = in_time::<()>(std::future::pending()).await.unwrap_err().to_string();
        assert_eq!((told.as_str(), began.elapsed()), ("the store is unavailable: no answer within 5 s", CHECK_WITHIN));
        assert!(in_time(async { Ok(()) }).await.is_ok());
    }
}
