//! `--out`: the page with plots. What there is to show is in the comparison; how it is drawn is not a matter of the
//! command line.

use std::path::Path;

use redrive_scenario::Comparison;
use redrive_scenario::occ::Point;

use super::wrong;

/// What a page is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Told<'a> {
    /// Policies and an outage.
    Outage(&'a Comparison),
    /// Contention for one row.
    Occ(&'a [Point]),
}

/// Writes the page.
pub(super) fn write(path: &Path, told: Told<'_>) -> anyhow::Result<()> {
    let what = match told {
        Told::Outage(comparison) => format!("{} stories", comparison.stories.len()),
        Told::Occ(points) => format!("{} points", points.len()),
    };
    Err(wrong(format!("cannot write {what} to {}: this build has no report pages", path.display())))
}
