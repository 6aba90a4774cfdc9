//! Policies as files say them.

use std::path::Path;

use anyhow::bail;
use serde_json::Value;

use crate::commands::sources;

/// The policies of all files, or everything that is wrong with any of them.
pub(crate) fn read(files: &[impl AsRef<Path>]) -> anyhow::Result<Vec<Value>> {
    let (mut policies, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        let read = sources::read(file.as_ref()).map_err(|problem| vec![problem]);
        match read.and_then(|source| redrive_lint::policies(&source)) {
            Ok(read) => policies.extend(read),
            Err(wrong) => problems.extend(wrong),
        }
    }
    if problems.is_empty() {
        return Ok(policies);
    }
    let problems: String = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    bail!("cannot use what the files say:{problems}")
}
