//! Failover: an address leads to a replica for a moment, and connections from that moment are not kept.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::{node, plain};
use redrive_core::Class;
use redrive_store::conformance::samples::*;
use redrive_store::{Error, Store, Submitted};
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{Postgres, Proxy};

fn address_of(server: &Postgres) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], server.port()))
}

/// How many calls a burst makes.
const CALLS: usize = 50;

/// Makes many calls at a time, so that every connection is used. Returns the errors of those that failed.
async fn burst(store: &Arc<PostgresStore>, first: u64) -> Vec<Error> {
    let submits = (first..first + 20).map(|n| async move { store.tasks().submit(vec![task(n).0]).await.map(drop) });
    let claims = (0..10).map(|_| async move {
        store.tasks().claim(request([room(billing(), Class::First, 1, 0)], at(0))).await.map(drop)
    });
    let checks = (0..10).map(|_| store.health().check());
    let others = (0..10).map(|_| store.shared().unwrap().leave());
    let (submits, claims, checks, others) = tokio::join!(
        futures_util::future::join_all(submits),
        futures_util::future::join_all(claims),
        futures_util::future::join_all(checks),
        futures_util::future::join_all(others)
    );
    submits.into_iter().chain(claims).chain(checks).chain(others).filter_map(Result::err).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_at_a_replica_leaves_no_connection_that_cannot_write() {
    let quick = redrive_testbed::postgres::Options { fsync: false, settings: &[], files: &[] };
    let primary = Postgres::start_with(quick);
    let database = primary.fresh_database();
    let proxy = Proxy::start(address_of(&primary));
    let url = database.url().replace(&address_of(&primary).to_string(), &proxy.address().to_string());
    let store = Arc::new(PostgresStore::open(Options::new(url, node("one"))).await.unwrap());
    allow(&*store, acme()).await;
    let standby = primary.start_standby();

    proxy.lead_to(address_of(&standby));
    proxy.cut_all();
    let refused = burst(&store, 1).await;
    assert_eq!(refused.len(), CALLS, "{refused:?}");
    assert!(refused.iter().all(|error| matches!(error, Error::Unavailable(_))), "{refused:?}");
    // The connections to the replica stay open: only Redrive itself closes them.
    proxy.lead_to(address_of(&primary));
    let refused = burst(&store, 101).await;
    assert!(refused.is_empty(), "{refused:?}");

    primary.kill();
    standby.promote();
    proxy.lead_to(address_of(&standby));
    while store.health().check().await.is_err() {
        tokio::task::yield_now().await;
    }
    let created = store.tasks().submit(vec![task(301).0]).await.unwrap();
    assert!(matches!(created[..], [Submitted::Created(_, None)]), "{created:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_became_read_only_is_not_used_again() {
    let quick = redrive_testbed::postgres::Options { fsync: false, settings: &[], files: &[] };
    let postgres = Postgres::start_with(quick);
    let database = postgres.fresh_database();
    let store = Arc::new(PostgresStore::open(Options::new(database.url(), node("one"))).await.unwrap());
    allow(&*store, acme()).await;
    assert!(burst(&store, 1).await.is_empty());
    let client = plain(database.url()).await;
    let sessions =
        "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'redrive %' AND query NOT LIKE 'LISTEN%'";
    let before: Vec<i32> = client.query(sessions, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    client.batch_execute("ALTER SYSTEM SET default_transaction_read_only = on").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    while burst(&store, 101).await.len() < CALLS {}
    client.batch_execute("SET default_transaction_read_only = off").await.unwrap();
    client.batch_execute("ALTER SYSTEM RESET default_transaction_read_only").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    while !burst(&store, 201).await.is_empty() {}
    let after: Vec<i32> = client.query(sessions, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(after.iter().all(|session| !before.contains(session)), "{before:?}, {after:?}");
}
