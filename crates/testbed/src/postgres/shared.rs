//! The PostgreSQL server that tests share.

use std::sync::OnceLock;

use super::{Database, Options, Postgres};

/// The environment variable with the URL of a database on the server that tests share.
pub const SHARED_POSTGRES: &str = "REDRIVE_TEST_POSTGRES";

/// Started by the first test of this process if the environment names no server; its watchdog ends it.
static OUR_OWN: OnceLock<Postgres> = OnceLock::new();

/// A server for tests that need a database of their own but do no harm to the server: the one that
/// [`REDRIVE_TEST_POSTGRES`](SHARED_POSTGRES) names, or else one that is started once for this process.
#[derive(Debug, Clone)]
pub struct SharedPostgres {
    url: String,
}

impl SharedPostgres {
    pub(super) fn get() -> Self {
        let named = std::env::var(SHARED_POSTGRES).ok().filter(|url| !url.is_empty());
        let url = named.unwrap_or_else(|| {
            let quick = Options { fsync: false, settings: &[("max_connections", "500")], files: &[] };
            OUR_OWN.get_or_init(|| Postgres::start_with(quick)).url()
        });
        SharedPostgres { url }
    }

    /// The URL of a database that all tests share.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Creates a new, empty database, which is dropped with the value, also while connections to it are open.
    pub fn fresh_database(&self) -> Database {
        Database::create_temporary(&self.url)
    }
}
