//! Findings of the retry standard, as the API shows them.

use redrive_standard::rules::{Finding, Permission};
use schemars::JsonSchema;
use serde::Serialize;

/// A rule of the retry standard that the document breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Finding")]
pub struct ShownFinding {
    /// The rule's id.
    #[schemars(example = &"R-1")]
    pub rule: &'static str,
    /// The name of the check. It does not change.
    #[schemars(example = &"fixed-interval")]
    pub check: &'static str,
    /// What the standard demands: `merge` and `deploy` are blocked, `approval` is needed, or it is `advice`.
    pub gate: &'static str,
    /// The field that breaks the rule.
    #[schemars(example = &"backoff")]
    pub field: String,
    /// What is wrong.
    pub wrong: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do about it.
    pub fix: String,
    /// The approval of this finding; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ShownPermission>,
    /// Whether it breaks a MUST without an approval.
    #[serde(skip)]
    pub breaks_a_must: bool,
}

/// An approval of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FindingApproval")]
pub struct ShownPermission {
    /// Who gave it.
    pub by: String,
    /// Its last day.
    pub until: String,
    /// The number of attempts that it allows.
    pub max_attempts: u32,
    /// Whether it covers the finding: `granted`, `expired`, or `exceeded` if it is for fewer attempts.
    pub state: &'static str,
}

impl ShownFinding {
    /// The finding as it is shown.
    pub fn of(finding: &Finding) -> Self {
        let approval = finding.permission.as_ref().map(|permission| {
            let Permission { by, until, max_attempts, state } = permission.clone();
            ShownPermission { by, until: until.to_string(), max_attempts, state: state.as_str() }
        });
        let why_not = finding.permission.as_ref().and_then(Permission::why_not);
        ShownFinding {
            rule: finding.check.rule.id(),
            check: finding.check.id,
            gate: finding.check.gate.as_str(),
            field: finding.path(),
            wrong: why_not.map_or_else(|| finding.wrong.clone(), |why_not| format!("{}; {why_not}", finding.wrong)),
            why: finding.check.why,
            fix: finding.fix.clone(),
            approval,
            breaks_a_must: finding.breaks_a_must(),
        }
    }
}
