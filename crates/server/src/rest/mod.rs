//! The REST API over HTTP/1.1 and HTTP/2 (with prior knowledge): an adapter of [`crate::operations`].
//!
//! | module | its job |
//! | --- | --- |
//! | `server`, `shutdown` | serves connections, and stops gracefully |
//! | `acceptor`, `connections`, `peer` | accepts connections, and closes some when there are too many |
//! | `memory`, `metered` | the memory budget of requests and answers |
//! | `service`, `router`, `call`, `reply` | from a request to a response |
//! | `gate`, `host_name` | checks of every request: host names, pages of other sites, framing |
//! | `authentication` | the caller of a request, and whether it may use the route |
//! | `routes` | the one table of what is served, one file per route |
//! | `problem` | from failures to problem details |
//! | `openapi`, `docs` | the route table, as `/openapi.json` and as the reference page |
//! | `page` | a list's page, bounded in bytes |
//! | `upload`, `response_body` | bodies that are received and sent piece by piece |
//! | `event_stream` | events of this node, sent as they happen |
//! | `request_body` | a request's body, and the unread rest of it when the request is refused |
//! | `body`, `query`, `header_list` | the parts of a request |
//! | `prefer`, `precondition`, `record_tag`, `idempotency_key` | the headers that change an operation |
//! | `trace_context` | the trace of a request |
//! | `record_path` | the path of an idempotency record |
//!
//! Not here: what the operations do, the documents. There is no middleware: what every request needs is in
//! `service`.

mod acceptor;
mod authentication;
mod body;
mod call;
mod connections;
mod docs;
mod event_stream;
mod gate;
mod header_list;
mod host_name;
mod idempotency_key;
mod memory;
mod metered;
mod openapi;
mod options;
mod page;
mod peer;
mod precondition;
mod prefer;
mod problem;
mod query;
mod record_path;
mod record_tag;
mod reply;
mod request_body;
mod response_body;
mod route;
mod router;
mod routes;
mod server;
mod service;
mod shutdown;
mod trace_context;
mod upload;

pub use host_name::{HostName, InvalidHostName};
pub use memory::Memory;
pub use options::{Error, Options};
pub use server::{serve, serve_within};

/// The OpenAPI document, as it is served at `/openapi.json`.
pub fn openapi_document() -> serde_json::Value {
    openapi::document()
}
