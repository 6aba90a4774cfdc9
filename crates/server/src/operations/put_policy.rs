//! Registers a policy, or changes one.

use redrive_core::policy::Spec;
use redrive_core::{Policy, PolicyId};
use redrive_store::{Expected, PolicyVersion, PutPolicy};

use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::wire::{FieldFault, PolicyInput, ShownFinding};

/// How often a change is tried again that another writer overtook, where the caller only asked that there be a policy.
const TRIES: usize = 5;

/// What must be true of a policy before it is changed or removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    #[default]
    Nothing,
    /// There is no such policy.
    Absent,
    /// There is such a policy.
    Exists,
    /// Its current version is one of these.
    VersionIn(Vec<u32>),
}

/// A policy that was put.
#[derive(Debug, Clone)]
pub struct Put {
    /// Its current version.
    pub version: PolicyVersion,
    /// What putting it did.
    pub how: PutHow,
    /// What of the retry standard it breaks, where that is looked at.
    pub findings: Vec<ShownFinding>,
}

/// What putting a policy did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutHow {
    /// There was none.
    Created,
    /// It has a new version.
    Updated,
    /// It was the same already.
    Unchanged,
}

/// Registers a policy: a new one, a new version of one, or nothing if it is the same already. Running tasks keep the
/// version that they were accepted with.
pub async fn put_policy(
    app: &App,
    caller: &Caller,
    input: PolicyInput<'_>,
    precondition: Precondition,
) -> Result<Put, Failure> {
    let id =
        PolicyId::try_new(&*input.policy_id).map_err(|invalid| Failure::invalid("policyId", invalid.to_string()))?;
    Policy::resolve(&input.spec).map_err(|invalid| {
        let fault = |problem: redrive_core::policy::FieldProblem| FieldFault {
            field: problem.field.to_owned(),
            message: problem.message,
        };
        Failure::Invalid(invalid.problems.into_iter().map(fault).collect())
    })?;
    if let Some(unchanged) = unchanged(app, caller, &id, &input.spec, &precondition).await? {
        return Ok(unchanged);
    }
    let findings = app.standard.judge_policy(&input.spec, app.engine.now())?;
    for _ in 0..TRIES {
        let expected = precondition.expected(app, caller, &id).await?;
        let put = app.engine.policies().put(caller.tenant.clone(), id.clone(), input.spec.clone(), expected).await?;
        let (version, how) = match put {
            PutPolicy::Created(version) => (version, PutHow::Created),
            PutPolicy::Updated(version) => (version, PutHow::Updated),
            PutPolicy::Unchanged(version) => (version, PutHow::Unchanged),
            PutPolicy::Conflict(_) if precondition == Precondition::Exists => continue,
            PutPolicy::Conflict(current) => return Err(Failure::VersionMismatch { current }),
        };
        return Ok(Put { version, how, findings });
    }
    Err(redrive_store::Error::Unavailable("the policy is being changed by others all the time".into()).into())
}

/// The current version, if it has the same effect as `spec`: with the same fields, or with the values that it inherits written
/// out, as the API shows them. Registering it again changes nothing and is not judged again: a nightly job that applies what
/// is applied already must not begin to fail because the standard is enforced or an approval has expired since.
async fn unchanged(
    app: &App,
    caller: &Caller,
    id: &PolicyId,
    spec: &Spec,
    precondition: &Precondition,
) -> Result<Option<Put>, Failure> {
    let versions = app.engine.store().policy(caller.tenant.clone(), id.clone()).await?;
    let Some(version) = versions.into_iter().next_back().filter(|newest| newest.spec.is_equivalent_to(spec)) else {
        return Ok(None);
    };
    let is_expected = match precondition {
        Precondition::Nothing | Precondition::Exists => true,
        Precondition::Absent => false,
        Precondition::VersionIn(wanted) => wanted.contains(&version.version),
    };
    let findings = app.standard.findings(spec, app.engine.now());
    Ok(is_expected.then_some(Put { version, how: PutHow::Unchanged, findings }))
}

impl Precondition {
    /// What to expect of the store, which knows one version or none.
    pub(super) async fn expected(&self, app: &App, caller: &Caller, id: &PolicyId) -> Result<Expected, Failure> {
        match self {
            Precondition::Nothing => Ok(Expected::Anything),
            Precondition::Absent => Ok(Expected::Absent),
            Precondition::VersionIn(versions) if versions.len() == 1 => Ok(Expected::Version(versions[0])),
            Precondition::Exists | Precondition::VersionIn(_) => {
                let versions = app.engine.store().policy(caller.tenant.clone(), id.clone()).await?;
                let current = versions.last().map(|newest| newest.version);
                match (self, current) {
                    (Precondition::VersionIn(wanted), Some(current)) if !wanted.contains(&current) => {
                        Err(Failure::VersionMismatch { current: Some(current) })
                    }
                    (_, Some(current)) => Ok(Expected::Version(current)),
                    (_, None) => Err(Failure::VersionMismatch { current: None }),
                }
            }
        }
    }
}
