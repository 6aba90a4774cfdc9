//! The `redrive` binary: the service and its command line.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    redrive::cli::main().into()
}
