//! Accepts one task.

use std::sync::Arc;

use redrive_core::{Request, TenantId};
use redrive_engine::Submission as Submitted;
use redrive_engine::policies::Resolved;
use redrive_store::TaskDetail;

use super::get_task::get_task;
use crate::app::App;
use crate::failure::Failure;
use crate::intake::{self, Prepared};
use crate::wire::Submission;

/// A task that was accepted, now or before.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The task.
    pub detail: TaskDetail,
    /// Whether it is new.
    pub how: Acceptance,
    /// Whether the submission had no key, so that one was made.
    pub key_generated: bool,
}

/// Whether an accepted task is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// It is.
    Created,
    /// The same request had been accepted with the same key before.
    Replayed,
}

/// Accepts one task; when this answers, the task is durable. `key_beside` is an idempotency key that came beside the
/// document.
pub async fn submit_task(
    app: &App,
    tenant: &TenantId,
    submission: Submission<'_>,
    key_beside: Option<&str>,
) -> Result<Accepted, Failure> {
    let prepared = intake::prepare(app, tenant, submission, key_beside).await?;
    let asked = Asked::of(&prepared);
    let submitted = match prepared {
        Prepared::New { draft, .. } => app.engine.submit(vec![draft]).await?.pop().ok_or_else(missing_answer)?,
        Prepared::Before { submitted, .. } => submitted,
    };
    asked.answered(app, tenant, submitted).await
}

/// The engine answers each draft; that it did not is a fault of ours, not of the caller's.
pub(super) fn missing_answer() -> Failure {
    redrive_store::Error::Corrupt("a submission was not answered".into()).into()
}

/// What is kept of a submission while the engine has the draft.
pub(super) struct Asked {
    request: Arc<Request>,
    /// The policy that it was judged by, if it was.
    policy: Option<Arc<Resolved>>,
    key_generated: bool,
}

impl Asked {
    pub(super) fn of(prepared: &Prepared) -> Self {
        match prepared {
            Prepared::New { draft, key_generated } => Asked {
                request: draft.request.clone(),
                policy: Some(draft.policy.clone()),
                key_generated: *key_generated,
            },
            Prepared::Before { request, .. } => Asked { request: request.clone(), policy: None, key_generated: false },
        }
    }

    /// What the engine's answer means for the caller.
    pub(super) async fn answered(
        self,
        app: &App,
        tenant: &TenantId,
        submitted: Submitted,
    ) -> Result<Accepted, Failure> {
        let Asked { request, policy, key_generated } = self;
        let accepted = |detail, how| Ok(Accepted { detail, how, key_generated });
        match submitted {
            Submitted::Created(task) => {
                accepted(TaskDetail { task: *task, request, answer: None }, Acceptance::Created)
            }
            // The same request, so it need not be read again; the answer of an ended task must be.
            Submitted::Replayed(task) if task.status.is_ended() => {
                accepted(get_task(app, tenant, task.id).await?, Acceptance::Replayed)
            }
            Submitted::Replayed(task) => {
                accepted(TaskDetail { task: *task, request, answer: None }, Acceptance::Replayed)
            }
            Submitted::KeyReused(id) => Err(Failure::KeyReused(id)),
            Submitted::BodyGone => match request.body.stored() {
                Some(body) => Err(intake::unknown_body(body)),
                None => Err(missing_answer()),
            },
            Submitted::PolicyGone => {
                let id = policy.map(|policy| policy.reference.id.to_string()).unwrap_or_default();
                Err(Failure::UnknownPolicy { field: "policyId".into(), id })
            }
        }
    }
}
