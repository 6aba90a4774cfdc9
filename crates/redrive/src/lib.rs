//! The `redrive` binary as a library, so that its parts can be tested: command line, configuration, wiring.
//!
//! | module | its job |
//! | --- | --- |
//! | `cli` | the list of commands |
//! | `arguments` | the words of the command line, before they are read |
//! | `commands` | one file per command |
//! | `config` | the settings of the service, and where each value came from |
//! | `serve` | starts and stops store, engine, transport and server |
//! | `servers` | the servers that have names |
//! | `client` | calls a server's API |
//! | `follow` | waits for a task and shows its attempts as they happen |
//! | `output` | tables, colours, moments |
//! | `exit` | the exit codes |
//! | `host` | the name of this machine |
//!
//! Not here: anything about retrying. This crate reads the environment and files; the others are handed values.

#![forbid(unsafe_code)]

mod arguments;
pub mod cli;
pub mod client;
mod commands;
pub mod config;
pub mod exit;
mod follow;
pub mod host;
mod output;
mod serve;
mod servers;
