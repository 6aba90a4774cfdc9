//! The conformance suite with an index in front of the store, with and without Redis.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use redrive_schedule_redis::Scheduled;
use redrive_store::Store;
use redrive_store::conformance::samples::{submit, task};
use redrive_store::conformance::shared_guards::FreshGuards;
use redrive_store::conformance::{Fresh, facts};
use redrive_testbed::{Database, Postgres, Redis};
use support::scheduled::{in_use, postgres, scheduled};

/// A unique prefix for each test.
fn prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn store(redis: &str) -> (Scheduled, Database) {
    let database = Postgres::shared().fresh_database();
    let store = postgres(database.url(), "one").await;
    (scheduled(store, redis, &prefix()), database)
}

mod with_redis {
    use super::*;

    static REDIS: LazyLock<Redis> = LazyLock::new(Redis::start);

    async fn fresh() -> Fresh {
        let (store, database) = store(&REDIS.url()).await;
        in_use(&store).await;
        Fresh::keeping(store, database)
    }

    redrive_store::conformance!(fresh);

    async fn fresh_guards() -> FreshGuards {
        FreshGuards::of(fresh().await)
    }

    redrive_store::shared_guards_conformance!(fresh_guards);
}

/// No server listens there.
const NO_REDIS: &str = "redis://127.0.0.1:1";

/// Without Redis every call goes to the store, whose crate runs the whole suite. Here only the long fact runs.
#[tokio::test]
async fn without_redis_a_long_random_life_ends_as_the_model_says() {
    let (store, _database) = store(NO_REDIS).await;
    facts::a_long_random_life_ends_as_the_model_says(&store).await;
}

#[tokio::test]
async fn the_commits_that_are_counted_are_those_of_the_store() {
    let (store, _database) = store(NO_REDIS).await;
    submit(&store, [task(1)]).await;
    assert_eq!(store.health().commits().unwrap().calls.sum, 1.0);
}

mod without_redis {
    use super::*;

    async fn fresh_guards() -> FreshGuards {
        let (store, database) = store(NO_REDIS).await;
        FreshGuards::of(Fresh::keeping(store, database))
    }

    redrive_store::shared_guards_conformance!(fresh_guards);
}
