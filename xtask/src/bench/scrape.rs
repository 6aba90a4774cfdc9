//! Scrapes of `/metrics`: every second beside the pipeline, and one by one with many dependencies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde::Serialize;
use serde_json::json;

use super::batches;
use super::deliveries::NUMBER_DIGITS;
use super::world::{Variant, World};
use crate::stats::Spread;

/// How many scrapes are measured.
const SCRAPES: usize = 30;
/// How long a scrape may take before it counts as failed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Scrapes with many dependencies.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scrapes {
    /// How many dependencies have been called.
    pub dependencies: u64,
    /// The bytes of the last scrape.
    pub bytes: usize,
    /// The lines of it that are samples.
    pub samples: usize,
    /// The time of each, in milliseconds.
    pub millis: Spread,
    /// CPU time of the service for each, in milliseconds.
    pub cpu_millis: f64,
}

/// Delivers a task to each of many dependencies, and scrapes then.
pub fn measure(world: &World, variant: Variant, dependencies: u64) -> Result<Scrapes> {
    let service = world.start(variant)?;
    world.deliveries.reset();
    let target = format!("http://{}/", world.target.address());
    batches::submit(&service, dependencies, |number| {
        json!({
            "targetUrl": target,
            "body": format!("{number:0width$}", width = NUMBER_DIGITS),
            "dependency": format!("dependency-{number}"),
        })
        .to_string()
    })?;
    service.wait_until_settled(variant, world, dependencies, 0)?;
    let address = *service.addresses().first().context("a service without an address")?;
    let before = service.usage()?.cpu;
    let (mut millis, mut text) = (Vec::new(), String::new());
    for _ in 0..SCRAPES {
        let begun = Instant::now();
        text = scrape(address)?;
        millis.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let cpu = service.usage()?.cpu.saturating_sub(before);
    Ok(Scrapes {
        dependencies,
        bytes: text.len(),
        samples: text.lines().filter(|line| !line.starts_with('#')).count(),
        millis: Spread::of(millis.iter().copied()),
        cpu_millis: cpu.as_secs_f64() * 1e3 / SCRAPES as f64,
    })
}

/// Scrapes every second until it is stopped.
pub struct Scraper {
    stop: Sender<()>,
    thread: JoinHandle<Result<u64>>,
}

impl Scraper {
    pub fn start(address: SocketAddr) -> Self {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut scrapes = 0;
            loop {
                scrape(address)?;
                scrapes += 1;
                if stopped.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
                    return Ok(scrapes);
                }
            }
        });
        Scraper { stop, thread }
    }

    /// Stops. Returns how many scrapes there were; fails if one of them failed.
    pub fn stop(self) -> Result<u64> {
        drop(self.stop);
        self.thread.join().map_err(|_| anyhow!("the scraper panicked"))?
    }
}

/// The body of one scrape, over a connection of its own.
pub fn scrape(address: SocketAddr) -> Result<String> {
    let mut connection = TcpStream::connect_timeout(&address, TIMEOUT).context("connecting for a scrape")?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    connection.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).context("reading a scrape")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("a scrape without a body")?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "a scrape was answered: {head}");
    Ok(body.to_owned())
}
