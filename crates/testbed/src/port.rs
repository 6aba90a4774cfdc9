//! Ports that nobody uses.

use std::net::TcpListener;
use std::ops::Range;

/// Below the ports that Linux gives to outgoing connections. Among those, a server that is down could find its port taken
/// when it comes back, and a client that tries again and again to reach it could in the end connect to itself.
const PORTS: Range<u16> = 10_000..22_768;
/// How far the second port of a Redis cluster node lies above the first.
pub(crate) const BUS_OFFSET: u16 = 10_000;
/// How many ports are tried.
const TRIES: usize = 1_000;

/// A loopback port that is free now, as is the one `BUS_OFFSET` above it. Whoever takes it must cope with having lost it
/// to another process in between.
pub fn free() -> u16 {
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    std::iter::repeat_with(|| fastrand::u16(PORTS))
        .take(TRIES)
        .find(|&port| is_free(port) && is_free(port + BUS_OFFSET))
        .expect("no free port on 127.0.0.1")
}
