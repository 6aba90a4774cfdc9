//! A DNS server and TLS certificates for tests. Other crates' tests include these files by path.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a server that cannot work fails the test")]

pub mod dns;
pub mod tls;
