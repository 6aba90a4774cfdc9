//! The exit codes, and the error that carries one.

use std::fmt;
use std::io;
use std::process::ExitCode;

use bytes::Bytes;

use crate::output::{Output, error_notice};

/// How the program exits. Scripts rely on the codes: they never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; after a wait: delivered.
    Done = 0,
    /// The request failed or was refused.
    Failed = 1,
    /// The command line is not valid.
    Usage = 2,
    /// The task ended FAILED, EXHAUSTED or CANCELLED.
    NotDelivered = 3,
    /// The wait timed out before the task ended.
    WaitTimedOut = 4,
    /// There is no such task, policy, dependency or record.
    NotFound = 5,
    /// The server could not be reached.
    Unreachable = 6,
    /// The configuration cannot be used (EX_CONFIG of sysexits.h).
    BadConfiguration = 78,
    /// Interrupted: Ctrl-C while waiting, a second signal while stopping.
    Interrupted = 130,
}

/// The exit codes, as every `--help` lists them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    success; after a wait: delivered
  1    the request failed or was refused
  2    usage error
  3    the task ended FAILED, EXHAUSTED or CANCELLED
  4    the wait timed out
  5    no such task, policy, dependency or record
  6    the server could not be reached
  78   bad configuration
  130  interrupted";

/// The exit codes of `redrive lint`, which are those that linters have.
pub const LINT_EXIT_CODES: &str = "\
Exit codes (not those of the other commands):
  0    no finding at or above the gate of --fail-on
  1    findings
  2    a file, a part of one or the command line could not be read";

/// The exit codes of `redrive simulate`, which asks no server.
pub const SIMULATE_EXIT_CODES: &str = "\
Exit codes:
  0    simulated
  2    the options are not valid, or the page cannot be written
  130  interrupted";

impl Exit {
    /// `redrive lint` found something.
    pub const FINDINGS: Exit = Exit::Failed;
    /// `redrive lint` could not read something.
    pub const UNREAD: Exit = Exit::Usage;
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// An error with an exit code.
#[derive(Debug)]
pub struct ExitError {
    /// The code.
    pub exit: Exit,
    /// What went wrong, for people; may have several lines.
    pub message: String,
    /// The server's problem document, for programs.
    pub document: Option<Bytes>,
    /// Whether the server said that it cannot answer now.
    pub is_temporary: bool,
}

impl ExitError {
    /// An error with this exit code and message.
    pub fn of(exit: Exit, message: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(ExitError { exit, message: message.into(), document: None, is_temporary: false })
    }
}

/// This error with a further line, and otherwise as it is.
pub fn with_advice(error: anyhow::Error, advice: &str) -> anyhow::Error {
    match error.downcast::<ExitError>() {
        Ok(error) => anyhow::Error::new(ExitError { message: format!("{}\n{advice}", error.message), ..error }),
        Err(error) => error,
    }
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExitError {}

/// Prints the error to standard error and returns the exit code. With `--json`, the problem document of the server is
/// printed to standard output as well.
pub fn report(error: &anyhow::Error, wants_json: bool) -> Exit {
    if error.chain().any(is_broken_pipe) {
        // The reader closed the pipe (`| head`): that is not an error.
        return Exit::Done;
    }
    error_notice(format!("{error:#}"));
    let document = error.downcast_ref::<ExitError>().and_then(|failure| failure.document.as_ref());
    // A proxy's page is not JSON.
    let is_json = |document: &&Bytes| serde_json::from_slice::<serde::de::IgnoredAny>(document).is_ok();
    if let Some(document) = document.filter(is_json).filter(|_| wants_json)
        && let Err(error) = Output::standard().json(document)
    {
        error_notice(format!("{error:#}"));
    }
    exit_of(error)
}

/// The exit code of this error.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    error.downcast_ref::<ExitError>().map_or(Exit::Failed, |failure| failure.exit)
}

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
