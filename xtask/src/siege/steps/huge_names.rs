//! Documents and heads that are far too large: the answers to them are small.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::attackers::{Attackers, connect, send_slowly, status};
use super::super::field::Field;
use super::super::outcome::Outcome;
use super::super::run::Run;
use crate::api::head;

const MB: usize = 1_000_000;
/// How often each document is sent.
const TIMES: usize = 8;
/// Heads of 60 KiB that are never completed, and heads that never end.
const HEADS: usize = 400;
const HOLD: Duration = Duration::from_secs(6);
/// The most bytes of an answer to a document.
const LARGEST_ANSWER: usize = 16 * 1024;

pub fn run(field: &Field) -> Result<Outcome> {
    let mut run = Run::ordinary(field)?;
    let address = run.service.address;
    let mut documents = Attackers::new(field.runtime.handle());
    for document in documents_that_are_too_large() {
        let request = Bytes::from(head("POST", "/retry-tasks/batch", document.len()) + &document);
        for _ in 0..TIMES {
            let request = request.clone();
            documents.add(async move {
                let mut stream = connect(address).await?;
                stream.write_all(&request).await?;
                let status = status(&mut stream).await?;
                let mut rest = vec![0; LARGEST_ANSWER];
                let mut length = 0;
                // A kept connection stays open: what has arrived after a while is everything.
                while let Ok(Ok(more)) = tokio::time::timeout(Duration::from_millis(500), stream.read(&mut rest)).await
                    && more > 0
                {
                    length += more;
                }
                Ok(if length > LARGEST_ANSWER { format!("{status} with {length} bytes") } else { status })
            });
        }
    }
    run.go_on_for(HOLD)?;
    let small = documents.ends().keys().all(|end| !end.contains("bytes"));
    run.check(small, "no answer repeats a huge name");
    let what = "an unknown field, a label, a key, a number of 30 MB; 10 million brackets";
    run.hold(&format!("{TIMES} × each: {what}"), documents, Duration::ZERO)?;

    let mut heads = Attackers::new(field.runtime.handle());
    let unfinished = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nx-large: {}", "x".repeat(60 * 1024));
    heads.send(address, HEADS, Duration::from_millis(1), &Bytes::from(unfinished));
    let endless = Bytes::from(format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{}", "x: y\r\n".repeat(100_000)));
    heads.send(address, HEADS, Duration::from_millis(1), &endless);
    for _ in 0..HEADS {
        heads.add(async move {
            let mut stream = connect(address).await?;
            stream.write_all(&vec![b'x'; 50 * 1024]).await?;
            send_slowly(&mut stream, &[b'x'; 1_000], Duration::from_millis(100)).await?;
            Ok("still open".to_owned())
        });
    }
    run.hold(
        &format!("{HEADS} × each: heads of 60 KiB without an end, of 100,000 fields, one long line"),
        heads,
        HOLD,
    )?;
    run.end(&[])
}

fn documents_that_are_too_large() -> Vec<String> {
    let huge = "n".repeat(30 * MB);
    vec![
        format!(r#"{{"tasks":[{{"targetUrl":"http://127.0.0.1:9/","{huge}":1}}]}}"#),
        format!(r#"{{"tasks":[{{"targetUrl":"http://127.0.0.1:9/","labels":{{"{huge}":"x"}}}}]}}"#),
        format!(r#"{{"{huge}":[]}}"#),
        format!(r#"{{"tasks":[{{"targetUrl":"http://127.0.0.1:9/","idempotencyKey":"{huge}"}}]}}"#),
        format!(r#"{{"tasks":[{{"targetUrl":"http://127.0.0.1:9/","delayMs":{}}}]}}"#, "9".repeat(30 * MB)),
        format!(r#"{{"tasks":{}"#, "[".repeat(10 * MB)),
    ]
}
