//! The conformance suite through a pooler that lends a session for one transaction at a time.

use std::time::Duration;

use crate::records;
use crate::support::{Random, node, plain};
use redrive_store::MemoryStore;
use redrive_store::conformance::samples::at;
use redrive_store::conformance::{Fresh, workload};
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{PgBouncer, Postgres};

/// One test for all facts, because each would start its own servers.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_random_life_ends_as_the_model_says_behind_a_transaction_pooler() {
    let postgres = Postgres::start_with(redrive_testbed::postgres::Options { fsync: false, settings: &[], files: &[] });
    let database = postgres.fresh_database();
    let pooler = PgBouncer::start(&postgres);
    let options = Options {
        is_pooled: true,
        listen_url: Some(database.url().to_owned()),
        ..Options::new(pooler.url(database.name()), node("one"))
    };
    let store = PostgresStore::open(options).await.unwrap();
    let fresh = Fresh::new(store);
    workload::run(&*fresh, 7, 400).await;
    let (model, mut random, mut now) = (MemoryStore::new(), Random(5), at(0));
    for n in 0..100 {
        now = now.after(Duration::from_millis(random.below(30_000)));
        records::step(&mut random, n, &*fresh, &model, now).await;
    }
    // Nothing is left behind in the session for its next user.
    let client = plain(&pooler.url(database.name())).await;
    for setting in ["enable_seqscan", "enable_hashjoin"] {
        let value: String =
            client.query_one(&format!("SELECT current_setting('{setting}')"), &[]).await.unwrap().get(0);
        assert_eq!(value, "on", "{setting}");
    }
}
