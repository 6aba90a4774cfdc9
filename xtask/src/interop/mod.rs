//! `cargo xtask interop`: tests the service, and what it is deployed with, with third-party programs.

mod hadolint;
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
    /// Schemathesis: valid and invalid requests generated from /openapi.json, with checks of the answers
    ///
    /// The service and Schemathesis run in a network namespace that has a loopback interface and nothing else: a
    /// generated task cannot leave this machine, whatever its target is.
    Schemathesis(schemathesis::Options),
    /// Hadolint: the rules of good container files, for deploy/Dockerfile
    Hadolint,
    /// Runs Schemathesis inside the namespace
    #[command(hide = true)]
    SchemathesisInside(schemathesis::Inside),
}

/// Runs with the arguments of the command line.
pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.judge {
        Judge::Schemathesis(options) => schemathesis::run(options),
        Judge::Hadolint => hadolint::run(),
        Judge::SchemathesisInside(inside) => schemathesis::run_inside(inside),
    }
}
