//! Intake: from a submission as it was written to a task that the engine accepts, and the same for idempotency records.
//!
//! This is the one place where the values of these documents are judged; behind it, the types are the proof. All faults are
//! found at once, so that a caller corrects them at once.

mod body;
pub(crate) mod completion;
pub(crate) mod event;
mod faults;
mod fingerprint;
mod headers;
pub(crate) mod key;
mod labels;
mod method;
pub(crate) mod reservation;
mod start;
mod target;
mod trace;

use std::sync::Arc;

use futures_util::stream;
use redrive_core::request::FingerprintVersion;
use redrive_core::trace::CallerContext;
use redrive_core::{
    Body, BodyRef, CorrelationId, Dependency, IdempotencyKey, Lane, PolicyId, Request, TenantId, policy,
};
use redrive_engine::ValidatedTask;
use redrive_engine::policies::Resolved;
use redrive_store::Submitted;

use self::body::Content;
use self::faults::Faults;
use self::fingerprint::Resubmission;
pub(crate) use self::fingerprint::ignored_headers;
use crate::app::App;
use crate::operation_error::OperationError;
use crate::standard::CheckedTask;
use crate::wire::{ShownFinding, Submission, Text};

/// A submission that was checked.
pub(crate) enum Checked {
    /// A task that the engine can accept.
    New(ValidatedTask),
    /// The answer that its key already has. Its policy or body has been changed or deleted since it was accepted, so it could
    /// not be accepted today; the same request is still the same task.
    Answered(Submitted),
}

/// What an answer to the caller needs to know of the submission.
pub(crate) struct SubmissionSummary {
    /// The request as it was given.
    pub(crate) given: Arc<Request>,
    /// The request as it is stored: also with what was adopted of the caller's trace.
    pub(crate) request: Arc<Request>,
    pub(crate) policy: PolicyId,
    /// The policy with the task's overrides; nothing of a submission that was accepted before.
    pub(crate) resolved: Option<Arc<Resolved>>,
    /// To compare it with a task that its key belongs to.
    pub(crate) resubmission: Resubmission,
    /// Whether the caller gave no key, so that one was made.
    pub(crate) key_generated: bool,
    /// The rules of the retry standard that it breaks, if the server checks them.
    pub(crate) findings: Vec<ShownFinding>,
}

impl SubmissionSummary {
    /// Of a submission that was accepted before.
    fn of_accepted(given: Arc<Request>, policy: PolicyId, resubmission: Resubmission) -> Self {
        let findings = Vec::new();
        SubmissionSummary {
            request: given.clone(),
            given,
            policy,
            resolved: None,
            resubmission,
            key_generated: false,
            findings,
        }
    }
}

/// What came with a submission beside its document.
#[derive(Debug, Clone, Default)]
pub struct SubmissionHeaders<'a> {
    /// The idempotency key.
    pub idempotency_key: Option<&'a str>,
    /// The trace of the caller.
    pub trace: CallerContext,
}

/// Checks a submission, which came with these `headers`.
pub(crate) async fn check(
    app: &App,
    tenant: &TenantId,
    mut submission: Submission<'_>,
    headers: &SubmissionHeaders<'_>,
) -> Result<(Checked, SubmissionSummary), OperationError> {
    let policy_id = policy_id(submission.policy_id.as_ref())?;
    let base = app.engine.policies().current(tenant, &policy_id).await?;
    let now = app.engine.now();
    let mut faults = Faults::default();
    // What is wrong only with the policy as it is today.
    let mut today = Faults::default();

    let given_key = key::agree(submission.idempotency_key.as_deref(), headers.idempotency_key)?;
    let policy = base.clone().and_then(|base| with_overrides(base, submission.policy.as_ref(), &mut today));
    let (dependency, mut request) = request(app, &mut submission, &mut faults)?;
    let budget = policy.as_ref().map(|policy| policy.policy.total_budget);
    let not_before = start::check(submission.delay_ms, submission.not_before, now, budget, &mut today);
    let correlation_id =
        submission.correlation_id.as_deref().and_then(|id| faults.keep("correlationId", CorrelationId::try_new(id)));
    let Some(dependency) = dependency.filter(|_| faults.is_empty()) else {
        return Err(faults.and(today).into_failure());
    };
    let beside = fingerprint::OtherFields {
        policy: policy_id.clone(),
        dependency: submission.dependency.as_deref().map(str::to_owned),
        delay_ms: submission.delay_ms,
        not_before: submission.not_before,
    };
    let fingerprint = fingerprint::of(FingerprintVersion::CURRENT, &request, &beside);
    let resubmission = Resubmission::new(&request, beside, app.limits.inline_body_bytes);
    // A body that is gone, like a policy that is, does not matter to what was accepted before.
    let is_found = find(app, tenant, &mut request).await?;
    let judged = match (&base, &policy) {
        (Some(base), Some(policy)) => {
            app.standard.judge_task(&CheckedTask { request: &request, has_key: given_key.is_some(), base, policy }, now)
        }
        _ => Ok(Vec::new()),
    };
    let Some(policy) = policy.filter(|_| today.is_empty() && is_found && judged.is_ok()) else {
        if let Some(submitted) = accepted_before(app, tenant, given_key, &resubmission, &request).await? {
            let summary = SubmissionSummary::of_accepted(Arc::new(request), policy_id, resubmission);
            return Ok((Checked::Answered(submitted), summary));
        }
        let missing = if is_found { None } else { request.body.stored() };
        return Err(today
            .into_failure_if_any()
            .or(missing.map(unknown_body))
            .or(judged.err())
            .unwrap_or_else(|| unknown_policy(&policy_id)));
    };
    store_large_body(app, tenant, &mut request.body).await?;
    let key_generated = given_key.is_none();
    let idempotency_key = given_key.unwrap_or_else(|| redrive_core::id::make_key(app.engine.random_bits()));
    let lane = Lane { tenant: tenant.clone(), dependency };
    let given = Arc::new(request);
    let trace = trace::of(&given.headers, &headers.trace, app.propagators);
    let trace_parent = trace.parent;
    let request = trace.complete(&given);
    let findings = judged?;
    let summary = SubmissionSummary {
        given,
        request: request.clone(),
        policy: policy_id,
        resolved: Some(policy.clone()),
        resubmission,
        key_generated,
        findings,
    };
    let task =
        ValidatedTask { lane, idempotency_key, correlation_id, trace_parent, policy, request, fingerprint, not_before };
    Ok((Checked::New(task), summary))
}

