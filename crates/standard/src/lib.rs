//! The retry standard: its rules, and the linter that checks files against them.
//!
//! | module | its job |
//! | --- | --- |
//! | [`rules`] | the rules, the catalogue of checks, and the findings for a policy or a service |
//! | [`files`] | policies and services read from TOML, YAML and JSON, and findings reported with line and column |
//! | `nearest` | the known name that a misspelt one probably means |
//! | `printable` | text from a file, made safe to print |
//!
//! Pure: nothing here opens a file or reads a clock. Not here: what a policy does (`redrive_core::policy`), opening
//! files and exit codes (`redrive`), refusing policies and tasks (`redrive-server`).

#![forbid(unsafe_code)]

pub mod files;
mod nearest;
mod printable;
pub mod rules;

pub use nearest::nearest;
pub use printable::{printable, printable_json};
