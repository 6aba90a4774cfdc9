//! `DELETE /retry-policies/{policyId}`

use http::Method;

use super::parameters::{IF_MATCH, POLICY_ID};
use crate::operations::delete_policy;
use crate::rest::call::Call;
use crate::rest::precondition;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route};

pub(crate) static ROUTE: Route = Route {
    method: Method::DELETE,
    path: "/retry-policies/{policyId}",
    id: "deletePolicy",
    group: Group::Policies,
    summary: "Delete a policy",
    description: "Deletes a policy with all its versions. It is refused while tasks that have not ended use one of \
        them, and always for the policy `default` and for a built-in policy that was not changed. If the policy has the name of a built-in \
        one, that one applies again.",
    effect: Effect::Writes,
    access: Access::Administer,
    parameters: &[POLICY_ID, IF_MATCH],
    request: None,
    answers: &[Answer { status: 204, description: "The policy was deleted.", headers: &[], content: Content::Nothing }],
    problems: &[&kind::POLICY_NOT_FOUND, &kind::POLICY_IN_USE, &kind::POLICY_PROTECTED, &kind::VERSION_MISMATCH],
    example: Example { target: "/retry-policies/webhooks", headers: &["If-Match: \"1\""], answer: "" },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let precondition = precondition::of(&call.parts.headers)?;
    delete_policy(call.app(), call.caller(), call.policy_id()?, precondition).await?;
    Ok(Reply::empty(204))
}
