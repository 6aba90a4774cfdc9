//! Puts requests on the wire over HTTP/1.1 and HTTP/2, with TLS: the real [`Transport`] of the engine.
//!
//! One call is one send. hyper's low-level connections are used with a pool of our own, because a pooled client resends
//! what it thinks is safe to resend, and that is not its decision here.
//!
//! | file | its job |
//! | --- | --- |
//! | `options` | the settings, each with its default |
//! | `transport` | [`HttpTransport`], what the engine holds |
//! | `attempt` | one send, from the URL to the answer |
//! | `target`, `origin` | what a URL says: whom to call, and what to ask there |
//! | `message` | the request as it goes out, its header fields above all |
//! | `outgoing` | its body: bytes, or what comes from where large bodies are kept |
//! | `pool`, `peer` | kept connections, and their bounds |
//! | `checkout` | the way to a connection: kept, shared or new |
//! | `connect_queue` | how many connections to one origin are opened at a time, and the sends that wait |
//! | `connect` | opening a connection through `redrive-dial`, and beginning the protocol on it |
//! | `http1`, `http2`, `line` | a connection of one's own, a shared one, and either |
//! | `turn` | polling a connection and the send that uses it together |
//! | `body` | reading no more of an answer than is kept |
//! | `deadline` | the one timer of an attempt |
//! | `failure` | what went wrong, in the engine's terms |
//!
//! Not here: whether to retry (`redrive-core`), when (`redrive-engine`), decompression, redirects, cookies, proxies.
//!
//! [`Transport`]: redrive_engine::transport::Transport

#![forbid(unsafe_code)]

mod attempt;
mod body;
mod checkout;
mod connect;
mod connect_queue;
mod deadline;
mod error;
mod failure;
mod http1;
mod http2;
mod informational;
mod line;
mod message;
mod options;
mod origin;
mod outgoing;
mod peer;
mod pool;
mod target;
mod transport;
mod turn;

#[doc(hidden)]
pub use attempt::check;
pub use error::Error;
pub use options::{Options, Plain};
pub use redrive_dial::Roots;
pub use transport::HttpTransport;
