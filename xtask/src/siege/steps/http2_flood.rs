//! HTTP/2 connections with hundreds of streams each: the resources of one connection are bounded.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Request;
use tokio::io::AsyncWriteExt;

use super::super::attackers::{Attackers, connect, read_slowly};
use super::super::field::Field;
use super::super::http2::{Kind, body_beyond_the_window, endless_head, flood};
use super::super::outcome::Outcome;
use super::super::run::Run;

/// Connections of each kind.
const CONNECTIONS: usize = 12;
/// Streams of each connection.
const STREAMS: usize = 256;
/// The body of each stream, without its end.
const BODY: usize = 8 * 1024 * 1024;
/// Streams that are opened and reset at once.
const RESETS: usize = 5_000;
/// Frames of a connection that sends nothing else.
const FRAMES: usize = 200_000;
const HOLD: Duration = Duration::from_secs(3);

pub fn run(field: &Field) -> Result<Outcome> {
    let mut run = Run::ordinary(field)?;
    run.fill_pages()?;
    let address = run.service.address;
    let body = Bytes::from(vec![b' '; BODY]);
    let withheld = format!("{STREAMS} bodies of 8 MiB without an end");
    many(&mut run, &withheld, || withheld_bodies(address, body.clone()))?;
    let unread = format!("{STREAMS} pages unread");
    many(&mut run, &format!("{unread}, frames read"), || unread_answers(address, Reads::Frames))?;
    many(&mut run, &format!("{unread}, nothing read"), || unread_answers(address, Reads::Nothing))?;
    many(&mut run, &format!("{RESETS} streams reset at once"), || resets(address))?;
    for (what, bytes) in [
        ("a head of 20 MB without an end", endless_head(2_000)),
        ("a body of 32 MiB beyond the window", body_beyond_the_window(2_000)),
        ("200,000 pings", flood(Kind::Ping, FRAMES)),
        ("200,000 settings", flood(Kind::Settings, FRAMES)),
    ] {
        many(&mut run, what, || send_and_read_little(address, bytes.clone()))?;
    }
    run.end(&[])
}

/// Runs the same attack on many connections for a while.
fn many<F>(run: &mut Run<'_>, what: &str, attack: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = Result<String>> + Send + 'static,
{
    let mut attackers = Attackers::new(run.field.runtime.handle());
    for _ in 0..CONNECTIONS {
        attackers.add(attack());
    }
    run.hold(&format!("{CONNECTIONS} connections × {what}"), attackers, HOLD)
}

async fn send_and_read_little(address: SocketAddr, bytes: Bytes) -> Result<String> {
    let mut stream = connect(address).await?;
    stream.write_all(&bytes).await?;
    read_slowly(&mut stream, Duration::from_secs(1)).await?;
    Ok("closed by the service".to_owned())
}

/// What a caller reads from its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Frames, but no bodies: their window is never opened again.
    Frames,
    /// Nothing after its requests.
    Nothing,
}

async fn withheld_bodies(address: SocketAddr, body: Bytes) -> Result<String> {
    let (mut sender, connection) = h2::client::handshake(connect(address).await?).await?;
    let connection = tokio::spawn(connection);
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        sender = sender.ready().await?;
        let request = Request::post(format!("http://{address}/retry-tasks/batch"))
            .header("content-type", "application/json")
            .body(())?;
        let (answer, mut stream) = sender.send_request(request, false)?;
        stream.send_data(body.clone(), false)?;
        open.push((answer, stream));
    }
    connection.await??;
    Ok("ended by the service".to_owned())
}

async fn unread_answers(address: SocketAddr, reads: Reads) -> Result<String> {
    let window = if reads == Reads::Nothing { 1 << 30 } else { 65_535 };
    let (mut sender, connection) = h2::client::Builder::new()
        .initial_window_size(window)
        .initial_connection_window_size(window)
        .handshake::<_, Bytes>(connect(address).await?)
        .await?;
    let mut connection = Box::pin(connection);
    let mut open = Vec::new();
    let ask = async {
        for _ in 0..STREAMS {
            sender = sender.clone().ready().await?;
            let request = Request::get(format!("http://{address}/retry-tasks?limit=500")).body(())?;
            open.push(sender.send_request(request, true)?);
        }
        anyhow::Ok(())
    };
    tokio::select! {
        asked = ask => asked?,
        ended = &mut connection => return ended.map(|()| "ended early".to_owned()).context("asking"),
    }
    match reads {
        Reads::Frames => connection.await.map(|()| "ended by the service".to_owned()).context("not reading"),
        Reads::Nothing => {
            // The last requests are still to be written.
            let written = tokio::time::timeout(Duration::from_millis(50), &mut connection).await;
            ensure!(written.is_err(), "ended early");
            std::future::pending().await
        }
    }
}

async fn resets(address: SocketAddr) -> Result<String> {
    let (mut sender, connection) = h2::client::handshake(connect(address).await?).await?;
    let connection = tokio::spawn(connection);
    for _ in 0..RESETS {
        sender = sender.ready().await?;
        let request = Request::get(format!("http://{address}/retry-tasks?limit=500")).body(())?;
        let (_, mut stream) = sender.send_request(request, false)?;
        stream.send_reset(h2::Reason::CANCEL);
    }
    drop(sender);
    connection.await??;
    Ok("all streams reset".to_owned())
}
