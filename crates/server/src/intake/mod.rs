//! Intake: from a submission as it was written to a draft that the engine accepts.
//!
//! This is the one place where a submission's values are judged; behind it, the types are the proof. All faults are
//! found at once, so that a caller corrects them at once.

mod body;
mod faults;
mod fingerprint;
mod headers;
mod key;
mod labels;
mod method;
mod start;
mod target;

use std::sync::Arc;

use redrive_core::{Dependency, Lane, PolicyId, Request, TenantId, policy};
use redrive_engine::Draft;
use redrive_engine::policies::Resolved;

use self::faults::Faults;
use crate::app::App;
use crate::failure::Failure;
use crate::wire::{Submission, Text};

/// A draft, and what the answer to its submission must say.
pub(crate) struct Prepared {
    pub(crate) draft: Draft,
    /// Whether the caller gave no key, so that one was made.
    pub(crate) key_generated: bool,
}

/// Judges a submission. `key_beside` is a key that came beside the document.
pub(crate) async fn prepare(
    app: &App,
    tenant: &TenantId,
    mut submission: Submission<'_>,
    key_beside: Option<&str>,
) -> Result<Prepared, Failure> {
    let base = base_policy(app, tenant, submission.policy_id.as_ref()).await?;
    let now = app.engine.now();
    let mut faults = Faults::default();

    let given_key = key::agree(submission.idempotency_key.as_deref(), key_beside, &mut faults)?;
    let policy = with_overrides(base, submission.policy.as_ref(), &mut faults);
    let method = method::check(submission.method.as_deref(), &mut faults);
    let origin = target::check(&submission.target_url, app.limits.url_bytes, &mut faults);
    let dependency = dependency(submission.dependency.as_deref(), origin, &mut faults);
    let body = body::decode(&submission, app.limits.body_bytes, &mut faults)?;
    let headers = headers::check(submission.headers.take(), body.implied_type, &app.limits, &mut faults);
    let labels = labels::check(submission.labels.take(), &app.limits, &mut faults);
    let budget = policy.as_ref().map(|policy| policy.policy.total_budget);
    let not_before = start::check(submission.delay_ms, submission.not_before, now, budget, &mut faults);

    let (Some(policy), Some(dependency)) = (policy, dependency) else { return Err(faults.into_failure()) };
    if !faults.is_empty() {
        return Err(faults.into_failure());
    }

    let request = Request {
        target_url: submission.target_url.0.into_owned(),
        method: method.to_owned(),
        headers,
        body: body.bytes,
        overrides: submission.policy.filter(|overrides| *overrides != policy::Spec::default()),
        labels,
    };
    let beside = fingerprint::Beside {
        policy: &policy.reference.id,
        dependency: submission.dependency.as_deref(),
        delay_ms: submission.delay_ms,
        not_before: submission.not_before,
    };
    let fingerprint = fingerprint::of(&request, &beside);
    let key_generated = given_key.is_none();
    let idempotency_key = given_key.unwrap_or_else(|| redrive_core::id::make_key(app.engine.random_bits()));
    let lane = Lane { tenant: tenant.clone(), dependency };
    let draft = Draft { lane, idempotency_key, policy, request: Arc::new(request), fingerprint, not_before };
    Ok(Prepared { draft, key_generated })
}

async fn base_policy(app: &App, tenant: &TenantId, id: Option<&Text<'_>>) -> Result<Arc<Resolved>, Failure> {
    const FIELD: &str = "policyId";
    let id = match id {
        Some(text) => PolicyId::try_new(&**text).map_err(|invalid| Failure::invalid(FIELD, invalid.to_string()))?,
        None => PolicyId::default_policy(),
    };
    let current = app.engine.policies().current(tenant, &id).await?;
    current.ok_or_else(|| Failure::UnknownPolicy { field: FIELD.into(), id: id.to_string() })
}

fn with_overrides(base: Arc<Resolved>, overrides: Option<&policy::Spec>, faults: &mut Faults) -> Option<Arc<Resolved>> {
    let Some(overrides) = overrides else { return Some(base) };
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
