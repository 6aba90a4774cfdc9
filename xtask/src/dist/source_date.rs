//! The date of a package: that of the sources, not of the build.

use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use super::tool;
use crate::binaries;

/// Seconds since 1970: `SOURCE_DATE_EPOCH`, or else the time of the last commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceDate(pub(super) u64);

impl SourceDate {
    pub(super) fn find() -> Result<Self> {
        let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(seconds) => seconds,
            Err(_) => {
                let mut git = Command::new("git");
                git.args(["log", "-1", "--format=%ct"]).current_dir(binaries::workspace_root());
                tool::line(&mut git)
                    .context("reading the time of the last commit; without git, set SOURCE_DATE_EPOCH")?
            }
        };
        Ok(SourceDate(seconds.parse().with_context(|| format!("{seconds:?} is not a number of seconds since 1970"))?))
    }

    pub(super) fn as_system_time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.0)
    }

    /// As Debian's changelogs have it: `Thu, 01 Jan 1970 00:00:00 +0000`.
    pub(super) fn as_mail_date(self) -> Result<String> {
        tool::line(
            Command::new("date").args(["--utc", "--rfc-email", &format!("--date=@{}", self.0)]).env("LC_ALL", "C"),
        )
    }
}
