//! A problem: something in a file could not be read. It is not a finding, because nothing was checked.

use std::collections::HashSet;
use std::fmt;

use crate::files::source::Location;

/// One thing that could not be read, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its location.
    pub location: Location,
    /// What is wrong, and what would be right.
    pub wrong: String,
}

impl Problem {
    /// A problem at this location.
    pub fn new(location: Location, wrong: impl Into<String>) -> Self {
        Problem { location, wrong: wrong.into() }
    }
}

/// The problems without duplicates.
pub(crate) fn distinct(problems: Vec<Problem>) -> Vec<Problem> {
    let mut said = HashSet::new();
    let key = |problem: &Problem| {
        let start = problem.location.span.as_ref().map(|span| span.start);
        (problem.location.source.name().to_owned(), start, problem.wrong.clone())
    };
    problems.into_iter().filter(|problem| said.insert(key(problem))).collect()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.wrong)
    }
}

impl std::error::Error for Problem {}
