//! Why something in a file could not be read. A problem is not a finding: nothing was judged.

use std::fmt;

use crate::source::Spot;

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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.spot, self.wrong)
    }
}

impl std::error::Error for Problem {}
