//! `GET /retry-policies/{policyId}`

use http::Method;
use http::header::ETAG;

use super::parameters::{self, POLICY_ID};
use crate::operation_error::OperationError;
use crate::operations::get_policy;
use crate::rest::call::Call;
use crate::rest::precondition;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::{PolicyHistory, ShownPolicy};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/retry-policies/{policyId}",
    id: "getPolicy",
    group: Group::Policies,
    summary: "Show a policy",
    description: "The current version of a policy, with every field that applies to it, and its versions. An old version is \
        kept as long as a task refers to it. Unless the service runs with `--standard off`, `findings` lists the rules of the retry \
        standard that the policy breaks today.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[POLICY_ID],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The policy.",
        headers: &[parameters::ETAG],
        content: Content::Json(of::<PolicyHistory<'static>>),
    }],
    problems: &[&kind::POLICY_NOT_FOUND],
    example: Example {
        target: "/retry-policies/webhooks",
        headers: &[],
        answer: r#"{
  "policyId": "webhooks",
  "version": 2,
  "createdAt": 1731600500000,
  "maxAttempts": 9,
  "backoff": "fixed",
  "jitterType": "FULL",
  "initialDelayMs": 500,
  "totalBudgetMs": 86400000,
  "attemptTimeoutMs": 30000,
  "connectTimeoutMs": 5000,
  "versions": [
    { "policyId": "webhooks", "version": 1, "createdAt": 1731600000000, "maxAttempts": 8 },
    { "policyId": "webhooks", "version": 2, "createdAt": 1731600500000, "maxAttempts": 9 }
  ]
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let id = call.policy_id()?;
    let versions = get_policy(call.app(), call.caller(), id.clone()).await?;
    let newest = versions.last().ok_or_else(|| OperationError::NoSuchPolicy(id.to_string()))?;
    let findings = call.app().standard.findings(&newest.spec, call.app().engine.now());
    let history = PolicyHistory {
        current: ShownPolicy { findings, ..ShownPolicy::try_new(newest)? },
        versions: versions.iter().map(ShownPolicy::try_new).collect::<Result<_, _>>()?,
    };
    Ok(Reply::json(200, &history)?.with(ETAG, precondition::etag(newest.version)))
}
