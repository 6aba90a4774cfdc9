//! Whole files: judged one by one and as sets, and printed in every form.

#![allow(clippy::unwrap_used, reason = "in a test, what is not there is a failure")]

mod fixtures;
mod formats;
mod mistakes;
mod sarif;
mod sets;
mod snapshot;
mod standard;

/// The day on which all of these files are judged.
const TODAY: &str = "2026-11-16";
