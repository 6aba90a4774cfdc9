//! `GET /health-report`

use http::Method;

use super::parameters::LIMIT;
use crate::operations::health_report;
use crate::rest::call::Call;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::ShownHealthReport;

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/health-report",
    id: "healthReport",
    group: Group::Service,
    summary: "Report the health of deliveries",
    description: "How deliveries went in the last hour: the share of tasks that were retried, that became dead letters, and that were delivered by \
        their second attempt, the mean number of attempts until delivery, and how many tasks have been retried for more than 24 hours, for all \
        dependencies and for each, with the reason in words. Rates of fewer than 20 tasks are `silent`. It counts what this node has ended since it \
        started. The worst dependencies come first, up to `limit`.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[LIMIT],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The report.",
        headers: &[],
        content: Content::Json(of::<ShownHealthReport<'static>>),
    }],
    problems: &[],
    example: Example {
        target: "/health-report?limit=1",
        headers: &[],
        answer: r#"{
  "node": "worker-1",
  "at": 1731600000000,
  "since": 1731596400000,
  "windowMs": 3600000,
  "health": "red",
  "figures": [
    { "figure": "retryRate", "value": 0.02, "sample": 5000, "health": "green", "why": "2 % of 5000 tasks were retried" }
  ],
  "dependencies": [
    {
      "dependency": "https://api.example.com",
      "health": "red",
      "figures": [
        {
          "figure": "deadLetterRate",
          "value": 0.05,
          "sample": 200,
          "health": "red",
          "why": "5 % of 200 tasks became dead letters; the alert is above 1 %"
        }
      ]
    }
  ],
  "dependencyCount": 12
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let app = call.app();
    let most = app.limits.page(call.query.limit(app.limits.page_most)?);
    let report = health_report(app, call.caller()).await;
    Reply::json(200, &ShownHealthReport::new(&report, &app.node, most))
}
