//! A `bash` that runs one script after the other and keeps its variables in between.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use tempfile::TempDir;

use super::PATIENCE;

const PRELUDE: &str = include_str!("prelude.sh");
/// The variable with another binary than the one that was built with the tests: `cargo xtask tour` follows README.md with the
/// release build, and wants to know how long each block takes.
const TOUR_BINARY: &str = "REDRIVE_TOUR_BINARY";

/// Whether each block is timed.
pub(crate) fn is_tour() -> bool {
    std::env::var_os(TOUR_BINARY).is_some()
}

/// The line after a script's output, followed by its exit code.
const END: &str = "----- end of a script:";
/// `psql` stops at the first error, as a reader would.
const PSQLRC: &str = "\\set ON_ERROR_STOP on\n\\set QUIET on\n";
/// No progress bar, and no proxy: everything is on this machine.
const CURLRC: &str = "silent\nshow-error\nnoproxy = \"*\"\n";

/// The shell, the directory that it works in, and its own files.
pub(crate) struct Shell {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    pub(crate) directory: PathBuf,
    own: TempDir,
    scripts: usize,
    _temporary: TempDir,
}

/// Whether a script continues after a command that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    Stop,
    Continue,
}

impl Shell {
    /// A shell in an empty directory, with the binary under test as `redrive`.
    pub(crate) fn start() -> Shell {
        let (temporary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = own.path();
        std::fs::create_dir(files.join("bin")).unwrap();
        let binary = std::env::var_os(TOUR_BINARY).unwrap_or_else(|| env!("CARGO_BIN_EXE_redrive").into());
        std::os::unix::fs::symlink(binary, files.join("bin/redrive")).unwrap();
        for (name, text) in [("prelude.sh", PRELUDE), ("psqlrc", PSQLRC), (".curlrc", CURLRC)] {
            std::fs::write(files.join(name), text).unwrap();
        }
        let mut command = Command::new("bash");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDRIVE_")) {
            command.env_remove(name);
        }
        let path = std::env::var("PATH").unwrap();
        command.args(["--noprofile", "--norc"]).current_dir(temporary.path());
        command.env("PATH", format!("{}:{path}", files.join("bin").display()));
        command.env("HOME", files).env("LOGS", files).env("PSQLRC", files.join("psqlrc"));
        command.env("NO_COLOR", "1").env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).process_group(0);
        let mut process = command.spawn().expect("bash can be started");
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let directory = temporary.path().to_owned();
        let mut shell =
            Shell { input: process.stdin.take(), process, lines, directory, own, scripts: 0, _temporary: temporary };
        shell.run(PRELUDE, OnError::Continue).unwrap();
        shell
    }

    /// Runs a script, and returns what it printed, errors included; an error if a command failed that may not.
    pub(crate) fn run(&mut self, script: &str, on_error: OnError) -> Result<String, String> {
        let file = self.script(script);
        let option = if on_error == OnError::Stop { "set -e" } else { "set +e" };
        let end = format!("printf '\\n{END} %s\\n' $?");
        self.write(&format!("{option}; source {} </dev/null 2>&1; {end}", file.display()));
        let until = Instant::now() + PATIENCE;
        let mut printed: Vec<String> = Vec::new();
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with(END) => break,
                Ok(line) => printed.push(line),
                Err(_) => return Err(format!("it failed, or took too long, and printed:\n{}", printed.join("\n"))),
            }
        }
        Ok(printed.join("\n").trim_end().to_owned())
    }

    /// Starts a script in the background, with what it prints in a file.
    pub(crate) fn begin(&mut self, script: &str) -> PathBuf {
        let (file, printed) = (self.script(script), self.own.path().join("printed"));
        std::fs::write(&printed, "").unwrap();
        let (script, output) = (file.display(), printed.display());
        self.write(&format!("source {script} </dev/null >{output} 2>&1 & running+=($!)"));
        printed
    }

    fn script(&mut self, text: &str) -> PathBuf {
        self.scripts += 1;
        let file = self.own.path().join(format!("script-{}.sh", self.scripts));
        std::fs::write(&file, text).unwrap();
        file
    }

    fn write(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Puts a file into the directory.
    pub(crate) fn put(&self, name: &str, content: &[u8]) {
        let path = self.directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // With everything that it has started. If this process is killed instead, the shell comes to the end of its input
        // and does the same.
        let group = format!("-{}", self.process.id());
        Command::new("kill").args(["-KILL", "--", &group]).status().ok();
        self.process.wait().ok();
    }
}
