//! The PostgreSQL server that the tests of one run share. Each test makes a database of its own on it, in milliseconds;
//! tests that kill a server start their own.

use redrive_testbed::{Postgres, SHARED_POSTGRES, postgres};

/// Quick, since nothing on it outlives the run, and with room for all concurrent tests.
const OPTIONS: postgres::Options<'_> = postgres::Options {
    fsync: false,
    settings: &[("max_connections", "500"), ("shared_buffers", "128MB")],
    files: &[],
};

/// The server. It ends when this is dropped, and when this process ends in any other way.
pub(super) struct SharedServer {
    /// `None` if the environment names a server, which is not this process's to end.
    _started: Option<Postgres>,
    url: String,
}

impl SharedServer {
    /// Starts it, unless the environment names one.
    pub(super) fn start() -> Self {
        if let Some(url) = std::env::var(SHARED_POSTGRES).ok().filter(|url| !url.is_empty()) {
            println!("──▶ the tests share the PostgreSQL server of {SHARED_POSTGRES}");
            return SharedServer { _started: None, url };
        }
        let postgres = Postgres::start_with(OPTIONS);
        println!("──▶ the tests share a PostgreSQL server on port {}", postgres.port());
        SharedServer { url: postgres.url(), _started: Some(postgres) }
    }

    /// The URL of a database on it.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}
