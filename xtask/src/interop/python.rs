//! A scratch Python environment with one package, which brings a program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::binaries;

/// The environment's directory with `package` in exactly this `version`, or why there is none. The version is that of
/// its program `name`, too.
pub(super) fn environment(package: &str, name: &str, version: &str) -> Result<Result<PathBuf, &'static str>> {
    let directory = binaries::target_dir()?.join("interop").join(format!("{package}-{version}"));
    let is_there =
        || output(Command::new(program(&directory, name)).arg("--version")).is_some_and(|said| said.contains(version));
    if is_there() {
        return Ok(Ok(directory));
    }
    if output(Command::new("python3").args(["-c", "import venv, ensurepip"])).is_none() {
        return Ok(Err("python3 and its venv module are not installed"));
    }
    if output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory)).is_none() {
        return Ok(Err("python3 could not make a virtual environment"));
    }
    println!("installing {package} {version} into {}", directory.display());
    let mut pip = Command::new(program(&directory, "python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout", "20"]);
    output(pip.arg(format!("{package}=={version}")));
    Ok(if is_there() { Ok(directory) } else { Err("it could not be installed from PyPI") })
}

/// A program of the environment.
pub(super) fn program(environment: &Path, name: &str) -> PathBuf {
    environment.join("bin").join(name)
}

/// The command's output, if it succeeded.
fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
