//! Why a spec is not a valid policy: all problems at once, each with the name of the field.

use std::fmt;

/// The problems of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// At least one problem, in the order in which the fields were read.
    pub problems: Vec<FieldProblem>,
}

/// The problem of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The field's name on the wire, such as `maxDelayMs`.
    pub field: &'static str,
    /// What it must be, and what it was.
    pub message: String,
}

impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.message)
    }
}
