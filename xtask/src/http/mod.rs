//! A minimal HTTP/1.1 for the load generator and the target.
//!
//! Why not a library: caller, service and target share two cores here, so whatever the measuring tools cost is taken
//! from the service, and an expensive tool makes a slow service look good beside the ceiling.
//!
//! Not here: chunked bodies, pipelining, anything about tasks. Both peers are known (hyper), and anything that they
//! should not send is an error.

mod client;
mod message;
mod server;

pub use client::{Answer, Connection};
pub use message::Request;
pub use server::{Reply, Respond, Server};
