//! The linter for files: reads policies and services from TOML, YAML and JSON, checks them against the rules, and says
//! where in the file each finding is.
//!
//! | module | its job |
//! | --- | --- |
//! | `source` | a file's text, with lines and columns |
//! | `document` | one tree with positions for all languages |
//! | `content` | the policies and services of a document |
//! | `shape` | from a part of a document to a typed value, or to its errors |
//! | `file_policy` | the policies of a file, for commands that use them |
//! | `judge` | checks several files as one set: names, findings, problems |
//! | `verdict` | the result, with counts |
//! | `report` | the same findings for people, programs, code scanning and GitHub |
//! | `explain` | a page about a rule |
//!
//! Not here: the rules themselves ([`crate::rules`]), opening files and exit codes (`redrive`).

mod content;
pub mod document;
mod explain;
mod file_policy;
mod judge;
mod problem;
pub mod report;
mod shape;
mod source;
mod verdict;

pub use explain::{Topic, page};
pub use file_policy::{FilePolicy, policies};
pub use judge::judge;
pub use problem::Problem;
pub use source::{LineRange, Location, MAX_BYTES, Source};
pub use verdict::{FindingCounts, LocatedFinding, Subject, Verdict};
