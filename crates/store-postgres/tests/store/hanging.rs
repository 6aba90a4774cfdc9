//! Commits that hang because a synchronous standby is away: connections and callers stay within their bounds.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{node, plain};
use redrive_core::{Class, policy};
use redrive_store::conformance::samples::*;
use redrive_store::{Error, Expected, Store};
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{Postgres, Proxy};
use tokio::net::TcpListener;
use tokio_postgres::Client;

/// The documented maximum for one node: `postgres.connections`, and one for LISTEN.
const MOST_CONNECTIONS: i64 = 12 + 1;
/// Enough rounds to exceed that maximum if every call that is given up left a connection behind.
const ROUNDS: u64 = 6;

async fn connections(client: &Client) -> i64 {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'redrive %'";
    client.query_one(count, &[]).await.unwrap().get(0)
}

/// Opens a store with a short call timeout. On a busy machine that may take several tries.
async fn impatient(url: &str) -> Arc<PostgresStore> {
    let options = Options { call_timeout: Duration::from_secs(1), ..Options::new(url, node("one")) };
    loop {
        if let Ok(store) = PostgresStore::open(options.clone()).await {
            return Arc::new(store);
        }
    }
}

async fn set_standby(client: &Client, name: &str) {
    client.batch_execute(&format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'")).await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
}

fn is_unavailable<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Unavailable(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_hang_take_no_more_connections_than_there_may_be() {
    let quick = redrive_testbed::postgres::Options { fsync: false, settings: &[], files: &[] };
    let postgres = Postgres::start_with(quick);
    let database = postgres.fresh_database();
    let patient = PostgresStore::open(Options::new(database.url(), node("first"))).await.unwrap();
    allow(&patient, acme()).await;
    patient.close().await;
    let store = impatient(database.url()).await;
    let client = plain(database.url()).await;
    set_standby(&client, "nobody").await;
    while store.health().check().await.is_ok() {
        tokio::task::yield_now().await;
    }
    let mut submits = Vec::new();
    for round in 1..=ROUNDS {
        for n in 0..4 {
            let store = store.clone();
            submits.push(tokio::spawn(async move { store.tasks().submit(vec![task(10 * round + n).0]).await }));
        }
        let spec = policy::Spec { max_attempts: Some(u32::try_from(round).unwrap()), ..Default::default() };
        let put = store.policies().put(acme(), policy_id("hooks"), spec, Expected::Anything, at(0));
        let beat = store.shared().unwrap().leave();
        let claim = store.tasks().claim(request([room(billing(), Class::First, 1, 0)], at(0)));
        let (put, _, _, check) = tokio::join!(put, beat, claim, store.health().check());
        assert!(is_unavailable(&put) && is_unavailable(&check), "round {round}: {put:?}, {check:?}");
        // Calls that only read have a connection reserved.
        while store.reads().counts(acme()).await.is_err() {
            tokio::task::yield_now().await;
        }
        let connections = connections(&client).await;
        assert!(connections <= MOST_CONNECTIONS, "{connections} in round {round}");
    }
    set_standby(&client, "").await;
    while store.health().check().await.is_err() {
        tokio::task::yield_now().await;
    }
    for submit in submits {
        let answer = submit.await.unwrap();
        assert!(answer.is_ok() || is_unavailable(&answer), "{answer:?}");
    }
    // The server needs a moment to notice that a connection was closed.
    while connections(&client).await > MOST_CONNECTIONS {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_never_come_are_no_more_than_there_may_be() {
    let database = Postgres::shared().fresh_database();
    let address = database.url().split(['@', '/']).find_map(|part| part.parse::<SocketAddr>().ok()).unwrap();
    let proxy = Proxy::start(address);
    let url = database.url().replace(&address.to_string(), &proxy.address().to_string());
    let options = Options {
        call_timeout: Duration::from_millis(200),
        connect_timeout: Duration::from_secs(600),
        ..Options::new(url, node("one"))
    };
    let store = loop {
        if let Ok(store) = PostgresStore::open(options.clone()).await {
            break store;
        }
    };
    // A server that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    proxy.lead_to(silent.local_addr().unwrap());
    proxy.cut_all();
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let (accepting, kept) = (silent, accepted.clone());
    let server = tokio::spawn(async move {
        loop {
            let (connection, _) = accepting.accept().await.unwrap();
            kept.lock().unwrap().push(connection);
        }
    });
    for _ in 0..2 * ROUNDS {
        let calls = (0..16).map(|_| store.reads().counts(acme()));
        for outcome in futures_util::future::join_all(calls).await {
            assert!(is_unavailable(&outcome), "{outcome:?}");
        }
    }
    let accepted = accepted.lock().unwrap().len();
    assert!((1..=MOST_CONNECTIONS as usize).contains(&accepted), "{accepted} connections");
    server.abort();
}
