//! Announces orders through Redrive, and receives them.
//!
//! `orders submit ORDER AMOUNT URL`, `orders receive PORT`; the service's address is in `REDRIVE`.

// A program for people: its results go to standard output.
#![allow(clippy::print_stdout)]

mod receive;
mod redrive;
mod submit;

use std::process::ExitCode;

use anyhow::{Result, bail};

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["submit", order, amount, url] => submit::submit(order, amount, url).await,
        ["receive", port] => receive::serve(port.parse()?).await,
        _ => bail!("use `orders submit ORDER AMOUNT URL` or `orders receive PORT`"),
    }
}
