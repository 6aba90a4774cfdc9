//! More connections than the limit: idle connections are closed in favour of active ones.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use super::super::attackers::{Attackers, connect, read_slowly, send_slowly};
use super::super::field::Field;
use super::super::outcome::Outcome;
use super::super::run::Run;

/// More than the default limit of 4,096 connections.
const IDLE: usize = 5_000;
/// Connections that send heads and bodies one byte at a time.
const SLOW: usize = 500;
/// Connections that are closed at once, one after the other.
const COME_AND_GO: usize = 5_000;
const PACE: Duration = Duration::from_micros(700);
const HOLD: Duration = Duration::from_secs(10);

pub fn run(field: &Field) -> Result<Outcome> {
    let mut run = Run::ordinary(field)?;
    let address = run.service.address;
    let mut attackers = Attackers::new(field.runtime.handle());
    for number in 0..IDLE {
        attackers.add(async move {
            tokio::time::sleep(PACE * u32::try_from(number).unwrap_or(u32::MAX)).await;
            let mut stream = connect(address).await?;
            read_slowly(&mut stream, Duration::ZERO).await?;
            Ok("closed by the service".to_owned())
        });
    }
    for request in ["GET /livez HTTP/1.1\r\nhost: localhost\r\nx-slow: ", BODY] {
        let slow = Bytes::from(format!("{request}{}", "x".repeat(1_000)));
        for _ in 0..SLOW {
            let slow = slow.clone();
            attackers.add(async move {
                let mut stream = connect(address).await?;
                send_slowly(&mut stream, &slow, Duration::from_millis(50)).await?;
                Ok("still open".to_owned())
            });
        }
    }
    attackers.add(async move {
        for _ in 0..COME_AND_GO {
            let mut stream = connect(address).await?;
            stream.write_all(b"G").await?;
            stream.set_zero_linger()?;
        }
        Ok("came and went".to_owned())
    });
    let what = format!(
        "{IDLE} idle connections, {COME_AND_GO} that came and went, {SLOW} heads and {SLOW} bodies of 20 bytes/s"
    );
    run.hold(&what, attackers, HOLD)?;
    run.end(&[])
}

const BODY: &str =
    "POST /retry-tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n";
