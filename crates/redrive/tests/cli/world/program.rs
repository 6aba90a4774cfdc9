//! The binary as a process.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use serde_json::Value;

use super::PATIENCE;

/// A command line of `redrive` in `directory`, with none of Redrive's and OpenTelemetry's variables set.
pub(crate) fn redrive(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.args(words);
    without_settings(command, directory)
}

/// A command line of `redrive` on a terminal of its own with as many columns.
pub(crate) fn redrive_on_terminal(directory: &Path, columns: u32, words: &str) -> Command {
    let shell = format!("stty cols {columns} rows 50; exec '{}' {words}", env!("CARGO_BIN_EXE_redrive"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &shell, "/dev/null"]).env("TERM", "xterm");
    without_settings(command, directory)
}

/// The command in `directory`, without the settings of the user who runs the tests.
fn without_settings(mut command: Command, directory: &Path) -> Command {
    let is_ours = |name: &OsStr| ["REDRIVE_", "OTEL_"].iter().any(|ours| name.to_string_lossy().starts_with(ours));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(name)) {
        command.env_remove(name);
    }
    command.current_dir(directory).env("NO_COLOR", "1").env_remove("COLUMNS").env("XDG_CONFIG_HOME", directory);
    command
}

/// The program with these arguments, in a process that may open `files` files at most.
pub(crate) fn redrive_with_few_files(directory: &Path, files: u32, words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files} && exec \"$@\""), "sh", env!("CARGO_BIN_EXE_redrive")]);
    command.args(words).current_dir(directory).env("NO_COLOR", "1");
    command
}

/// A running process whose output is read line by line.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    pub(crate) stdout: Lines,
    pub(crate) stderr: Lines,
}

/// One stream of a process's output.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Receiver<String>,
    seen: Vec<String>,
    reader: Option<JoinHandle<()>>,
}

/// What a process left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    pub(crate) fn start(mut command: Command) -> Program {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program::of(command.spawn().unwrap())
    }

    pub(crate) fn start_with_input(mut command: Command, input: &[u8]) -> Program {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Program::of(child)
    }

    fn of(mut child: Child) -> Program {
        let stdout = Lines::read(child.stdout.take().unwrap());
        let stderr = Lines::read(child.stderr.take().unwrap());
        Program { child, stdout, stderr }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Ends it on the spot, as when its machine is lost.
    pub(crate) fn kill(self) {
        self.signal("KILL");
        self.end();
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        let status = self.wait();
        Ended { code: status.code(), stdout: self.stdout.rest(), stderr: self.stderr.rest() }
    }

    fn wait(&mut self) -> ExitStatus {
        // The streams end with the process, so waiting for them is waiting for it, with a limit.
        self.stdout.read_all();
        self.stderr.read_all();
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Lines {
    fn read(stream: impl Read + Send + 'static) -> Lines {
        let (sender, lines) = channel();
        let reader = thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines { lines, seen: Vec::new(), reader: Some(reader) }
    }

    /// The first line from here on that has `part` in it.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
        panic!("no line with {part:?} came, but:\n{}", self.seen.join("\n"))
    }

    /// The first line with `part` in it that has come and was not read yet, if there is one.
    pub(crate) fn poll_for(&mut self, part: &str) -> Option<String> {
        while let Ok(line) = self.lines.try_recv() {
            self.seen.push(line.clone());
            if line.contains(part) {
                return Some(line);
            }
        }
        None
    }

    fn read_all(&mut self) {
        let until = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.seen.push(line);
        }
        let ended = self.reader.take().is_none_or(|reader| Instant::now() < until && reader.join().is_ok());
        assert!(ended, "the process did not end, but said:\n{}", self.seen.join("\n"));
    }

    fn rest(&mut self) -> String {
        self.seen.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Ended {
    /// The output as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// That it ended with this code.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// That all of these parts are in what it printed, errors included.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Ended {
        for part in parts {
            let said = self.stdout.contains(part) || self.stderr.contains(part);
            assert!(said, "no {part:?} in\n{}\nor\n{}", self.stdout, self.stderr);
        }
        self
    }
}
