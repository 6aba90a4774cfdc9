//! Cache of filled stores, which are kept for the next run until the schema changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::fill::{Content, fill};
use crate::binaries::{scratch_dir, target_dir, workspace_root};

const STAMP: &str = "filled-with";
/// Ended tasks are cleaned after a week, so an old store would be emptied while it is measured.
const GOOD_FOR: Duration = Duration::from_secs(3 * 24 * 3600);

/// A directory with a store of this content, filled now or by an earlier run.
pub(super) fn filled(content: Content) -> Result<PathBuf> {
    let name = format!("bench/preload/{:?}-{}", content.kind, content.tasks).to_lowercase();
    let dir = target_dir()?.join(&name);
    let stamp = format!("{content:?}, schema {:016x}\n", schema_hash()?);
    if fs::read_to_string(dir.join(STAMP)).is_ok_and(|found| found == stamp) && age(&dir)? < GOOD_FOR {
        eprintln!("  already there: {}", dir.display());
        return Ok(dir);
    }
    let dir = scratch_dir(&name)?;
    let begin = Instant::now();
    fill(&dir, content)?;
    eprintln!("  filled {} in {:.0} s", dir.display(), begin.elapsed().as_secs_f64());
    fs::write(dir.join(STAMP), stamp)?;
    Ok(dir)
}

/// A copy of the store in `dir`, which a measurement may change.
pub(super) fn copy(dir: &Path, name: &str) -> Result<PathBuf> {
    let copy = scratch_dir(name)?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), copy.join(entry.file_name())).context("copying a filled store")?;
        }
    }
    Ok(copy)
}

/// The bytes of all files in `dir`.
pub(super) fn size(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

fn age(dir: &Path) -> Result<Duration> {
    Ok(fs::metadata(dir.join(STAMP))?.modified()?.elapsed().unwrap_or_default())
}

/// A hash of the schema's files: a store is filled again when the schema changes.
fn schema_hash() -> Result<u64> {
    let dir = workspace_root().join("crates/store-sqlite/src/schema");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&dir)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    let texts: Vec<Vec<u8>> = files.iter().map(fs::read).collect::<Result<_, _>>()?;
    Ok(crate::fingerprint::hash_of(texts))
}
