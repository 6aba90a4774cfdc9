//! What every command that talks to a server takes.

use std::future::Future;

use anyhow::Context;

use crate::cli;
use crate::client::{Address, Client};
use crate::output::Output;

/// Where a server is if nobody says.
pub(super) const DEFAULT_SERVER: &str = "http://127.0.0.1:8620";

/// Which server, and whether people or programs read the answer.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Connection {
    /// The server to talk to
    #[arg(long, value_name = "URL", env = "REDRIVE_SERVER", default_value = DEFAULT_SERVER, value_parser = parse_server)]
    server: Address,
    /// Print the server's JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// An empty variable counts as not set.
pub(super) fn parse_server(text: &str) -> Result<Address, String> {
    if text.is_empty() { DEFAULT_SERVER } else { text }.parse()
}

impl Connection {
    pub(crate) fn client(&self) -> Client {
        Client::new(self.server.clone())
    }

    pub(crate) fn output(&self) -> Output {
        Output::standard()
    }

    /// A command line for the reader to copy, for the same server as this one.
    pub(crate) fn hint(&self, command: &str) -> String {
        let (program, server) = (cli::program(), self.server.to_string());
        let server = if server == DEFAULT_SERVER { String::new() } else { format!(" --server {server}") };
        format!("{program} {command}{server}")
    }
}

/// Runs a client command: a single thread is plenty.
pub(crate) fn run<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(command)
}
