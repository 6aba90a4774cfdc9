//! The systemd unit, as the package installs it.

use anyhow::{Result, bail};

/// Lines of `deploy/redrive.service`, and what the package has instead: its own path, and the user that it makes, so that
/// an administrator can back up and read the data directory without the service.
const CHANGES: &[(&str, &str)] = &[
    ("ExecStart=/usr/local/bin/redrive serve", "ExecStart=/usr/bin/redrive serve"),
    ("DynamicUser=yes", "User=redrive\nGroup=redrive"),
];

/// The text of the unit with those lines replaced.
pub(super) fn for_the_package(unit: &str) -> Result<String> {
    let mut text = unit.to_owned();
    for (line, replacement) in CHANGES {
        if unit.lines().filter(|known| known == line).count() != 1 {
            bail!("deploy/redrive.service should have the line {line:?} once");
        }
        text = text.replace(&format!("{line}\n"), &format!("{replacement}\n"));
    }
    Ok(text)
}
