//! Stores on separate databases, and other connections to these.

use std::sync::Arc;
use std::time::Duration;

use redrive_store::NodeId;
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{Database, Postgres};
use tokio_postgres::{Client, NoTls};

/// Longer than any test takes.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// A store and its database.
pub(crate) struct Opened {
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) database: Database,
}

/// The node with this name.
pub(crate) fn node(name: &str) -> NodeId {
    NodeId::try_new(name).unwrap()
}

/// A store on a fresh database, for the node with this name.
pub(crate) async fn open(name: &str) -> Opened {
    open_with(name, |options| options).await
}

/// A store on a fresh database, with changed settings.
pub(crate) async fn open_with(name: &str, change: impl FnOnce(Options) -> Options) -> Opened {
    let database = Postgres::shared().fresh_database();
    let options = change(Options::new(database.url(), node(name)));
    Opened { store: Arc::new(PostgresStore::open(options).await.unwrap()), database }
}

/// One more store on the same database.
pub(crate) async fn neighbour(opened: &Opened, name: &str) -> Arc<PostgresStore> {
    let options = Options::new(opened.database.url(), node(name));
    Arc::new(PostgresStore::open(options).await.unwrap())
}

/// A plain connection, like that of any client.
pub(crate) async fn plain(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    client
}

/// Waits until this many listeners are connected: news from before that is lost.
pub(crate) async fn until_listening(opened: &Opened, listeners: usize) {
    let client = plain(opened.database.url()).await;
    let connected = "SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()
                     AND state = 'idle'";
    while client.query(connected, &[]).await.unwrap().len() < listeners {
        tokio::task::yield_now().await;
    }
}

/// Waits until the sessions with this name have ended: only then all of their reads are counted.
pub(crate) async fn until_gone(client: &Client, name: &str) {
    let there = "SELECT FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()";
    while !client.query(there, &[&name]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

/// A small random generator with a fixed result for a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Uniform in `0..limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
