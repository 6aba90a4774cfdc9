//! Registers a policy, or changes one.

use redrive_core::policy::Spec;
use redrive_core::{Policy, PolicyId};
use redrive_store::{Expected, PolicyVersion, PutPolicy};

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;
use crate::wire::{FieldFault, PolicyInput, ShownFinding};

/// How often a change is tried when other writers change the policy at the same time and the precondition is only that
/// it exists.
const TRIES: usize = 5;

/// What must be true of a policy before it is changed or removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    /// No precondition.
    #[default]
    Nothing,
    /// The policy does not exist.
    Absent,
    /// The policy exists.
    Exists,
    /// The current version of the policy is one of these.
    VersionIn(Vec<u32>),
}

/// A policy after `put_policy`.
#[derive(Debug, Clone)]
pub struct RegisteredPolicy {
    /// Its current version.
    pub version: PolicyVersion,
    /// What `put_policy` did.
    pub outcome: PutOutcome,
    /// The rules of the retry standard that it breaks; empty where they are not checked.
    pub findings: Vec<ShownFinding>,
}

/// What `put_policy` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The policy is new.
    Created,
    /// The policy has a new version.
    Updated,
    /// The policy had the same fields already.
    Unchanged,
}

/// Registers a policy: creates it, makes a new version, or changes nothing if it has the same fields already. Running
/// tasks keep the version that they were accepted with.
pub async fn put_policy(
    app: &App,
    caller: &Caller,
    input: PolicyInput<'_>,
    precondition: Precondition,
) -> Result<RegisteredPolicy, OperationError> {
    let id = PolicyId::try_new(&*input.policy_id)
        .map_err(|invalid| OperationError::invalid("policyId", invalid.to_string()))?;
    Policy::resolve(&input.spec).map_err(|invalid| {
        let fault = |problem: redrive_core::policy::FieldProblem| FieldFault {
            field: problem.field.to_owned(),
            message: problem.message,
        };
        OperationError::Invalid(invalid.problems.into_iter().map(fault).collect())
    })?;
    if let Some(unchanged) = unchanged(app, caller, &id, &input.spec, &precondition).await? {
        return Ok(unchanged);
    }
    let findings = app.standard.judge_policy(&input.spec, app.engine.now())?;
    for _ in 0..TRIES {
        let expected = precondition.expected(app, caller, &id).await?;
        let put = app.engine.policies().put(caller.tenant.clone(), id.clone(), input.spec.clone(), expected).await?;
        let (version, outcome) = match put {
            PutPolicy::Created(version) => (version, PutOutcome::Created),
            PutPolicy::Updated(version) => (version, PutOutcome::Updated),
            PutPolicy::Unchanged(version) => (version, PutOutcome::Unchanged),
            PutPolicy::Conflict(_) if precondition == Precondition::Exists => continue,
            PutPolicy::Conflict(current) => return Err(OperationError::VersionMismatch { current }),
        };
        return Ok(RegisteredPolicy { version, outcome, findings });
    }
    Err(redrive_store::Error::Unavailable("other writers keep changing the policy".into()).into())
}

/// The current version, if it has the same effect as `spec`: with the same fields, or with the values that it inherits
/// written out, as the API shows them. Registering it again changes nothing and is not checked against the standard
/// again: a nightly job that applies an unchanged policy must not start to fail because the standard is enforced or an
/// approval has expired since.
async fn unchanged(
    app: &App,
    caller: &Caller,
    id: &PolicyId,
    spec: &Spec,
    precondition: &Precondition,
) -> Result<Option<RegisteredPolicy>, OperationError> {
    let versions = app.engine.store().policies().versions(caller.tenant.clone(), id.clone()).await?;
    let Some(version) = versions.into_iter().next_back().filter(|newest| newest.spec.is_equivalent_to(spec)) else {
        return Ok(None);
    };
    let is_expected = match precondition {
        Precondition::Nothing | Precondition::Exists => true,
        Precondition::Absent => false,
        Precondition::VersionIn(wanted) => wanted.contains(&version.version),
    };
    let findings = app.standard.findings(spec, app.engine.now());
    Ok(is_expected.then_some(RegisteredPolicy { version, outcome: PutOutcome::Unchanged, findings }))
}

impl Precondition {
    /// The expectation for the store, which compares one version or none.
    pub(super) async fn expected(&self, app: &App, caller: &Caller, id: &PolicyId) -> Result<Expected, OperationError> {
        match self {
            Precondition::Nothing => Ok(Expected::Anything),
            Precondition::Absent => Ok(Expected::Absent),
            Precondition::VersionIn(versions) if versions.len() == 1 => Ok(Expected::Version(versions[0])),
            Precondition::Exists | Precondition::VersionIn(_) => {
                let versions = app.engine.store().policies().versions(caller.tenant.clone(), id.clone()).await?;
                let current = versions.last().map(|newest| newest.version);
                match (self, current) {
                    (Precondition::VersionIn(wanted), Some(current)) if !wanted.contains(&current) => {
                        Err(OperationError::VersionMismatch { current: Some(current) })
                    }
                    (_, Some(current)) => Ok(Expected::Version(current)),
                    (_, None) => Err(OperationError::VersionMismatch { current: None }),
                }
            }
        }
    }
}
