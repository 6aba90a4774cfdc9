//! Collects the faults of a submission.

use std::fmt::Display;

use crate::operation_error::OperationError;
use crate::wire::FieldFault;

/// The faults found so far.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<FieldFault>);

impl Faults {
    /// Adds a fault.
    pub(crate) fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldFault { field: field.into(), message: message.into() });
    }

    /// The value; if it is invalid, the fault is added.
    pub(crate) fn keep<T, E: Display>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(field, error.to_string())).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These faults, and then the others.
    pub(crate) fn and(mut self, others: Faults) -> Faults {
        self.0.extend(others.0);
        self
    }

    pub(crate) fn into_failure(self) -> OperationError {
        OperationError::Invalid(self.0)
    }

    pub(crate) fn into_failure_if_any(self) -> Option<OperationError> {
        (!self.is_empty()).then(|| self.into_failure())
    }

    /// The names of the fields at fault.
    #[cfg(test)]
    pub(crate) fn fields(&self) -> Vec<&str> {
        self.0.iter().map(|fault| fault.field.as_str()).collect()
    }
}
