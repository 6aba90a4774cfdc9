//! What the tests are played in: a running service, targets to send to, and the command line.

mod business;
mod call;
mod program;
#[path = "../../../../blobs/tests/support/s3.rs"]
pub(crate) mod s3;
mod service;
mod target;
#[path = "../../../../dial/tests/support/tls.rs"]
#[allow(dead_code, unreachable_pub, reason = "other crates' tests use the rest of it")]
mod tls;
mod tls_proxy;

pub(crate) use business::{Business, TABLE};
pub(crate) use call::{answer_to_post, get, post};
pub(crate) use program::{Ended, Program, redrive, redrive_on_terminal, redrive_with_few_files};
pub(crate) use service::Service;
pub(crate) use target::{Arrival, Reply, Target};
pub(crate) use tls_proxy::TlsProxy;

use std::time::Duration;

/// How long anything may take before a test is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
