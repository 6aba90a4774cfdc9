//! README.md, followed to the letter with the binary that users run, by the clock.
//!
//! The commands and the comparison of their output are those of the test of README.md (`redrive/tests/docs`). Here they
//! are run with the release build, and timed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::binaries::{self, Profile};

/// The test that follows README.md.
const TEST: &str = "the_commands_of_the_readme_work";

/// What the summary of a run with exactly one test begins with.
const PASSED: &str = "test result: ok. 1 passed; 0 failed; 0 ignored;";

/// How long it may take, without the build.
const AT_MOST: Duration = Duration::from_secs(600);

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Use the dev build instead of the release build
    #[arg(long)]
    debug_binary: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let binary = binaries::build(Profile::of(arguments.debug_binary), &["-p", "redrive"])?.join("redrive");
    let target_dir = binaries::target_dir()?;
    let test = |follows: bool| {
        let mut command = binaries::cargo();
        command.args(["test", "-q", "-p", "redrive", "--test", "docs", "--target-dir"]).arg(&target_dir);
        command.env("REDRIVE_TOUR_BINARY", &binary);
        if follows {
            command.args(["--", "--exact", TEST, "--nocapture"])
        } else {
            command.arg("--no-run")
        };
        command
    };
    // What the clock measures must not be a compiler.
    if !test(false).status().context("building the test")?.success() {
        bail!("the test of README.md could not be built");
    }
    let took = follow(test(true), AT_MOST).with_context(|| format!("following README.md with {}", binary.display()))?;
    println!("README.md was followed in {:.1} s, with {}", took.as_secs_f64(), binary.display());
    Ok(())
}

/// Runs the test, shows what it prints as it comes, and returns how long it took.
fn follow(mut command: Command, limit: Duration) -> Result<Duration> {
    let begun = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("the test could not be started")?;
    let output = BufReader::new(child.stdout.take().context("the test has no output")?);
    let (sender, lines) = channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut ran_it = false;
    loop {
        match lines.recv_timeout(limit.saturating_sub(begun.elapsed())) {
            Ok(line) => {
                println!("{line}");
                ran_it |= line.starts_with(PASSED);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                // Also the servers that the commands have started.
                redrive_testbed::kill_tree(child.id());
                child.wait().context("waiting for the killed test")?;
                bail!("it took longer than {limit:?} and was ended");
            }
        }
    }
    let status = child.wait().context("waiting for the test")?;
    let took = begun.elapsed();
    if !status.success() {
        bail!("it does not work as printed");
    }
    if !ran_it {
        bail!("no test is called {TEST}: nothing was followed");
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far more than a shell takes.
    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn only_a_run_of_exactly_one_passed_test_is_a_success() {
        let said = |passed: u8, ignored: u8, code: u8| {
            let counts = format!("{passed} passed; 0 failed; {ignored} ignored; 0 measured; 9 filtered out");
            follow(shell(&format!("echo 'test result: ok. {counts}; finished in 0.1s'; exit {code}")), LONG)
        };
        said(1, 0, 0).unwrap();
        for (passed, ignored) in [(0, 0), (0, 1), (2, 0), (10, 0)] {
            let error = said(passed, ignored, 0).unwrap_err().to_string();
            assert_eq!(error, format!("no test is called {TEST}: nothing was followed"), "{passed} passed");
        }
        assert_eq!(said(1, 0, 101).unwrap_err().to_string(), "it does not work as printed");
    }

    #[test]
    fn a_run_over_the_limit_ends_with_everything_that_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        // A process group of its own, as the shell of the test has one.
        let script = format!("setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; sleep 600; :' & wait", file.display());
        // Begun first: what it started is there before the limit is.
        let run = std::thread::spawn(move || follow(shell(&script), Duration::from_secs(3)));
        redrive_testbed::wait_until("it has begun", || file.exists());
        let pid = std::fs::read_to_string(file).unwrap();
        assert_eq!(run.join().unwrap().unwrap_err().to_string(), "it took longer than 3s and was ended");
        let stat = format!("/proc/{}/stat", pid.trim());
        let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        redrive_testbed::wait_until("what it started is gone", is_gone);
    }
}