/// The dependency and the request that a submission describes. What is wrong with them is added to `faults`.
fn request(
    app: &App,
    submission: &mut Submission<'_>,
    faults: &mut Faults,
) -> Result<(Option<Dependency>, Request), OperationError> {
    let method = method::check(submission.method.as_deref(), faults);
    let origin = target::check(&submission.target_url, app.limits.url_bytes, faults);
    let dependency = dependency(submission.dependency.as_deref(), origin, faults);
    let body = body::decode(submission, app.limits.body_bytes, faults)?;
    let headers = headers::check(submission.headers.take(), body.implied_type, &app.limits, faults);
    let labels = labels::check(submission.labels.take(), &app.limits, faults);
    let request = Request {
        target_url: std::mem::take(&mut submission.target_url).0.into_owned(),
        method: method.to_owned(),
        headers,
        body: match &body.content {
            Content::Bytes(bytes) => bytes.clone().into(),
            // Which object it is, and how long, is found out later.
            Content::Uploaded(hash) => BodyRef { hash: *hash, length: 0, copy: 0 }.into(),
        },
        overrides: submission.policy.take().filter(|overrides| *overrides != policy::Spec::default()),
        labels,
    };
    Ok((dependency, request))
}

/// The answer to a request that could not be accepted today but whose key is taken; `None` if the key is free.
async fn accepted_before(
    app: &App,
    tenant: &TenantId,
    key: Option<IdempotencyKey>,
    resubmission: &Resubmission,
    request: &Request,
) -> Result<Option<Submitted>, OperationError> {
    let Some(key) = key else { return Ok(None) };
    let Some((owner, accepted)) = app.engine.store().reads().by_key(tenant.clone(), key).await? else {
        return Ok(None);
    };
    Ok(Some(match resubmission.is(accepted, request) {
        true => Submitted::Replayed(Box::new(owner)),
        false => Submitted::KeyReused(owner.id),
    }))
}

/// Finds out which object an uploaded body is; `false` if there is none.
async fn find(app: &App, tenant: &TenantId, request: &mut Request) -> Result<bool, OperationError> {
    let Body::Stored(body) = &mut request.body else { return Ok(true) };
    let Some(bodies) = app.engine.bodies() else { return Ok(false) };
    match bodies.find(tenant, body.hash).await? {
        Some(found) => *body = found,
        None => return Ok(false),
    }
    Ok(true)
}

/// Stores a body that came in a document and is too large to be a part of its task or record.
pub(crate) async fn store_large_body(app: &App, tenant: &TenantId, body: &mut Body) -> Result<(), OperationError> {
    let (Some(bodies), Some(bytes)) = (app.engine.bodies(), body.inline()) else { return Ok(()) };
    if bytes.len() > app.limits.inline_body_bytes {
        let pieces = Box::pin(stream::iter([Ok(bytes.clone())]));
        *body = bodies.keep(tenant, pieces, bytes.len() as u64).await?.into();
    }
    Ok(())
}

pub(crate) fn unknown_body(body: &BodyRef) -> OperationError {
    OperationError::UnknownBody { field: body::REFERENCE.into(), body_ref: body.hash.to_string() }
}

const POLICY_ID: &str = "policyId";

fn policy_id(given: Option<&Text<'_>>) -> Result<PolicyId, OperationError> {
    match given {
        Some(text) => {
            PolicyId::try_new(&**text).map_err(|invalid| OperationError::invalid(POLICY_ID, invalid.to_string()))
        }
        None => Ok(PolicyId::default_policy()),
    }
}

pub(crate) fn unknown_policy(id: &PolicyId) -> OperationError {
    OperationError::UnknownPolicy { field: POLICY_ID.into(), id: id.to_string() }
}

fn with_overrides(base: Arc<Resolved>, overrides: Option<&policy::Spec>, faults: &mut Faults) -> Option<Arc<Resolved>> {
    let Some(overrides) = overrides else { return Some(base) };
    if overrides.approval.is_some() {
        // The caller would approve its own task.
        faults.add("policy.approval", "belongs to a policy that is registered, not to one task");
        return None;
    }
    match base.with_overrides(overrides) {
        Ok(resolved) => Some(Arc::new(resolved)),
        Err(invalid) => {
            for problem in invalid.problems {
                faults.add(format!("policy.{}", problem.field), problem.message);
            }
            None
        }
    }
}

fn dependency(given: Option<&str>, origin: Option<Dependency>, faults: &mut Faults) -> Option<Dependency> {
    match given {
        Some(name) => faults.keep("dependency", Dependency::try_new(name)),
        None => origin,
    }
}
