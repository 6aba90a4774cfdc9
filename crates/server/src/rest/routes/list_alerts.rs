//! `GET /alerts`

use http::Method;

use super::parameters::LIMIT;
use crate::operations::list_alerts;
use crate::rest::call::Call;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::ShownAlertList;

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/alerts",
    id: "listAlerts",
    group: Group::Alerts,
    summary: "List alerts",
    description: "What fires now and what has fired, as this node sees it, with the silences of all nodes and the sinks. It answers also while \
        the store fails.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[LIMIT],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The alerts.",
        headers: &[],
        content: Content::Json(of::<ShownAlertList<'static>>),
    }],
    problems: &[],
    example: Example {
        target: "/alerts",
        headers: &[],
        answer: r#"{
  "node": "worker-1",
  "firing": [
    {
      "rule": "breaker-open",
      "severity": "critical",
      "dependency": "https://api.example.com",
      "value": 1.0,
      "why": "the circuit breaker is open: consecutive-failures",
      "firedAt": 1731600000000,
      "resolvedAt": null,
      "silenced": false
    }
  ],
  "firingCount": 1,
  "past": [],
  "silences": [],
  "sinks": [{ "sink": "on-call", "kind": "slack" }]
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let app = call.app();
    let most = app.limits.page(call.query.limit(app.limits.page_most)?);
    let list = list_alerts(app, call.caller()).await;
    let sinks = &app.alerts.settings().sinks;
    Reply::json(200, &ShownAlertList::new(&list, sinks, &app.node, app.engine.now(), most))
}
