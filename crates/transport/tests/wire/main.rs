//! What the transport does on the wire, against servers that behave and servers that do not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod broken;
mod call;
mod connecting;
mod http2;
mod keeping;
mod names;
mod requests;
#[path = "../../../blobs/tests/support/s3.rs"]
mod s3;
mod secure;
mod stored;
#[path = "../support/mod.rs"]
mod support;
mod withdrawn;
