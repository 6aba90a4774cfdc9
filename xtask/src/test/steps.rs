//! One step of the tests: printed before, timed after, named when it fails.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::binaries;

/// A command with its command line as a name.
pub(super) struct Step {
    name: String,
    command: Option<Command>,
}

impl Step {
    /// A cargo command at the root of the workspace.
    pub(super) fn cargo(arguments: &[&str]) -> Self {
        let mut command = binaries::cargo();
        command.args(arguments);
        Step { name: format!("cargo {}", arguments.join(" ")), command: Some(command) }
    }

    /// A program.
    pub(super) fn program(words: &[&str]) -> Self {
        let mut command = Command::new(words.first().unwrap_or(&"true"));
        command.args(words.iter().skip(1));
        Step { name: words.join(" "), command: Some(command) }
    }

    /// A step that runs inside this process.
    pub(super) fn ours(name: &str) -> Self {
        Step { name: format!("cargo {name}"), command: None }
    }

    /// Sets an environment variable of the step.
    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        if let Some(command) = &mut self.command {
            command.env(name, value);
        }
        self
    }

    /// Gives the step another name, where the command line is not useful.
    pub(super) fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Runs the command.
    pub(super) fn run(mut self) -> Result<()> {
        let command = self.command.take();
        self.run_with(|| {
            let Some(mut command) = command else { return Ok(()) };
            let status = command.stdin(Stdio::null()).status().context("it could not be started")?;
            if !status.success() {
                bail!("it ended with {status}");
            }
            Ok(())
        })
    }

    /// Runs `work` under this step's name.
    pub(super) fn run_with(self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("──▶ {}", self.name);
        let started = Instant::now();
        let outcome = work();
        let seconds = started.elapsed().as_secs_f64();
        println!("──◀ {} {seconds:.1} s", if outcome.is_ok() { "passed in" } else { "FAILED after" });
        outcome.with_context(|| format!("this step failed: {}", self.name))
    }
}

/// Whether a doc comment in the crates has a code block: only then is the doc-test step needed.
pub(super) fn doc_tests_exist() -> Result<bool> {
    let mut dirs = vec![binaries::workspace_root().join("crates")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("listing {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && has_doc_test(&path)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn has_doc_test(path: &Path) -> Result<bool> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let mut blocks = text.lines().map(str::trim_start).filter_map(|line| {
        let line = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        line.trim_start().strip_prefix("```")
    });
    // A block of text or of another language is no test.
    Ok(blocks.any(|language| matches!(language, "rust" | "no_run" | "should_panic") || language.is_empty()))
}
