//! The store as a role that owns nothing, with the rights that docs/deploying.md prints and no others.

use std::time::Duration;

use redrive_store::MemoryStore;
use redrive_store::conformance::samples::at;
use redrive_store::conformance::shared_guards::FreshGuards;
use redrive_store::conformance::{Fresh, workload};
use redrive_store_postgres::{Options, PostgresStore, migrate};
use redrive_testbed::Postgres;

use crate::records;
use crate::support::{Random, node, plain};

/// The document's statements, for its role `redrive` in its database `redrive`, after a migration by `redrive_owner`.
fn statements_of_the_document() -> String {
    let document = include_str!("../../../../docs/deploying.md");
    let (_, section) = document.split_once("### A role with fewer rights").unwrap();
    let grants = section.split("```sql\n").find(|block| block.trim_start().starts_with("GRANT CONNECT")).unwrap();
    grants.split_once("```").unwrap().0.to_owned()
}

async fn fresh() -> Fresh {
    let database = Postgres::shared().fresh_database();
    let admin = plain(database.url()).await;
    let name = database.name();
    let (owner, nodes) = (format!("{name}_owner"), format!("{name}_nodes"));
    let roles = format!("CREATE ROLE {owner} LOGIN; CREATE ROLE {nodes} LOGIN; ALTER DATABASE {name} OWNER TO {owner}");
    admin.batch_execute(&roles).await.unwrap();
    // Whatever PUBLIC has by default is not what makes it work.
    let hardened = format!(
        "REVOKE ALL ON DATABASE {name} FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC;
         ALTER DEFAULT PRIVILEGES FOR ROLE {owner} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"
    );
    admin.batch_execute(&hardened).await.unwrap();
    let url_of = |role: &str| database.url().replace("redrive@", &format!("{role}@"));
    migrate(&Options::new(url_of(&owner), node("by-hand"))).await.unwrap();
    let grants = statements_of_the_document()
        .replace("DATABASE redrive", &format!("DATABASE {name}"))
        .replace("redrive_owner", &owner)
        .replace("TO redrive;", &format!("TO {nodes};"));
    plain(&url_of(&owner)).await.batch_execute(&grants).await.unwrap();
    let options = Options { migrate: false, ..Options::new(url_of(&nodes), node("one")) };
    Fresh::keeping(PostgresStore::open(options).await.unwrap(), database)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_random_life_ends_as_the_model_says_for_a_role_that_owns_nothing() {
    let store = fresh().await;
    workload::run(&*store, 11, 400).await;
    let (model, mut random, mut now) = (MemoryStore::new(), Random(6), at(0));
    for n in 0..100 {
        now = now.after(Duration::from_millis(random.below(30_000)));
        records::step(&mut random, n, &*store, &model, now).await;
    }
}

async fn fresh_guards() -> FreshGuards {
    FreshGuards::of(fresh().await)
}

redrive_store::shared_guards_conformance!(fresh_guards);
