//! Runs a program and returns what it printed.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// What the program printed. The error names the program, says how it ended and what it printed on standard error.
pub(super) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {program} (on Debian: apt-get install binutils dpkg-dev)"))?;
    if !output.status.success() {
        bail!("{program} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// The same, as one line of text.
pub(super) fn line(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8(output(command)?).context("reading what a program printed")?.trim().to_owned())
}

/// The bytes of a file, compressed by gzip: without the file's name and time, so that the result is the same every time.
pub(super) fn gzip(file: &Path) -> Result<Vec<u8>> {
    output(Command::new("gzip").arg("-9nc").arg(file))
}
