//! The retry standard at the door: what a policy or a submission breaks, and whether that is refused.
//!
//! Not here: the rules (`redrive_standard::rules`).

use redrive_core::policy::Spec;
use redrive_core::{Date, Request, Timestamp};
use redrive_engine::policies::Resolved;
use redrive_standard::rules::{self, Finding, Step};

use crate::failure::Failure;
use crate::wire::ShownFinding;

/// What is done about a policy that breaks the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standard {
    /// Nothing: it is not even looked at.
    #[default]
    Off,
    /// It is accepted, and the answer says what it breaks.
    Warn,
    /// If it breaks a MUST it is refused; the answer says what it breaks.
    Enforce,
}

impl Standard {
    /// What a policy to register breaks, or the refusal.
    pub(crate) fn judge_policy(self, spec: &Spec, now: Timestamp) -> Result<Vec<ShownFinding>, Failure> {
        self.admit(self.findings(spec, now))
    }

    /// What a policy breaks today, where that is looked at.
    pub(crate) fn findings(self, spec: &Spec, now: Timestamp) -> Vec<ShownFinding> {
        match self {
            Standard::Off => Vec::new(),
            Standard::Warn | Standard::Enforce => {
                rules::check_policy(spec, None, Date::of(now)).iter().map(ShownFinding::of).collect()
            }
        }
    }

    /// What a task breaks: by its changes of the policy what that alone does not, and by having no key. Or the refusal.
    pub(crate) fn judge_task(self, task: &Submitting<'_>, now: Timestamp) -> Result<Vec<ShownFinding>, Failure> {
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

    fn admit(self, findings: Vec<ShownFinding>) -> Result<Vec<ShownFinding>, Failure> {
        let is_refused = self == Standard::Enforce && findings.iter().any(|finding| finding.breaks_a_must);
        if is_refused { Err(Failure::BreaksStandard(findings)) } else { Ok(findings) }
    }
}

/// A task that is about to be accepted.
pub(crate) struct Submitting<'a> {
    pub(crate) request: &'a Request,
    /// Whether the caller gave an idempotency key.
    pub(crate) has_key: bool,
    /// The policy that it names.
    pub(crate) base: &'a Resolved,
    /// The policy with the task's changes.
    pub(crate) policy: &'a Resolved,
}

impl Submitting<'_> {
    fn changes(&self, today: Date) -> Vec<Finding> {
        let Some(overrides) = &self.request.overrides else { return Vec::new() };
        let before = rules::check_policy(&self.base.spec, None, today);
        let mut changed = self.policy.spec.clone();
        if overrides.context.is_some() {
            // What was approved was approved for the policy's own context.
            changed.approval = None;
        }
        let mut findings = rules::check_policy(&changed, None, today);
        // What is broken in other words is broken otherwise: by more, or by another context's limits.
        findings.retain(|finding| !before.contains(finding));
        findings
    }
}
