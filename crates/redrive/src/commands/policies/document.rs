//! Policies as files say them.

use std::path::Path;

use anyhow::bail;
use redrive_standard::files::{FilePolicy, Problem};
use serde_json::Value;

use crate::commands::sources;
use crate::output::printable;

/// The policies of all files as a server is given them, or everything that is wrong with any of them. Whether their
/// values are possible is the server's to say: it knows its own bounds.
pub(super) fn read(files: &[impl AsRef<Path>]) -> anyhow::Result<Vec<Value>> {
    Ok(written(files)?.iter().map(FilePolicy::document).collect())
}

/// The policies of all files, or everything that is wrong with any of them.
pub(crate) fn written(files: &[impl AsRef<Path>]) -> anyhow::Result<Vec<FilePolicy>> {
    let (mut policies, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        let read = sources::read(file.as_ref()).map_err(|problem| vec![problem]);
        match read.and_then(|source| redrive_standard::files::policies(&source)) {
            Ok(read) => policies.extend(read),
            Err(wrong) => problems.extend(wrong),
        }
    }
    if problems.is_empty() { Ok(policies) } else { refuse(&problems) }
}

/// The error of files with these problems.
pub(super) fn refuse<T>(problems: &[Problem]) -> anyhow::Result<T> {
    let problems: String = problems.iter().map(|problem| format!("\n  {}", printable(&problem.to_string()))).collect();
    bail!("the files are not valid:{problems}")
}
