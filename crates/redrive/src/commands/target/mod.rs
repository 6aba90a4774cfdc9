//! `redrive target`: a small server for trying Redrive out: it takes what is sent to it, fails as it is told, and prints
//! what arrives.

mod arrival;
mod plan;
mod server;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::net::lookup_host;

use crate::commands::connection;
use crate::exit::{Exit, ExitError};
use plan::Plan;

const EXAMPLES: &str = "\
Examples:
  redrive target                                # answers 200 on 127.0.0.1:9000
  redrive target --fail 3                       # 503 three times, then 200
  redrive target --fail 1 --retry-after 5       # 503 with Retry-After: 5, then 200
  redrive target --status 404                   # always 404
  redrive target --delay 2s --bodies            # slow, and prints the beginning of bodies
  redrive send http://127.0.0.1:9000/hook -d hello --wait

A request for /status/CODE is answered with that code, whatever the options say.
Prints method, path, Idempotency-Key, Redrive-Attempt, the size of the body and the names of the
header fields. The values of other fields and of the query are not printed. Ctrl-C ends it.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The address to listen on; port 0 is any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9000")]
    listen: String,
    /// Fail the first N requests, then answer 200
    #[arg(long, value_name = "N")]
    fail: Option<u64>,
    /// The status of a failure [default: 503]; without --fail, the status of every answer
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u16).range(plan::STATUS))]
    status: Option<u16>,
    /// How long to wait before each answer
    #[arg(long, value_name = "DURATION", value_parser = crate::config::parse_duration)]
    delay: Option<Duration>,
    /// Send Retry-After with this many seconds with each failure
    #[arg(long, value_name = "SECONDS")]
    retry_after: Option<u32>,
    /// Print the first bytes of each body
    #[arg(long)]
    bodies: bool,
    /// Listen also on an address that other machines can reach
    #[arg(long)]
    allow_remote: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let plan = Plan {
        fail: args.fail,
        status: args.status,
        delay: args.delay.unwrap_or_default(),
        retry_after: args.retry_after,
    };
    plan.check().map_err(|wrong| ExitError::of(Exit::Usage, wrong))?;
    connection::run(async {
        let address = address(args).await?;
        server::serve(address, plan, args.bodies).await?;
        Ok(Exit::Done)
    })
}

/// The address to listen on, unless other machines could reach it without having been allowed to.
async fn address(args: &Args) -> anyhow::Result<SocketAddr> {
    let Args { listen, .. } = args;
    let mut found = lookup_host(listen).await.map_err(|error| {
        ExitError::of(Exit::Usage, format!("--listen {listen} is no address such as 127.0.0.1:9000: {error}"))
    })?;
    let address = found.next().with_context(|| format!("--listen {listen} has no address"))?;
    if !address.ip().is_loopback() && !args.allow_remote {
        let wrong = format!(
            "--listen {listen} can be reached from other machines, and this server takes what anybody sends; \
            use 127.0.0.1, or add --allow-remote"
        );
        return Err(ExitError::of(Exit::Usage, wrong));
    }
    Ok(address)
}
