//! Why something in a file could not be read. A problem is not a finding: nothing was judged.

use std::collections::HashSet;
use std::fmt;

use crate::files::source::Spot;

/// One thing that could not be read, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub spot: Spot,
    /// What is wrong, and what would be right.
    pub wrong: String,
}

impl Problem {
    /// A problem at this spot.
    pub fn new(spot: Spot, wrong: impl Into<String>) -> Self {
        Problem { spot, wrong: wrong.into() }
    }
}

/// The problems without those that say the same of the same place.
pub(crate) fn distinct(problems: Vec<Problem>) -> Vec<Problem> {
    let mut said = HashSet::new();
    let key = |problem: &Problem| {
        let start = problem.spot.span.as_ref().map(|span| span.start);
        (problem.spot.source.name().to_owned(), start, problem.wrong.clone())
    };
    problems.into_iter().filter(|problem| said.insert(key(problem))).collect()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.spot, self.wrong)
    }
}

impl std::error::Error for Problem {}
