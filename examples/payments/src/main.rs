//! A payment service that never charges twice, however often it is killed.
//!
//! `payments serve` is the service, `payments provider` a fake card provider. The service has a PostgreSQL of its own, and
//! uses Redrive's idempotency records for `POST /payments` and Redrive's inbox for `POST /webhooks`. `torture.py` kills it at
//! its worst moments. README.md says how to run it.
//!
//! Settings are in the environment: `LISTEN`, `DATABASE`, `REDRIVE`, `PROVIDER`, `LEASE_MS`; `CRASH_AT` and `STOP_AT` name a
//! moment (see [`crash`]) at which the process kills or stops itself.

mod crash;
mod database;
mod http;
mod payment;
mod provider;
mod redrive;
mod webhook;

use anyhow::{Context, Result, bail};

#[tokio::main]
async fn main() -> Result<()> {
    let command = std::env::args().nth(1).unwrap_or_default();
    let listen = setting("LISTEN")?;
    match command.as_str() {
        "serve" => serve(&listen).await,
        "provider" => provider::serve(&listen).await,
        other => bail!("unknown command {other:?}: use `payments serve` or `payments provider`"),
    }
}

async fn serve(listen: &str) -> Result<()> {
    let database = setting("DATABASE")?;
    database::create_tables(&database).await?;
    let shop = payment::Shop { database, redrive: setting("REDRIVE")?, provider: setting("PROVIDER")? };
    http::serve(listen, move |request| {
        let shop = shop.clone();
        async move {
            match (request.method.as_str(), request.path.as_str()) {
                ("POST", "/payments") => payment::create(&shop, request).await,
                ("GET", "/payments") => payment::list(&shop).await,
                ("POST", "/webhooks") => webhook::receive(&shop, request).await,
                _ => Ok(http::Response::error(404, "there is only /payments and POST /webhooks")),
            }
        }
    })
    .await
}

fn setting(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| format!("the environment variable {name} is not set"))
}
