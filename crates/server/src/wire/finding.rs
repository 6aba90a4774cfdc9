//! What of the retry standard a document breaks, as it is shown.

use redrive_core::lint::{Finding, Permission};
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
    /// Its last day.
    pub until: String,
    /// Whether it still holds.
    pub holds: bool,
}

impl ShownFinding {
    /// The finding as it is shown.
    pub fn of(finding: &Finding) -> Self {
        let approval = finding.permission.as_ref().map(|permission| {
            let (by, until) = match permission {
                Permission::Granted { by, until } | Permission::Expired { by, until } => (by, until),
            };
            ShownPermission { by: by.clone(), until: until.to_string(), holds: finding.is_permitted() }
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
