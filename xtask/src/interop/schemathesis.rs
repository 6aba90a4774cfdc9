//! `cargo xtask interop schemathesis`: valid and invalid requests generated from `/openapi.json`, with checks of the
//! answers.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::{namespace, python};
use crate::binaries::{self, Profile};
use crate::process::{self, Process};

const PACKAGE: &str = "schemathesis";
/// Pinned: another version finds other problems, so an upgrade is a change of its own.
const VERSION: &str = "4.32.5";

/// The checks of the answers beyond its own defaults, each with its reason.
const CONFIGURATION: &str = include_str!("schemathesis.toml");

/// DELETE of a task cancels it: the task and its attempts can still be read, and a dead letter can be replayed.
const EXCLUDED: &str = "use_after_free";

/// The operation whose answer does not end: events are followed until either side closes the connection.
const ENDLESS: &str = "followEvents";

/// The duration of one round. Each has a seed and a service of its own.
const ROUND: Duration = Duration::from_secs(120);
/// How much longer it may take to finish its current work.
const GRACE: Duration = Duration::from_secs(300);
/// The most rounds: with less than a hundredth of the usual number of cases, something is wrong.
const MOST_ROUNDS: u64 = 12;
/// The most bytes of a failed report that are printed.
const SHOWN: usize = 12_000;

/// The options of `cargo xtask interop schemathesis`.
#[derive(Debug, Args)]
pub struct Options {
    /// The least number of cases
    #[arg(long, default_value_t = 20_000)]
    cases: u64,
    /// The seed of the first round; further rounds count up from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Test the dev build instead of the release build
    #[arg(long)]
    debug_binary: bool,
}

/// The arguments inside the namespace.
#[derive(Debug, Args)]
pub struct Inside {
    #[arg(long)]
    binary: PathBuf,
    #[arg(long)]
    environment: PathBuf,
    #[arg(long)]
    scratch: PathBuf,
    #[arg(long)]
    cases: u64,
    #[arg(long)]
    seed: u64,
}

/// Builds and installs what is needed, and continues inside a namespace.
pub fn run(options: &Options) -> Result<()> {
    let Some(mut unshared) = namespace::command() else {
        println!("skipped: this needs `unshare --net` and `ip`, so that nothing generated can leave the machine");
        return Ok(());
    };
    let environment = match python::environment(PACKAGE, PACKAGE, VERSION)? {
        Ok(environment) => environment,
        Err(why) => {
            println!("skipped: {PACKAGE} {VERSION}: {why}");
            return Ok(());
        }
    };
    let profile = if options.debug_binary { Profile::Dev } else { Profile::Release };
    let binary = binaries::build(profile, &["-p", "redrive"])?.join("redrive");
    let scratch = binaries::scratch_dir("interop-schemathesis")?;
    let this = std::env::current_exe().context("finding this program's own file")?;
    unshared.arg(this).args(["interop", "schemathesis-inside"]);
    unshared.arg("--binary").arg(binary).arg("--environment").arg(environment).arg("--scratch").arg(scratch);
    unshared.args(["--cases", &options.cases.to_string(), "--seed", &options.seed.to_string()]);
    let status = unshared.status().context("starting unshare")?;
    if !status.success() {
        bail!("{PACKAGE} found something, or could not be run; see above");
    }
    Ok(())
}

/// Starts the service and runs Schemathesis against it until there were enough cases.
pub fn run_inside(inside: &Inside) -> Result<()> {
    namespace::enter()?;
    process::guard((ROUND + GRACE) * u32::try_from(MOST_ROUNDS)?)?;
    let configuration = inside.scratch.join("schemathesis.toml");
    std::fs::write(&configuration, CONFIGURATION).context("writing the configuration")?;
    let started = Instant::now();
    let mut cases = 0;
    for round in 0..MOST_ROUNDS {
        let seed = inside.seed + round;
        // A new one each time: with the tasks of all rounds in it, every list would take longer to check.
        let server = start(inside, seed)?;
        let address = server.wait_for_address()?;
        let mut command = Command::new(python::program(&inside.environment, PACKAGE));
        command.current_dir(&inside.scratch).arg("--no-color").arg("--config-file").arg(&configuration);
        command.arg("run").arg(format!("http://{address}/openapi.json"));
        command.args([
            "--checks",
            "all",
            "--exclude-checks",
            EXCLUDED,
            "--exclude-operation-id",
            ENDLESS,
            "--continue-on-failure",
            "--request-timeout",
            "40",
        ]);
        command.args(["--seed", &seed.to_string(), "--max-time", &ROUND.as_secs().to_string()]);
        let (status, report) = run_to_end(command, &inside.scratch.join(format!("report-{seed}.txt")))?;
        let generated = generated(&report).unwrap_or(0);
        cases += generated;
        println!("seed {seed}: {generated} cases, {cases} in all, {:.0} s", started.elapsed().as_secs_f64());
        if !status.success() || generated == 0 {
            println!("{}", tail(&report));
            bail!("{PACKAGE} {VERSION} with seed {seed} ended with {status}");
        }
        judge_server(&server)?;
        if cases >= inside.cases {
            println!("{cases} cases, all checks but {EXCLUDED}, nothing to report");
            return Ok(());
        }
    }
    bail!("{MOST_ROUNDS} rounds made only {cases} cases of {}", inside.cases)
}

/// Returns the command's status and output. The command ends with this process.
fn run_to_end(command: Command, report: &Path) -> Result<(ExitStatus, String)> {
    let process = Process::spawn(command, report)?;
    loop {
        if let Some(status) = process.ended()? {
            return Ok((status, process.log_text()));
        }
        if process.started().elapsed() > ROUND + GRACE {
            bail!("{PACKAGE} did not end within {:?}; see {}", ROUND + GRACE, report.display());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts the service with bounds of its own, and without a name server.
fn start(inside: &Inside, seed: u64) -> Result<Process> {
    let mut command = Command::new(&inside.binary);
    command.args(["serve", "--listen", "127.0.0.1:0", "--dns-server", "127.0.0.1:9", "--max-in-flight", "256"]);
    command.arg("--data-dir").arg(inside.scratch.join(format!("data-{seed}")));
    Process::spawn(command, &inside.scratch.join(format!("server-{seed}.log")))
}

/// Fails if the service ended, or if something in it panicked.
fn judge_server(server: &Process) -> Result<()> {
    if let Some(status) = server.ended()? {
        bail!("the service ended with {status}; it said:\n{}", server.log_tail());
    }
    if server.log_text().contains("panicked") {
        bail!("something panicked in the service; it said:\n{}", server.log_tail());
    }
    Ok(())
}

/// The number of cases in a report: `11083 generated, 11083 passed`.
fn generated(report: &str) -> Option<u64> {
    let line = report.rsplit_once("Test cases:")?.1.trim_start();
    line.split_once(" generated")?.0.parse().ok()
}

fn tail(report: &str) -> &str {
    let from = report.len().saturating_sub(SHOWN);
    let from = (from..report.len()).find(|&at| report.is_char_boundary(at)).unwrap_or(report.len());
    &report[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_how_many_cases_there_were() {
        let report =
            "rejected generated data\nTest cases:\n  11083 generated, 12 found 12 unique failures\n\nSeed: 1\n";
        assert_eq!(generated(report), Some(11_083));
        assert_eq!(generated("Test cases:\n"), None);
    }
}
