//! The files that are named on a command line.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redrive_standard::files::{MAX_BYTES, Problem, Source};

/// The paths without those that lead to a file that was named before.
pub(crate) fn distinct(paths: &[PathBuf]) -> Vec<&Path> {
    let mut named = HashSet::new();
    // What leads nowhere is told apart by its name, and is a problem soon enough.
    let file = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    paths.iter().map(PathBuf::as_path).filter(|path| named.insert(file(path))).collect()
}

/// The file at `path`, `-` being standard input; no more of it than may be read.
pub(crate) fn read(path: &Path) -> Result<Arc<Source>, Problem> {
    let name = path.display().to_string();
    let bytes = if path == Path::new("-") { take(io::stdin().lock()) } else { File::open(path).and_then(take) };
    match bytes {
        Ok(bytes) => Source::try_new(name, bytes),
        Err(error) => Err(Source::unreadable(name, format!("the file cannot be read: {error}"))),
    }
}

/// At most one byte more than is allowed, so that too many are noticed.
fn take(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
