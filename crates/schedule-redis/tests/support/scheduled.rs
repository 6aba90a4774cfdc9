//! A store on PostgreSQL with the index in Redis in front of it.

use std::sync::Arc;

use redrive_schedule_redis::{InUse, Options, Schedule, Scheduled};
use redrive_store::{NodeId, Store};
use redrive_store_postgres::{Options as PostgresOptions, PostgresStore};
use redrive_testbed::{Database, Postgres};

use super::eventually;

/// The store alone, for the process with this name.
pub(crate) async fn postgres(url: &str, node: &str) -> Arc<PostgresStore> {
    let options = PostgresOptions::new(url, name(node));
    Arc::new(PostgresStore::open(options).await.unwrap())
}

/// A store with an index, which may not be in use yet.
pub(crate) fn scheduled(store: Arc<dyn Store>, redis: &str, prefix: &str) -> Scheduled {
    let options = Options { prefix: prefix.to_owned(), ..Options::default() };
    Scheduled::new(store, Schedule::new(redis.parse().unwrap(), options).unwrap()).unwrap()
}

/// Waits until all partitions are in use.
pub(crate) async fn in_use(store: &Scheduled) {
    let everything = InUse { complete: 256, incomplete: 0, failed: 0 };
    eventually("the index is in use", || async { store.in_use() == everything }).await;
}

/// Two processes over one database and one Redis, with the index in use.
pub(crate) struct Pair {
    pub(crate) one: Scheduled,
    pub(crate) other: Scheduled,
    pub(crate) database: Database,
}

impl Pair {
    /// Starts two processes that receive news over Redis alone: PostgreSQL's own news need a session, and the stores
    /// are configured without one.
    pub(crate) async fn start(redis: &str) -> Self {
        let database = Postgres::shared().fresh_database();
        let open = async |node: &str| {
            let options = PostgresOptions { is_pooled: true, ..PostgresOptions::new(database.url(), name(node)) };
            scheduled(Arc::new(PostgresStore::open(options).await.unwrap()), redis, "redrive")
        };
        let (one, other) = (open("one").await, open("other").await);
        in_use(&one).await;
        in_use(&other).await;
        Pair { one, other, database }
    }
}

fn name(node: &str) -> NodeId {
    NodeId::try_new(node).unwrap()
}
