//! `cargo xtask interop`: programs of others judge the service.

mod namespace;
mod python;
mod schemathesis;

use anyhow::Result;
use clap::{Args, Subcommand};

/// The options of `cargo xtask interop`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    judge: Judge,
}

#[derive(Debug, Subcommand)]
enum Judge {
    /// Schemathesis: requests made from /openapi.json, good and bad ones, and what it says of the answers
    ///
    /// The service and Schemathesis run in a network namespace that has a loopback interface and nothing else: a task
    /// that was generated cannot leave this machine, whatever its target says.
    Schemathesis(schemathesis::Options),
    /// The same, inside the namespace
    #[command(hide = true)]
    SchemathesisInside(schemathesis::Inside),
}

/// Runs with the arguments of the command line.
pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.judge {
        Judge::Schemathesis(options) => schemathesis::run(options),
        Judge::SchemathesisInside(inside) => schemathesis::run_inside(inside),
    }
}
