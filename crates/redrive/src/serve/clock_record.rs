//! Detects that the machine's clock was changed between two starts with the same data directory.
//!
//! The record is a small file beside the embedded store. Within one boot of the machine, the difference between its
//! wall clock and the time since boot is constant unless the clock is set, so a step is seen exactly, however long the
//! service was down. After another boot only a clock that is behind the last known moment is noticed.
//!
//! A shared store needs no record: its nodes work on the database's time.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use redrive_core::{TaskId, Timestamp};
use redrive_engine::clock::{Clock, SystemClock};
use serde::{Deserialize, Serialize};

use crate::output::duration;

const FILE: &str = "clock.json";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Smaller changes are ignored.
const SMALL: Duration = Duration::from_secs(1);

/// What the clocks showed when a service started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    /// Names this boot of the machine; empty if the machine does not say.
    boot_id: String,
    wall_ms: u64,
    since_boot_ms: u64,
}

/// A change of the machine's clock since the last start.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Forward(Duration),
    Back(Duration),
    /// It is behind a moment that was seen before by at least this much.
    BehindBy(Duration),
}

/// Logs it if the machine's clock was set since the last start over this directory, and records the present one.
pub(super) fn check(data_dir: &Path, clock: &SystemClock, newest: Option<TaskId>) {
    if let Err(error) = compare_and_record(data_dir, clock, newest) {
        tracing::warn!(%error, "cannot use the clock record; a change of the machine's clock is not noticed");
    }
}

fn compare_and_record(data_dir: &Path, clock: &SystemClock, newest: Option<TaskId>) -> anyhow::Result<()> {
    let path = data_dir.join(FILE);
    let now = Record {
        boot_id: fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned(),
        wall_ms: clock.wall().as_millis(),
        since_boot_ms: u64::try_from(redrive_engine::clock::since_boot().as_millis()).unwrap_or_default(),
    };
    let before = read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    match step(before.as_ref(), &now, newest.map(TaskId::made_at)) {
        Some(Step::Forward(by)) => tracing::warn!(
            by = duration(by),
            "the machine's clock was set forward since the last start: tasks may be sent early or miss their deadline; \
             if the clock is wrong, stop this process, correct the clock and replay the dead letters"
        ),
        Some(Step::Back(by)) => tracing::warn!(
            by = duration(by),
            "the machine's clock was set back since the last start: waiting tasks are sent later by that much"
        ),
        Some(Step::BehindBy(by)) => tracing::warn!(
            by = duration(by),
            "the machine's clock is behind the newest time in the store: waiting tasks are sent later by that much"
        ),
        None => {}
    }
    write(&path, &now).with_context(|| format!("cannot write {}", path.display()))
}

fn step(before: Option<&Record>, now: &Record, newest: Option<Timestamp>) -> Option<Step> {
    if let Some(before) = before.filter(|before| before.boot_id == now.boot_id && !now.boot_id.is_empty()) {
        let offset = |record: &Record| i128::from(record.wall_ms) - i128::from(record.since_boot_ms);
        let by = offset(now) - offset(before);
        let size = Duration::from_millis(u64::try_from(by.unsigned_abs()).unwrap_or(u64::MAX));
        return (size > SMALL).then_some(if by > 0 { Step::Forward(size) } else { Step::Back(size) });
    }
    let known = newest.max(before.map(|before| Timestamp::from_millis(before.wall_ms)))?;
    let behind = known.since(Timestamp::from_millis(now.wall_ms));
    (behind > SMALL).then_some(Step::BehindBy(behind))
}

/// The last record; a damaged one is ignored.
fn read(path: &Path) -> std::io::Result<Option<Record>> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the record atomically: a crash leaves the old or the new one.
fn write(path: &Path, record: &Record) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&serde_json::to_vec(record)?)?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn record(boot_id: &str, wall_ms: u64, since_boot_ms: u64) -> Record {
        Record { boot_id: boot_id.into(), wall_ms, since_boot_ms }
    }

    #[test]
    fn a_step_within_one_boot_is_seen_exactly_however_long_the_service_was_down() {
        let before = record("a", 1_000 * HOUR_MS, HOUR_MS);
        for (wall, since_boot, expected) in [
            (1_009, 10, None),
            (1_010, 10, Some(Step::Forward(Duration::from_secs(3_600)))),
            (1_008, 10, Some(Step::Back(Duration::from_secs(3_600)))),
        ] {
            let now = record("a", wall * HOUR_MS, since_boot * HOUR_MS);
            assert_eq!(step(Some(&before), &now, None), expected, "{wall}");
        }
        assert_eq!(step(Some(&before), &record("a", 1_009 * HOUR_MS + 999, 10 * HOUR_MS), None), None);
    }

    #[test]
    fn after_another_boot_a_clock_that_is_behind_is_noticed() {
        let before = record("a", 1_000 * HOUR_MS, HOUR_MS);
        let behind = Some(Step::BehindBy(Duration::from_secs(3_600)));
        assert_eq!(step(Some(&before), &record("b", 1_001 * HOUR_MS, 0), None), None);
        assert_eq!(step(Some(&before), &record("b", 999 * HOUR_MS, 0), None), behind);
        let newest = Some(Timestamp::from_millis(1_002 * HOUR_MS));
        assert_eq!(step(Some(&before), &record("b", 1_001 * HOUR_MS, 0), newest), behind);
        assert_eq!(step(None, &record("b", 1_001 * HOUR_MS, 0), newest), behind);
        assert_eq!(step(None, &record("b", 1_001 * HOUR_MS, 0), None), None);
        // Machines that do not name their boots are different ones each time.
        assert_eq!(step(Some(&record("", 1_000 * HOUR_MS, 0)), &record("", 1_001 * HOUR_MS, 0), None), None);
    }
}
