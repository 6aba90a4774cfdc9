//! `redrive-sim`: the simulator as a program. `cargo xtask sim` builds it and runs it.

#![forbid(unsafe_code)]
// This is a command for people: its results go to standard output.
#![allow(clippy::print_stdout)]

mod command;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match command::run(&command::Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
