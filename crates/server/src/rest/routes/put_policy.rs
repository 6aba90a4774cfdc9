//! `POST /retry-policies`

use http::Method;
use http::header::{ETAG, LOCATION};

use super::parameters::{self, IF_MATCH};
use crate::operations::{PutOutcome, put_policy};
use crate::rest::call::{Call, CallHead};
use crate::rest::precondition;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{
    Access, Answer, AnswerHeader, Content, Document, Effect, Example, Group, Parameter, ParameterLocation, Route, of,
};
use crate::wire::{PolicyInput, ShownPolicy, parse};

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/retry-policies",
    id: "putPolicy",
    group: Group::Policies,
    summary: "Register or change a policy",
    description: "Registers a policy under its name. Sending the same fields again changes nothing; other fields make \
        a new version. Fields that are left out have the defaults of the policy's `context`, or else the general ones. \
        Running tasks keep the version that they were accepted with. With `--standard warn` the answer lists the rules of the \
        retry standard that the policy breaks; with `--standard enforce` a policy that breaks a MUST is refused.",
    effect: Effect::Writes,
    access: Access::Administer,
    parameters: &[
        IF_MATCH,
        Parameter {
            name: "If-None-Match",
            location: ParameterLocation::Header,
            description: "`*`: only if there is no such policy yet.",
            schema: parameters::asterisk,
        },
    ],
    request: Some(Document::Json {
        schema: of::<PolicyInput<'static>>,
        is_required: true,
        description: "The policy's name and the fields that it sets.",
        example: r#"{
  "policyId": "webhooks",
  "maxAttempts": 8,
  "initialDelayMs": 500,
  "maxDelayMs": 60000,
  "jitterType": "FULL"
}"#,
    }),
    answers: &[
        Answer {
            status: 201,
            description: "A new policy was created.",
            headers: &[AnswerHeader { name: "Location", description: "The path of the policy." }, parameters::ETAG],
            content: Content::Json(of::<ShownPolicy<'static>>),
        },
        Answer {
            status: 200,
            description: "The policy has a new version, or is unchanged.",
            headers: &[parameters::ETAG],
            content: Content::Json(of::<ShownPolicy<'static>>),
        },
    ],
    problems: &[&kind::VERSION_MISMATCH, &kind::INVALID_VALUE, &kind::BREAKS_STANDARD],
    example: Example { target: "/retry-policies", headers: &[], answer: EXAMPLE },
    handler: |call| Box::pin(handle(call)),
};

/// A policy, as it is shown.
pub(crate) const EXAMPLE: &str = r#"{
  "policyId": "webhooks",
  "version": 1,
  "createdAt": 1731600000000,
  "maxAttempts": 8,
  "backoff": "exponential",
  "jitterType": "FULL",
  "initialDelayMs": 500,
  "multiplier": 2.0,
  "maxDelayMs": 60000,
  "totalBudgetMs": 86400000,
  "attemptTimeoutMs": 30000,
  "connectTimeoutMs": 5000
}"#;

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limit = call.app().limits.document_bytes;
    let (bytes, CallHead { context, caller, parts, .. }) = call.read_json(limit).await?;
    let precondition = precondition::of(&parts.headers)?;
    let input: PolicyInput<'_> = parse(&bytes)?;
    let put = put_policy(&context.app, &caller, input, precondition).await?;
    let document = ShownPolicy { findings: put.findings, ..ShownPolicy::try_new(&put.version)? };
    let reply = match put.outcome {
        PutOutcome::Created => {
            Reply::json(201, &document)?.with(LOCATION, format!("/retry-policies/{}", put.version.id))
        }
        PutOutcome::Updated | PutOutcome::Unchanged => Reply::json(200, &document)?,
    };
    Ok(reply.with(ETAG, precondition::etag(put.version.version)))
}
