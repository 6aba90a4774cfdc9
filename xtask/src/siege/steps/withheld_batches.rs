//! Bodies that never end: what a caller has sent so far must not fill the memory, nor block other callers.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use super::super::attackers::{Attackers, connect, status};
use super::super::field::Field;
use super::super::outcome::Outcome;
use super::super::run::Run;
use crate::api::head;

/// The largest batch.
const LARGE: usize = 32 * 1024 * 1024;
/// The size of a body that counts as small.
const SMALL: usize = 60 * 1024;
const LARGE_CALLERS: usize = 60;
const CHUNKED_CALLERS: usize = 40;
/// So many that small bodies together exceed the whole budget of 256 MiB.
const SMALL_CALLERS: usize = 4_600;
const HOLD: Duration = Duration::from_secs(6);
/// The pause between the starts of two connections.
const PACE: Duration = Duration::from_micros(700);

pub fn run(field: &Field) -> Result<Outcome> {
    let mut run = Run::ordinary(field)?;
    let (address, runtime) = (run.service.address, field.runtime.handle());

    let mut large = Attackers::new(runtime);
    large.send(address, LARGE_CALLERS, Duration::ZERO, &withheld("/retry-tasks/batch", LARGE));
    run.hold(&format!("{LARGE_CALLERS} batches of 32 MiB without the last byte"), large, HOLD)?;

    let mut chunked = Attackers::new(runtime);
    for _ in 0..CHUNKED_CALLERS {
        chunked.add(async move {
            let mut stream = connect(address).await?;
            stream.write_all(CHUNKED_HEAD.as_bytes()).await?;
            let chunks = "1\r\n \r\n".repeat(100_000);
            for _ in 0..10 {
                stream.write_all(chunks.as_bytes()).await?;
            }
            status(&mut stream).await
        });
    }
    run.hold(&format!("{CHUNKED_CALLERS} batches of 1,000,000 chunks of 1 byte without an end"), chunked, HOLD / 2)?;

    let mut small = Attackers::new(runtime);
    small.send(address, SMALL_CALLERS, PACE, &withheld("/retry-tasks", SMALL));
    run.hold(&format!("{SMALL_CALLERS} submissions of 60 KiB without the last byte"), small, HOLD)?;
    run.end(&[])
}

const CHUNKED_HEAD: &str = "POST /retry-tasks/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                            transfer-encoding: chunked\r\n\r\n";

/// A request whose last byte is missing.
fn withheld(path: &str, length: usize) -> Bytes {
    let mut request = head("POST", path, length).into_bytes();
    request.resize(request.len() + length - 1, b' ');
    Bytes::from(request)
}
