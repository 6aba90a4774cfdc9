//! The linter for files: reads policies and services from TOML, YAML and JSON, checks them against the rules, and says where in
//! the file each finding is.
//!
//! | module | its job |
//! | --- | --- |
//! | `source` | a file's text, and the lines and columns in it |
//! | `document` | one tree with positions, whichever language it was written in |
//! | `content` | the policies and services of a document |
//! | `shape` | from a part of a document to a typed value, and everything that is wrong with it |
//! | `written` | the policies of a file, for those who use them |
//! | `judge` | several files as one set: names, findings, problems |
//! | `verdict` | what came of it, counted |
//! | `report` | the same findings for people, programs, code scanning and GitHub |
//! | `explain` | a page about a rule |
//!
//! Not here: the rules themselves ([`crate::rules`]), opening files and exit codes (`redrive`).

mod content;
pub mod document;
mod explain;
mod judge;
mod problem;
pub mod report;
mod shape;
mod source;
mod verdict;
mod written;

pub use explain::{Topic, page};
pub use judge::judge;
pub use problem::Problem;
pub use source::{MAX_BYTES, Place, Source, Spot};
pub use verdict::{Found, Subject, Tally, Verdict};
pub use written::{Written, policies};
