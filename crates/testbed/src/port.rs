//! Free ports.

use std::net::TcpListener;
use std::ops::Range;

/// Below the ports that Linux gives to outgoing connections. Among those, a server that is down could find its port
/// taken when it is restarted, and a client that keeps retrying could in the end connect to itself.
const PORTS: Range<u16> = 10_000..22_768;
/// The difference between the second port of a Redis cluster node and the first.
pub(crate) const BUS_OFFSET: u16 = 10_000;
/// How many ports are tried.
const TRIES: usize = 1_000;

/// A loopback port that is free now, as is the one `BUS_OFFSET` above it. Another process may take it before the caller
/// does.
pub fn free() -> u16 {
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    std::iter::repeat_with(|| fastrand::u16(PORTS))
        .take(TRIES)
        .find(|&port| is_free(port) && is_free(port + BUS_OFFSET))
        .expect("no free port on 127.0.0.1")
}
