//! `POST /alerts/sinks/{sink}/test`

use http::Method;

use super::parameters::SINK;
use crate::operations::test_sink;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::ShownSinkTest;

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/alerts/sinks/{sink}/test",
    id: "testSink",
    group: Group::Alerts,
    summary: "Test a sink",
    description: "Sends a test notification from this node to a sink, once and directly, and waits up to 10 seconds for its answer. The \
        notification says that nothing is wrong.",
    effect: Effect::Nothing,
    access: Access::Operate,
    parameters: &[SINK],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "What became of it.",
        headers: &[],
        content: Content::Json(of::<ShownSinkTest<'static>>),
    }],
    problems: &[&kind::SINK_NOT_FOUND],
    example: Example {
        target: "/alerts/sinks/on-call/test",
        headers: &[],
        answer: r#"{ "sink": "on-call", "received": true, "status": 200, "error": null }"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let name = call.parameter("sink");
    let result = test_sink(call.app(), name).await?;
    Reply::json(200, &ShownSinkTest::new(name, &result))
}
