//! `cargo xtask test`: everything that must hold before a change is merged, the checks that fail fastest first.

mod seeds;
mod shared_server;
mod steps;
mod tools;

use std::time::{Duration, Instant};

use anyhow::Result;
use redrive_testbed::SHARED_POSTGRES;

use crate::binaries::Profile;
use crate::{chaos, crash, siege, sim};
use shared_server::SharedServer;
use steps::Step;
use tools::Install;

/// The test step has already built this selection: with another one, cargo would build half of the tree again.
const BUILT: &[&str] = &["--workspace", "--all-features", "--bins", "--tests"];

/// The steps of the siege that are part of the tests: those that depend least on the machine's speed.
const SIEGE: siege::Options<'_> = siege::Options {
    steps: &["full-disk", "bad-rows", "lost-directory"],
    binary: siege::Binary::Built(Profile::Dev, BUILT),
    serve_arguments: &[],
};
/// The crash run that is part of the tests: few kills, so that it ends in seconds.
const CRASH: crash::Options = crash::Options {
    kills: 5,
    seed: 1,
    callers: 16,
    lane_concurrency: crash::LANE_SLOTS,
    profile: Profile::Dev,
    build: BUILT,
};
/// The most time that the crash run may take.
const CRASH_LIMIT: Duration = Duration::from_secs(180);

/// The tests that `--quick` leaves out: those that start servers, a browser or the real binary, and the simulator.
const NOT_QUICK: &str = "not (package(redrive-sim) + package(redrive-fuzz) + package(redrive-store-postgres) \
                         + package(redrive-schedule-redis) + package(redrive-testbed) + package(redrive-outbox) + package(xtask) \
                         + binary(cli) + binary(docs) + binary(examples) + package(orders-example) \
                         + binary(browser) + (binary(api) & test(/^browser::/)))";

/// The arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// For the inner loop, in under two minutes once built: format, clippy, and the tests that start no server and no binary
    #[arg(long)]
    quick: bool,
    /// Install nothing: fail and say what is missing
    #[arg(long)]
    no_install: bool,
}

/// Runs all steps and stops at the first that fails.
pub fn run(arguments: &Arguments) -> Result<()> {
    let started = Instant::now();
    if arguments.quick {
        run_quick()?;
        println!(
            "the quick steps passed in {:.1} s; `cargo xtask test` runs the others",
            started.elapsed().as_secs_f64()
        );
        return Ok(());
    }
    tools::install_missing(Install::from_flag(arguments.no_install))?;

    check_format()?;
    lint()?;
    run_tests()?;
    if tools::has_cargo_command("deny") {
        // Not `advisories`: they need the network, and a new one would fail an unrelated change.
        Step::cargo(&["deny", "--log-level", "error", "check", "licenses", "bans", "sources"]).run()?;
    } else {
        println!("──▶ skipped: cargo deny (not installed)");
    }
    // Each world twice: a seed whose two runs differ cannot be replayed. Half of the seeds are the same every time,
    // half are new with each commit.
    Step::ours("xtask sim --seeds 750 --twice").run_with(|| sim::run_with(&["--seeds", "750", "--twice"]))?;
    let first = seeds::of_this_commit().to_string();
    Step::ours(&format!("xtask sim --first {first} --seeds 750 --twice"))
        .run_with(|| sim::run_with(&["--first", &first, "--seeds", "750", "--twice"]))?;
    Step::ours("xtask sim --planted").run_with(|| sim::run_with(&["--planted"]))?;
    Step::ours(&format!("xtask crash --kills {} --seed {} --debug-binary", CRASH.kills, CRASH.seed)).run_with(
        || {
            crate::process::guard(CRASH_LIMIT)?;
            crash::run(&CRASH)
        },
    )?;
    let steps: Vec<String> = SIEGE.steps.iter().map(|step| format!(" --step {step}")).collect();
    Step::ours(&format!("xtask siege --debug-binary{}", steps.concat())).run_with(|| siege::run(&SIEGE))?;
    Step::ours(&chaos::SHORT.command()).run_with(|| chaos::run(&chaos::SHORT))?;

    println!("all steps passed in {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Format, clippy, and the tests that start no server.
fn run_quick() -> Result<()> {
    check_format()?;
    lint()?;
    if tools::has_cargo_command("nextest") {
        return Step::cargo(&["nextest", "run", "--workspace", "--all-features", "-E", NOT_QUICK]).run();
    }
    println!("──▶ cargo nextest is not installed, which could pick tests: only those inside the crates are run");
    Step::cargo(&["test", "--workspace", "--all-features", "--lib", "--exclude", "redrive-store-postgres"]).run()
}

fn check_format() -> Result<()> {
    Step::cargo(&["fmt", "--all", "--check"]).run()
}

fn lint() -> Result<()> {
    Step::cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]).run()
}

/// All tests, over one PostgreSQL server.
fn run_tests() -> Result<()> {
    let shared = SharedServer::start();
    let step = |arguments: &[&str]| Step::cargo(arguments).env(SHARED_POSTGRES, shared.url()).run();
    if tools::has_cargo_command("nextest") {
        // All failures in one run: a run takes long.
        step(&["nextest", "run", "--workspace", "--all-features", "--no-fail-fast"])?;
        // nextest runs no doc tests.
        if steps::doc_tests_exist()? {
            step(&["test", "--workspace", "--all-features", "--doc"])?;
        }
    } else {
        step(&["test", "--workspace", "--all-features"])?;
    }
    Ok(())
}
