//! A finding: one rule that one value breaks.

use std::fmt::Write;

use redrive_core::date::Date;

use super::check::{Check, Gate};

/// One rule that one value breaks: the field, what is wrong, and how to fix it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The check, with its rule, its gate and why it matters.
    pub check: &'static Check,
    /// The path from the policy or the service. A missing field is named as if it were there.
    pub at: Vec<Step>,
    /// What is wrong, in a sentence without a full stop.
    pub wrong: String,
    /// What to do about it, in a sentence without a full stop.
    pub fix: String,
    /// The approval, for rules that allow one.
    pub permission: Option<Permission>,
}

/// One step on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Into a field of an object.
    Field(&'static str),
    /// To an entry of a list, from 0.
    Index(usize),
    /// To the entry of a list that is written so.
    Item(String),
}

/// An approval that belongs to a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// Who gave it.
    pub by: String,
    /// Its last day.
    pub until: Date,
    /// The number of attempts that it allows.
    pub max_attempts: u32,
    /// Whether it covers the finding.
    pub state: PermissionState,
}

/// Whether an approval covers its finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionState {
    /// The approval covers the finding, which then blocks nothing.
    Granted,
    /// The approval has expired: the finding counts.
    Expired,
    /// The approval is for fewer attempts: the finding counts.
    Exceeded,
}

impl PermissionState {
    /// Its name for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            PermissionState::Granted => "granted",
            PermissionState::Expired => "expired",
            PermissionState::Exceeded => "exceeded",
        }
    }
}

impl Permission {
    /// Why it does not cover the finding, in a sentence without a full stop; nothing if it does.
    pub fn why_not(&self) -> Option<String> {
        let Permission { by, until, max_attempts, state } = self;
        match state {
            PermissionState::Granted => None,
            PermissionState::Expired => Some(format!("{by}'s approval ended on {until}")),
            PermissionState::Exceeded => Some(format!("{by}'s approval is for {max_attempts} attempts")),
        }
    }
}

impl Finding {
    pub(super) fn new(
        check: &'static Check,
        at: impl Into<Vec<Step>>,
        wrong: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Finding { check, at: at.into(), wrong: wrong.into(), fix: fix.into(), permission: None }
    }

    /// Whether an approval covers it.
    pub fn is_permitted(&self) -> bool {
        self.permission.as_ref().is_some_and(|permission| permission.state == PermissionState::Granted)
    }

    /// Whether it breaks a MUST without an approval.
    pub fn breaks_a_must(&self) -> bool {
        self.check.gate > Gate::Advice && !self.is_permitted()
    }

    /// Where it is, as people write paths: `dependencies[0].retryBudget.ratio`; `[=404]` is the entry that is written
    /// so.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.at {
            // Writing to a string does not fail.
            match step {
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => write!(path, ".{name}").unwrap_or_default(),
                Step::Index(at) => write!(path, "[{at}]").unwrap_or_default(),
                Step::Item(text) => write!(path, "[={text}]").unwrap_or_default(),
            }
        }
        path
    }

    /// The same finding of something that is a part of something else.
    #[must_use]
    pub fn within(mut self, outer: &[Step]) -> Self {
        self.at.splice(0..0, outer.iter().cloned());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_people_write_it() {
        let at = vec![Step::Field("dependencies"), Step::Index(2), Step::Field("codes"), Step::Item("404".into())];
        let finding = Finding::new(Check::ALL[0], at, "", "");
        assert_eq!(finding.path(), "dependencies[2].codes[=404]");
        let outer = [Step::Field("services"), Step::Index(0)];
        assert_eq!(finding.within(&outer).path(), "services[0].dependencies[2].codes[=404]");
        assert_eq!(Finding::new(Check::ALL[0], [], "", "").path(), "");
    }
}
