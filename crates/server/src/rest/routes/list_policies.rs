//! `GET /retry-policies`

use http::Method;

use super::parameters::{CURSOR, LIMIT};
use crate::operations::list_policies;
use crate::rest::call::Call;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::{Cursor, PolicyList, ShownPolicy};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/retry-policies",
    id: "listPolicies",
    group: Group::Policies,
    summary: "List policies",
    description: "The current version of every policy, in the order of their names.",
    effect: Effect::Reads,
    parameters: &[CURSOR, LIMIT],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "A page of policies.",
        headers: &[],
        content: Content::Json(of::<PolicyList<'static>>),
    }],
    problems: &[],
    example: Example {
        target: "/retry-policies",
        headers: &[],
        answer: r#"{
  "policies": [
    {
      "policyId": "default",
      "version": 1,
      "createdAt": 1731600000000,
      "maxAttempts": 6,
      "backoff": "exponential",
      "jitterType": "FULL",
      "initialDelayMs": 1000,
      "multiplier": 2.0,
      "maxDelayMs": 30000,
      "totalBudgetMs": 86400000,
      "attemptTimeoutMs": 30000,
      "connectTimeoutMs": 5000
    }
  ],
  "nextCursor": null
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limit = call.query.limit(call.app().limits.page_most)?;
    let page = list_policies(call.app(), call.tenant(), call.query.cursor()?, limit).await?;
    let policies = page.policies.iter().map(ShownPolicy::try_new).collect::<Result<_, _>>()?;
    Reply::json(200, &PolicyList { policies, next_cursor: page.next.map(|last| last.to_cursor()) })
}
