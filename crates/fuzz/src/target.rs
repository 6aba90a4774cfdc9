//! Targets: what is fuzzed, and with which inputs.

use fastrand::Rng;

use crate::targets::{
    answer, batch, cursor, event_id, headers, policy, retry_after, rows, submission, task_id_prefix, trace_context,
};

/// One function that takes bytes from outside.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// A short description.
    pub what: &'static str,
    /// Runs the target with an input; panics if a property is broken.
    pub run: fn(&[u8]),
    /// Valid inputs, to be mutated.
    pub samples: fn() -> Vec<Vec<u8>>,
    /// Tokens of valid inputs, to be inserted anywhere.
    pub words: &'static [&'static str],
    /// Makes an input of the right structure with random values.
    pub generate: fn(&mut Rng) -> Vec<u8>,
    /// The most bytes of an input.
    pub max_bytes: usize,
}

/// Every target.
pub static TARGETS: &[Target] = &[
    submission::TARGET,
    batch::TARGET,
    headers::TARGET,
    retry_after::TARGET,
    policy::TARGET,
    cursor::TARGET,
    event_id::TARGET,
    rows::TARGET,
    answer::TARGET,
    trace_context::TARGET,
    task_id_prefix::TARGET,
];

/// The target with this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
