//! `GET /retry-policies`

use http::Method;
use redrive_core::PolicyId;

use super::parameters::{CURSOR, LIMIT};
use crate::operations::list_policies;
use crate::rest::call::Call;
use crate::rest::page::{Addition, Page};
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::{Cursor, PolicyList, ShownPolicy};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/retry-policies",
    id: "listPolicies",
    group: Group::Policies,
    summary: "List policies",
    description: "The current version of every policy, by name. A page ends after `limit` policies or \
        1 MiB.",
    effect: Effect::Reads,
    access: Access::Read,
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

/// The most policies that are read at once: one may have 256 KiB.
const MOST_READ: usize = 16;

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limits = &call.app().limits;
    let most = limits.page(call.query.limit(limits.page_most)?);
    let mut page = Page::new("policies", limits.page_bytes);
    let mut after: Option<PolicyId> = call.query.cursor()?;
    let next = 'read: loop {
        let wanted = MOST_READ.min(most - page.items());
        let read = list_policies(call.app(), call.caller(), after.clone(), Some(wanted)).await?;
        for policy in &read.policies {
            if let Addition::PageFull = page.add(&ShownPolicy::try_new(policy)?)? {
                break 'read after;
            }
            after = Some(policy.id.clone());
        }
        call.exchange.charge.hold(page.bytes())?;
        if read.next.is_none() || page.items() >= most {
            break read.next;
        }
    };
    page.end(next.map(|last| last.to_cursor()))?;
    Ok(page.into_reply())
}
