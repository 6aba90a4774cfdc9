//! Checks policies, submissions and retentions against the retry standard, and refuses them where it is enforced.
//!
//! Not here: the rules (`redrive_standard::rules`).

use std::time::Duration;

use redrive_core::duration::duration_text;
use redrive_core::policy::Spec;
use redrive_core::{Date, Request, Timestamp};
use redrive_engine::policies::Resolved;
use redrive_standard::rules::{self, Check, Finding, Step};

use crate::idempotency::Settings;
use crate::operation_error::OperationError;
use crate::wire::ShownFinding;

/// What happens to a policy or submission that breaks the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standard {
    /// The standard is not checked.
    #[default]
    Off,
    /// It is accepted, and the answer lists the rules that it breaks.
    Warn,
    /// It is refused if it breaks a MUST; the answer lists the rules that it breaks.
    Enforce,
}

impl Standard {
    /// The findings of a policy to register, or the refusal.
    pub(crate) fn judge_policy(self, spec: &Spec, now: Timestamp) -> Result<Vec<ShownFinding>, OperationError> {
        self.admit(self.findings(spec, now))
    }

    /// The findings of a policy as of `now`; none if the standard is off.
    pub(crate) fn findings(self, spec: &Spec, now: Timestamp) -> Vec<ShownFinding> {
        match self {
            Standard::Off => Vec::new(),
            Standard::Warn | Standard::Enforce => {
                rules::check_policy(spec, None, Date::of(now)).iter().map(ShownFinding::of).collect()
            }
        }
    }

    /// The findings of a task, or the refusal: rules that its changes of the policy break and the policy alone does
    /// not, and a missing key.
    pub(crate) fn judge_task(
        self,
        task: &CheckedTask<'_>,
        now: Timestamp,
    ) -> Result<Vec<ShownFinding>, OperationError> {
        if self == Standard::Off {
            return Ok(Vec::new());
        }
        let mut findings = task.changes(Date::of(now));
        findings = findings.into_iter().map(|finding| finding.within(&[Step::Field("policy")])).collect();
        if !task.has_key {
            findings.extend(rules::unkeyed_task(&task.request.method, &task.policy.policy));
        }
        self.admit(findings.iter().map(ShownFinding::of).collect())
    }

    /// Refuses keys or event ids that are kept for too short a time, where the standard is enforced.
    pub(crate) fn judge_retention(self, kept: Kept, field: &str, retention: Duration) -> Result<(), OperationError> {
        let (check, least) = match kept {
            Kept::Keys => ("key-retention", Settings::STANDARD_RETENTION),
            Kept::Events => ("dedupe-retention", Settings::STANDARD_WINDOW),
        };
        let Some(check) = Check::named(check).filter(|_| self == Standard::Enforce && retention < least) else {
            return Ok(());
        };
        let (given, wanted) = (duration_text(retention), duration_text(least));
        Err(OperationError::BreaksStandard(vec![ShownFinding {
            rule: check.rule.id(),
            check: check.id,
            gate: check.gate.as_str(),
            field: field.to_owned(),
            wrong: format!("{} are kept for {given}, at least {wanted} are asked for", kept.name()),
            why: check.why,
            fix: format!("let {field} be at least {}, or leave it out", least.as_millis()),
            approval: None,
            breaks_a_must: true,
        }]))
    }

    fn admit(self, findings: Vec<ShownFinding>) -> Result<Vec<ShownFinding>, OperationError> {
        let is_refused = self == Standard::Enforce && findings.iter().any(|finding| finding.breaks_a_must);
        if is_refused { Err(OperationError::BreaksStandard(findings)) } else { Ok(findings) }
    }
}

/// What is kept so that duplicates are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Idempotency keys.
    Keys,
    /// Ids of events.
    Events,
}

impl Kept {
    fn name(self) -> &'static str {
        match self {
            Kept::Keys => "keys",
            Kept::Events => "event ids",
        }
    }
}

/// A submission to check, with its policy.
pub(crate) struct CheckedTask<'a> {
    pub(crate) request: &'a Request,
    /// Whether the caller gave an idempotency key.
    pub(crate) has_key: bool,
    /// The policy that it names.
    pub(crate) base: &'a Resolved,
    /// The policy with the task's changes.
    pub(crate) policy: &'a Resolved,
}

impl CheckedTask<'_> {
    fn changes(&self, today: Date) -> Vec<Finding> {
        let Some(overrides) = &self.request.overrides else { return Vec::new() };
        let before = rules::check_policy(&self.base.spec, None, today);
        let mut changed = self.policy.spec.clone();
        if overrides.context.is_some() {
            // An approval is for the policy's own context.
            changed.approval = None;
        }
        let mut findings = rules::check_policy(&changed, None, today);
        // A finding with another text is a new one: it breaks the rule by more, or by another context's limits.
        findings.retain(|finding| !before.contains(finding));
        findings
    }
}
