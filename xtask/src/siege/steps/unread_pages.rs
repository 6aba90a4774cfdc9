//! Unread answers: answers that wait for their caller must not fill the memory.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::super::attackers::{Attackers, connect_narrow, read_slowly};
use super::super::field::Field;
use super::super::outcome::Outcome;
use super::super::run::Run;
use crate::api::head;

const MIB: usize = 1024 * 1024;
/// Connections that request a page and read nothing.
const UNREAD: usize = 200;
/// Connections that read a byte at a time.
const SLOW: usize = 60;
/// Connections with many requests at once.
const PIPELINED: usize = 20;
/// The requests on each of them.
const REQUESTS: usize = 100;
/// Connections that request a stored body and read nothing.
const BLOBS: usize = 60;
const HOLD: Duration = Duration::from_secs(4);
const PAGE: &str = "/retry-tasks?limit=500";

pub fn run(field: &Field) -> Result<Outcome> {
    let mut run = Run::ordinary(field)?;
    run.fill_pages()?;
    let stored = run.call("POST", "/blobs", &"x".repeat(32 * MIB))?;
    ensure!(stored.status == 201, "storing a body was answered {}", stored.describe());
    let stored: Value = stored.document()?;
    let blob = format!("/blobs/{}", stored["bodyRef"].as_str().unwrap_or_default());

    let (page, address, runtime) = (head("GET", PAGE, 0), run.service.address, field.runtime.handle());
    let ask = |count: usize, bytes: &str, reads: bool| {
        let mut attackers = Attackers::new(runtime);
        for _ in 0..count {
            let bytes = bytes.to_owned();
            attackers.add(async move {
                let mut stream = connect_narrow(address).await?;
                stream.write_all(bytes.as_bytes()).await?;
                if reads {
                    read_slowly(&mut stream, Duration::from_millis(20)).await?;
                    return Ok("answered and closed".to_owned());
                }
                std::future::pending().await
            });
        }
        attackers
    };
    run.hold(&format!("{UNREAD} pages of 1 MiB unread"), ask(UNREAD, &page, false), HOLD)?;
    run.hold(&format!("{SLOW} pages read at 50 bytes/s"), ask(SLOW, &page, true), HOLD)?;
    let pipelined = ask(PIPELINED, &page.repeat(REQUESTS), false);
    run.hold(&format!("{PIPELINED} connections × {REQUESTS} pages asked for at once"), pipelined, HOLD)?;
    run.hold(&format!("{BLOBS} bodies of 32 MiB unread"), ask(BLOBS, &head("GET", &blob, 0), false), HOLD)?;
    let (serves, answer) = run.wait_for_answer(("GET", PAGE, ""), HOLD, |answer| answer.status == 200)?;
    run.check(serves, format!("a page is served afterwards: {}", answer.get(..3).unwrap_or_default()));
    run.end(&[])
}
