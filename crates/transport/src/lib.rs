//! Sends requests over HTTP/1.1 and HTTP/2, with TLS: the [`Transport`] of the engine.
//!
//! One call is one send. hyper's low-level connections are used with a pool of our own: hyper's pooled client may send
//! a request again, and here only the engine decides about that.
//!
//! | file | its job |
//! | --- | --- |
//! | `options` | the settings, each with its default |
//! | `transport` | [`HttpTransport`], the entry point |
//! | `attempt` | one send, from the URL to the answer |
//! | `target`, `origin` | a URL, parsed: the origin to connect to, and the path to request |
//! | `message` | the request as it is sent, with its header fields |
//! | `request_body` | its body: bytes in memory, or a stream from blob storage |
//! | `pool`, `origin_pool` | kept connections and their limits; those of one tenant to one origin |
//! | `checkout` | how a send gets a connection: kept, shared or new |
//! | `connect_queue` | how many connections to one origin are opened at a time, and the sends that wait |
//! | `connect` | opening a connection through `redrive-dial`, and beginning the protocol on it |
//! | `http1`, `http2`, `checked_out` | an exclusive connection, a shared one, and either of them in use by a send |
//! | `co_poll` | polls a connection and the send that uses it in one task |
//! | `answer_body` | reads as much of an answer as is kept |
//! | `deadline` | the one timer of an attempt |
//! | `failure` | errors of the network as errors of the engine |
//!
//! Not here: whether to retry (`redrive-core`), when (`redrive-engine`), decompression, redirects, cookies, proxies.
//!
//! [`Transport`]: redrive_engine::transport::Transport

#![forbid(unsafe_code)]

mod answer_body;
mod attempt;
mod checked_out;
mod checkout;
mod co_poll;
mod connect;
mod connect_queue;
mod deadline;
mod error;
mod failure;
mod http1;
mod http2;
mod informational;
mod message;
mod options;
mod origin;
mod origin_pool;
mod pool;
mod request_body;
mod target;
mod transport;

#[doc(hidden)]
pub use attempt::check;
pub use error::Error;
pub use options::{Options, PlainProtocol};
pub use redrive_dial::Roots;
pub use transport::HttpTransport;
