//! The flags of every command that talks to a server.

use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::Context;

use crate::cli;
use crate::client::Client;
use crate::output::Output;
use crate::servers::{self, ChosenServer, SERVER_VARIABLE};

/// The variable with files of certificate authorities; `redrive serve` reads it too.
const EXTRA_CA: &str = "REDRIVE_TRANSPORT_EXTRA_CA";

/// The heading of these flags in a help: after those of the command itself.
const CONNECTION: &str = "Connection";

/// Which server to talk to, and which certificates to trust.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Server {
    /// The server: a URL, or a name that `redrive servers` lists [default: the default of that list, or
    /// http://127.0.0.1:8620]
    #[arg(long = "server", help_heading = CONNECTION, value_name = "URL|NAME", env = SERVER_VARIABLE, hide_env_values = true)]
    server: Option<String>,
    /// The server, once it is known: it is not looked for twice.
    #[arg(skip)]
    resolved: Arc<OnceLock<ChosenServer>>,
    /// A PEM file of certificate authorities to trust besides the system's; may be repeated (in the variable:
    /// separated by ':')
    #[arg(long, help_heading = CONNECTION, hide_env_values = true, value_name = "FILE", env = EXTRA_CA, value_delimiter = ':', value_parser = parse_file)]
    pub(crate) extra_ca: Vec<PathBuf>,
}

impl Server {
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let ChosenServer { server, .. } = self.chosen()?;
        Client::new(server.address, &[self.trusted_files(), server.extra_ca].concat())
    }

    /// The server, as the command line, the variable or the user's file says.
    pub(crate) fn chosen(&self) -> anyhow::Result<ChosenServer> {
        if let Some(chosen) = self.resolved.get() {
            return Ok(chosen.clone());
        }
        // An empty flag says nothing, so that the variable counts.
        let chosen = match self.server.as_deref().filter(|given| !given.is_empty()) {
            Some(given) => servers::resolve(Some(&servers::choice(given, "--server")?))?,
            None => servers::without_flag()?,
        };
        Ok(self.resolved.get_or_init(|| chosen).clone())
    }

    /// The files that are named; an empty variable names none.
    pub(crate) fn trusted_files(&self) -> Vec<PathBuf> {
        self.extra_ca.iter().filter(|file| !file.as_os_str().is_empty()).cloned().collect()
    }
}

/// Which server, and whether people or programs read the answer.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Connection {
    #[command(flatten)]
    server: Server,
    /// Print the server's JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_file(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

impl Connection {
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        self.server.client()
    }

    pub(crate) fn output(&self) -> Output {
        Output::standard()
    }

    /// What follows `--server` in a command for the same server; nothing if that is the default, or cannot be known.
    pub(crate) fn server_flag(&self) -> Option<String> {
        self.server.chosen().ok().and_then(|chosen| chosen.flag)
    }

    /// A command line for the reader to copy, for the same server as this one.
    pub(crate) fn hint(&self, command: &str) -> String {
        let mut line = format!("{} {command}", cli::program());
        match self.server_flag() {
            // A password is never shown, so the flag cannot be copied.
            Some(server) if server.contains("***@") => line += " (with the same --server)",
            Some(server) => line += &format!(" --server {server}"),
            None => {}
        }
        if std::env::var_os(EXTRA_CA).is_none() {
            self.server.trusted_files().iter().for_each(|file| line += &format!(" --extra-ca {}", file.display()));
        }
        line
    }
}

/// Runs a client command: a single thread is plenty.
pub(crate) fn run<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(command)
}
