//! The steps of the siege, one file for each.

mod bad_rows;
mod few_files;
mod full_disk;
mod hostile_targets;
mod http2_flood;
mod huge_names;
mod idle_connections;
mod lost_directory;
mod unread_pages;
mod withheld_batches;

use anyhow::Result;

use super::field::Field;
use super::outcome::Outcome;

/// A step.
pub struct Step {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Runs the step.
    pub run: fn(&Field) -> Result<Outcome>,
}

/// All steps, in their order.
pub const STEPS: &[Step] = &[
    Step {
        name: "unread-pages",
        what: "callers ask for the largest pages and bodies, also many at once, and read nothing or a byte at a time",
        run: unread_pages::run,
    },
    Step {
        name: "withheld-batches",
        what: "callers send batches of 32 MiB and of 60 KiB without their last byte, whole or in chunks of one byte",
        run: withheld_batches::run,
    },
    Step {
        name: "http2-flood",
        what: "HTTP/2 connections with many large streams, unread ones, resets, endless heads, pings and settings",
        run: http2_flood::run,
    },
    Step {
        name: "huge-names",
        what: "names of 30 MB, deep nesting, huge heads, and heads that never end",
        run: huge_names::run,
    },
    Step {
        name: "idle-connections",
        what: "more idle connections than there are places, heads of one byte at a time, connections that come and go",
        run: idle_connections::run,
    },
    Step {
        name: "few-files",
        what: "256 open files in all, more connections than that, and tasks to deliver",
        run: few_files::run,
    },
    Step {
        name: "endless-1xx",
        what: "targets that send 1xx answers, header bytes, header fields or a body without end",
        run: hostile_targets::run,
    },
    Step { name: "full-disk", what: "no space left on the disk, then space again", run: full_disk::run },
    Step { name: "bad-rows", what: "rows of the running service's database are damaged", run: bad_rows::run },
    Step {
        name: "lost-directory",
        what: "the data directory is removed under the running service",
        run: lost_directory::run,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn steps_have_names_of_their_own() {
        let names: BTreeSet<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
    }
}
