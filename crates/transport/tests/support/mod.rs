//! Servers that misbehave, on real sockets of this machine.
//!
//! [`Server`] accepts connections and does with each what its behaviour says. [`behaviours`] has the usual ways to
//! misbehave; a test with a wish of its own writes an `async` closure over a [`Visitor`]. What came in is counted and
//! kept: [`Server::counts`], [`Server::wait_for`], [`Server::requests`]. [`tls`] makes certificates, good and bad ones.
//!
//! Nothing here knows what is under test: another crate's tests may use it by
//! `#[path = "../../transport/tests/support/mod.rs"] mod support;`.

#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a server that cannot work fails the test")]

pub mod behaviours;
#[path = "../../../dial/tests/support/dns.rs"]
mod dns;
pub mod http2;
mod request;
mod server;
#[path = "../../../dial/tests/support/tls.rs"]
pub mod tls;
mod visitor;

pub use dns::{DnsServer, Question, Reply};
pub use request::Request;
pub use server::{Counts, Full, Server, unused_address};
pub use visitor::Visitor;
