//! The project's own commands: `cargo xtask test`, `sim`, `fuzz`, `crash`, `chaos`, `siege`, `interop` and `bench`.
//!
//! Not here: anything that ships. These tools look at the service from outside, over its API, as its users do.

#![forbid(unsafe_code)]
// These are commands for people: what they find out goes to standard output.
#![allow(clippy::print_stdout)]
// A program exports nothing; `pub` says here what a module offers to its neighbours.
#![allow(unreachable_pub)]

mod api;
mod bench;
mod binaries;
mod chaos;
mod clock;
mod crash;
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
    /// Installs what is missing and may be installed, then runs format, clippy, all tests, a fixed number of simulated
    /// worlds, the planted bugs, a small crash run, a few steps of the siege and a small chaos run, and stops at the first failure.
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
    /// Kill the service under load, again and again, and prove from outside that it kept its promises
    ///
    /// Examples:
    ///   cargo xtask crash --kills 50
    ///   cargo xtask crash --kills 5 --seed 7 --debug-binary
    #[command(verbatim_doc_comment)]
    Crash(crash::Arguments),
    /// Break several nodes and the PostgreSQL under them, and prove that they kept their promises
    ///
    /// At random under load, nodes are killed, stopped and made to stand still past their leases;
    /// PostgreSQL is killed, stopped, made to stand still and failed over to its standby; rows are
    /// damaged; connections are cut, also after their answers were lost; the directory of large bodies
    /// is swapped for an empty one. Then all is well again, and everything must settle by itself. A
    /// ledger outside judges the invariants by their numbers in ARCHITECTURE.md.
    ///
    /// Examples:
    ///   cargo xtask chaos --nodes 3
    ///   cargo xtask chaos --nodes 3 --seconds 180 --seed 7 --debug-binary
    ///   cargo xtask chaos --nodes 3 --schedule redis
    ///   cargo xtask chaos --nodes 3 --old-binary FILE   # an upgrade under load, from that program
    #[command(verbatim_doc_comment)]
    Chaos(chaos::Arguments),
    /// Besiege the service within bounds, on loopback, and show that others are served and nothing is lost
    ///
    /// Connections that do not read, send or end, hostile targets, few files, a full disk, damaged rows, lost files. All
    /// through, a client submits small tasks and asks /livez; memory, its latencies and its tasks are judged.
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
        /// What the simulator is to do
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Feed everything that takes bytes from outside with bytes that make no sense (see `cargo xtask fuzz --help`)
    ///
    /// `--engine libfuzzer` uses cargo-fuzz and a nightly compiler in place of the driver that needs neither.
    #[command(disable_help_flag = true)]
    Fuzz {
        /// What the fuzzer is to do
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Let programs of others judge the service
    ///
    /// Examples:
    ///   cargo xtask interop schemathesis
    ///   cargo xtask interop schemathesis --cases 40000 --debug-binary
    #[command(verbatim_doc_comment)]
    Interop(interop::Arguments),
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
