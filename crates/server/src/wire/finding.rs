//! What of the retry standard a document breaks, as it is shown.

use redrive_core::lint::{Finding, Gate, Permission};
use schemars::JsonSchema;
use serde::Serialize;

/// A rule of the retry standard that the document breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Finding")]
pub struct ShownFinding {
    /// The rule's number.
    #[schemars(example = &"R-1")]
    pub rule: &'static str,
    /// What was looked for: stable.
    #[schemars(example = &"fixed-interval")]
    pub check: &'static str,
    /// What the standard does about it: `merge` and `deploy` are blocked, `approval` is needed, or it is `advice`.
    pub gate: &'static str,
    /// Where it is.
    #[schemars(example = &"backoff")]
    pub field: String,
    /// What is wrong.
    pub wrong: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do about it.
    pub fix: String,
    /// Who has approved it, and until when; left out if nobody has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ShownPermission>,
}

/// An approval of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FindingApproval")]
pub struct ShownPermission {
    /// Who gave it.
    pub by: String,
    /// Its last day; left out where it is for fewer attempts anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// For how many attempts it is, where that is too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Whether it still holds.
    pub holds: bool,
}

impl ShownFinding {
    /// Whether it breaks a MUST, and nobody has approved that.
    pub fn breaks_a_must(&self) -> bool {
        self.gate != Gate::Advice.as_str() && !self.approval.as_ref().is_some_and(|approval| approval.holds)
    }

    /// The finding as it is shown.
    pub fn of(finding: &Finding) -> Self {
        let approval = finding.permission.as_ref().map(|permission| {
            let (by, until, max_attempts) = match permission {
                Permission::Granted { by, until } | Permission::Expired { by, until } => (by, Some(until), None),
                Permission::Exceeded { by, max_attempts } => (by, None, Some(*max_attempts)),
            };
            let until = until.map(ToString::to_string);
            ShownPermission { by: by.clone(), until, max_attempts, holds: finding.is_permitted() }
        });
        ShownFinding {
            rule: finding.check.rule.id(),
            check: finding.check.id,
            gate: finding.check.gate.as_str(),
            field: finding.path(),
            wrong: finding.wrong.clone(),
            why: finding.check.why,
            fix: finding.fix.clone(),
            approval,
        }
    }
}
