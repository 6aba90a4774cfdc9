//! The conformance suite for the PostgreSQL store.

use redrive_store::NodeId;
use redrive_store::conformance::Fresh;
use redrive_store::conformance::shared_guards::FreshGuards;
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::Postgres;

async fn fresh() -> Fresh {
    let database = Postgres::shared().fresh_database();
    let options = Options::new(database.url(), NodeId::try_new("one").unwrap());
    Fresh::keeping(PostgresStore::open(options).await.unwrap(), database)
}

redrive_store::conformance!(fresh);

async fn fresh_guards() -> FreshGuards {
    FreshGuards::of(fresh().await)
}

redrive_store::shared_guards_conformance!(fresh_guards);
