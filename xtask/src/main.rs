//! The project's own commands: `cargo xtask test`, `sim`, `fuzz`, `crash`, `chaos`, `siege`, `interop`, `bench`,
//! `tour` and `dist`.
//!
//! Not here: anything that ships. These tools use the service from outside, over its API, like its users.

#![forbid(unsafe_code)]
// These are commands for people: their results go to standard output.
#![allow(clippy::print_stdout)]
// A program exports nothing; `pub` marks here what a module offers to the others.
#![allow(unreachable_pub)]

mod api;
mod bench;
mod binaries;
mod chaos;
mod clock;
mod crash;
mod dist;
mod fingerprint;
mod fuzz;
mod http;
mod interop;
mod open_files;
mod process;
mod procfs;
mod siege;
mod sim;
mod stats;
mod table;
mod test;
mod tour;
mod witness;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check everything that must hold before a change is merged
    ///
    /// Installs missing programs if it may, then runs format, clippy, all tests, a fixed number of simulated worlds,
    /// the planted bugs, a short crash run, a few steps of the siege and a short chaos run, and stops at the first
    /// failure.
    Test(test::Arguments),
    /// Measure speed and size against the goals of docs/benchmarks.md
    ///
    /// Examples:
    ///   cargo xtask bench
    ///   cargo xtask bench --rounds 5 --seconds 10 --keys --json
    ///   cargo xtask bench --skip-pipeline --preload 10000000 --preload-kind pending
    ///   cargo xtask bench neighbours --kind slow --count 40
    #[command(verbatim_doc_comment)]
    Bench(Box<bench::Options>),
    /// Kill the service under load, again and again, and check from outside that it kept its guarantees
    ///
    /// Examples:
    ///   cargo xtask crash --kills 50
    ///   cargo xtask crash --kills 5 --seed 7 --debug-binary
    #[command(verbatim_doc_comment)]
    Crash(crash::Arguments),
    /// Break several nodes and their PostgreSQL, and check that the invariants hold
    ///
    /// At random under load, nodes are killed, stopped and suspended past their leases; PostgreSQL is
    /// killed, stopped, suspended and failed over to its standby; rows are damaged; connections are closed,
    /// also after their answers were lost; the directory of large bodies is replaced by an empty one. Then
    /// all faults end, and everything must settle by itself. An external ledger checks the invariants by
    /// their numbers in ARCHITECTURE.md.
    ///
    /// Examples:
    ///   cargo xtask chaos --nodes 3
    ///   cargo xtask chaos --nodes 3 --seconds 180 --seed 7 --debug-binary
    ///   cargo xtask chaos --nodes 3 --schedule redis
    ///   cargo xtask chaos --nodes 3 --old-binary FILE   # a rolling upgrade under load, from that program
    #[command(verbatim_doc_comment)]
    Chaos(chaos::Arguments),
    /// Attack the service within bounds, on loopback, and check that others are served and nothing is lost
    ///
    /// Connections that do not read, send or end, hostile targets, few files, a full disk, damaged rows, lost files. All
    /// the time, a client submits small tasks and calls /livez; memory, its latencies and its tasks are checked.
    ///
    /// Examples:
    ///   cargo xtask siege
    ///   cargo xtask siege --list
    ///   cargo xtask siege --step full-disk --step bad-rows --debug-binary
    #[command(verbatim_doc_comment)]
    Siege(siege::Arguments),
    /// Try to break the invariants in a simulated world; every failure replays from its seed (see `cargo xtask sim --help`)
    #[command(disable_help_flag = true)]
    Sim {
        /// The arguments of the simulator
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Feed malformed bytes to everything that takes bytes from outside (see `cargo xtask fuzz --help`)
    ///
    /// `--engine libfuzzer` uses cargo-fuzz and a nightly compiler instead of the driver that needs neither.
    #[command(disable_help_flag = true)]
    Fuzz {
        /// The arguments of the fuzzer
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Test the service and its container file with third-party programs
    ///
    /// Examples:
    ///   cargo xtask interop schemathesis
    ///   cargo xtask interop schemathesis --cases 40000 --debug-binary
    ///   cargo xtask interop hadolint
    #[command(verbatim_doc_comment)]
    Interop(interop::Arguments),
    /// Follow README.md to the letter with the release build, compare what is printed, and time it
    ///
    /// Needs PostgreSQL, curl and what else the test of README.md needs; `cargo xtask test` installs it.
    ///
    /// Examples:
    ///   cargo xtask tour
    ///   cargo xtask tour --debug-binary
    #[command(verbatim_doc_comment)]
    Tour(tour::Arguments),
    /// Make what users install: a stripped binary, manual pages, completions, the systemd unit and a Debian package
    ///
    /// The results are in target/dist. The same binary gives the same package: the date of all files is
    /// SOURCE_DATE_EPOCH, or else that of the last commit.
    ///
    /// Examples:
    ///   cargo xtask dist
    ///   cargo xtask dist --debug-binary
    #[command(verbatim_doc_comment)]
    Dist(dist::Arguments),
    /// The forwarder that `bench` compares with
    #[command(hide = true)]
    Ceiling(bench::CeilingOptions),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Bench(options) => bench::run(&options),
        Command::Crash(arguments) => crash::run_as_command(&arguments),
        Command::Siege(arguments) => siege::run_as_command(&arguments),
        Command::Chaos(arguments) => chaos::run_as_command(&arguments),
        Command::Sim { arguments } => sim::run(&arguments),
        Command::Fuzz { arguments } => fuzz::run(&arguments),
        Command::Interop(arguments) => interop::run(&arguments),
        Command::Tour(arguments) => tour::run(&arguments),
        Command::Dist(arguments) => dist::run(&arguments),
        Command::Ceiling(options) => bench::run_ceiling(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
