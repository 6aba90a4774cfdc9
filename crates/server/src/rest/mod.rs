//! The REST API over HTTP/1.1 and HTTP/2 (with prior knowledge): an adapter of [`crate::operations`].
//!
//! | module | its job |
//! | --- | --- |
//! | `server` | accepts connections, serves them, stops in good order |
//! | `accepting`, `connections`, `peer` | who is let in, and who is closed when there is no room |
//! | `memory`, `metered` | the budget of bytes that requests and answers hold |
//! | `service`, `router`, `call`, `reply` | from a request to a response |
//! | `gate`, `host_name` | what is checked of every request: the names that the server answers to, foreign pages |
//! | `authentication` | the caller of a request, and whether it may use the route |
//! | `routes` | the one table of what is served, one file per route |
//! | `problem` | from failures to problem details |
//! | `openapi`, `docs` | the table, as `/openapi.json` and as a page to read |
//! | `page` | a list's page, bounded in bytes |
//! | `upload`, `sent` | bodies that are taken in and given out piece by piece |
//! | `unread` | what is left of a body when its request is refused |
//! | `body`, `query`, `header_list` | the parts of a request |
//! | `prefer`, `precondition`, `idempotency_key` | the headers that change what is done |
//!
//! Not here: what the operations do, what a document may say. There is no middleware: what every request needs is in
//! `service`.

mod accepting;
mod authentication;
mod body;
mod call;
mod connections;
mod docs;
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
mod reply;
mod route;
mod router;
mod routes;
mod sent;
mod server;
mod service;
mod stopping;
mod unread;
mod upload;

pub use host_name::{HostName, InvalidHostName};
pub use memory::Memory;
pub use options::{Error, Options};
pub use server::{serve, serve_within};

/// The OpenAPI document, as it is served at `/openapi.json`.
pub fn openapi_document() -> serde_json::Value {
    openapi::document()
}
