//! A server that dies and connections that break: nothing is lost, nothing happens twice, and the store recovers by
//! itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{node, open, plain};
use redrive_core::{Class, Status};
use redrive_store::conformance::samples::*;
use redrive_store::{Error, Settled, Store, Submitted};
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{Database, Postgres, Proxy};
use tokio::task::JoinHandle;

/// The size of a body that is much larger than everything else that a connection carries.
const LARGE: usize = 100_000;

/// A store that reaches its database through a proxy.
struct Proxied {
    store: Arc<PostgresStore>,
    proxy: Proxy,
    database: Database,
}

async fn proxied() -> Proxied {
    proxied_to(Postgres::shared().fresh_database()).await
}

async fn proxied_to(database: Database) -> Proxied {
    let address = database.url().split(['@', '/']).find_map(|part| part.parse::<SocketAddr>().ok()).unwrap();
    let proxy = Proxy::start(address);
    let url = database.url().replace(&address.to_string(), &proxy.address().to_string());
    // No statement is prepared separately, so that the answer that gets lost later is that of the statement itself.
    let call_timeout = Duration::from_secs(5);
    let options = Options { call_timeout, plans_last: Duration::ZERO, ..Options::new(url, node("one")) };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let known = keep_and_claim(&*store, task(900).to("elsewhere")).await;
    settle(&*store, succeed(&known, at(5))).await;
    Proxied { store, proxy, database }
}

/// Waits until the database has executed the request, whether or not its answer arrives.
async fn until_there(world: &Proxied, what: &str) {
    let client = plain(world.database.url()).await;
    while client.query(what, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

/// Waits until the proxy has dropped an answer: the request has been executed, and the caller has not been answered.
async fn until_lost(proxy: &Proxy) {
    while proxy.lost_bytes() == 0 {
        tokio::task::yield_now().await;
    }
}

/// Waits until the proxy has dropped this many bytes, which only a large body reaches.
async fn until_lost_bytes(proxy: &Proxy, bytes: u64) {
    while proxy.lost_bytes() < bytes {
        tokio::task::yield_now().await;
    }
}

/// Cuts every connection, then forwards everything again. No connection is made in between: one that has lost bytes in
/// its middle must not continue.
fn cut_and_restore(proxy: &Proxy) {
    proxy.refuse(true);
    proxy.cut_all();
    proxy.restore();
}

/// Waits until a connection for reading works. The loss of an idle connection is noticed a moment later, and until then
/// the call that gets it fails.
async fn until_readable(store: &PostgresStore) {
    while store.health().check().await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// Submits a task that starts claimed. It is committed, and its answer is lost.
async fn submit_and_lose_the_answer(world: &Proxied) -> JoinHandle<Result<Vec<Submitted>, Error>> {
    world.proxy.lose_answers();
    let store = world.store.clone();
    let submitting = tokio::spawn(async move { store.tasks().submit(vec![task(1).claimed(at(0)).0]).await });
    until_there(world, "SELECT FROM redrive.tasks WHERE idempotency_key = 'key-1'").await;
    until_lost(&world.proxy).await;
    submitting
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submit_whose_answer_was_lost_finds_out_that_it_was_kept() {
    let world = proxied().await;
    let submitting = submit_and_lose_the_answer(&world).await;
    cut_and_restore(&world.proxy);
    let answer = submitting.await.unwrap().unwrap();
    assert!(matches!(answer[..], [Submitted::Created(_, Some(_))]), "{answer:?}");
    until_readable(&world.store).await;
    assert_eq!(counts(&*world.store, acme()).await, [0, 1, 1, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submit_that_never_arrived_is_made_again() {
    let world = proxied().await;
    world.proxy.lose_requests();
    let submitting = tokio::spawn({
        let store = world.store.clone();
        async move { store.tasks().submit(vec![task(1).body(vec![7; LARGE]).0]).await }
    });
    until_lost_bytes(&world.proxy, LARGE as u64).await;
    cut_and_restore(&world.proxy);
    let created = submitting.await.unwrap().unwrap();
    assert!(matches!(created[..], [Submitted::Created(_, None)]), "{created:?}");
    until_readable(&world.store).await;
    assert_eq!(counts(&*world.store, acme()).await, [1, 0, 1, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_meets_a_connection_that_was_cut_is_made_again_on_a_fresh_one() {
    let world = proxied().await;
    keep(&*world.store, [task(1)]).await;
    for time in 0..50 {
        assert_eq!(store_counts(&world).await, 1, "before it was cut for the {time}th time");
        world.proxy.cut_all();
        assert_eq!(store_counts(&world).await, 1, "after it was cut for the {time}th time");
    }
}

async fn store_counts(world: &Proxied) -> u64 {
    world.store.reads().counts(acme()).await.unwrap()[&Status::Pending]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submit_whose_answer_died_with_the_server_finds_out_when_the_server_is_back() {
    let postgres = Postgres::start();
    let world = proxied_to(postgres.fresh_database()).await;
    let submitting = submit_and_lose_the_answer(&world).await;
    postgres.kill();
    cut_and_restore(&world.proxy);
    // Other callers get an error at once: they do not wait for the call in doubt.
    let other = world.store.tasks().submit(vec![task(2).0]).await;
    assert!(matches!(other, Err(Error::Unavailable(_))), "{other:?}");
    postgres.start_again();
    let answer = submitting.await.unwrap().unwrap();
    assert!(matches!(answer[..], [Submitted::Created(_, Some(_))]), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settle_whose_answer_was_lost_is_an_error_and_settling_again_changes_nothing() {
    let world = proxied().await;
    let claimed = keep_and_claim(&*world.store, task(1)).await;
    world.proxy.lose_answers();
    let settling = tokio::spawn({
        let (store, end) = (world.store.clone(), succeed(&claimed, at(7)));
        async move { store.tasks().settle(vec![end]).await }
    });
    until_there(&world, "SELECT FROM redrive.log WHERE ended_at = 1800000000007").await;
    until_lost(&world.proxy).await;
    cut_and_restore(&world.proxy);
    assert!(matches!(settling.await.unwrap(), Err(Error::Unavailable(_))));
    assert_eq!(settle(&*world.store, succeed(&claimed, at(6))).await, Settled::LeaseLost);
    until_readable(&world.store).await;
    assert_eq!(attempts(&*world.store, &claimed.task).await.len(), 1);
    assert_eq!(counts(&*world.store, acme()).await, [0, 0, 2, 0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_was_lost_leaves_leases_that_run_out() {
    let world = proxied().await;
    keep(&*world.store, [task(1)]).await;
    world.proxy.lose_answers();
    let claiming = tokio::spawn({
        let store = world.store.clone();
        async move { store.tasks().claim(request([room(billing(), Class::First, 1, 0)], at(5))).await }
    });
    until_there(&world, "SELECT FROM redrive.live WHERE lease_until IS NOT NULL").await;
    until_lost(&world.proxy).await;
    cut_and_restore(&world.proxy);
    assert!(matches!(claiming.await.unwrap(), Err(Error::Unavailable(_))));
    assert_eq!(claim(&*world.store, billing(), 1, at(6)).await, []);
    let expired = world.store.upkeep().expired_leases(at(9_000_000), 10).await.unwrap();
    assert_eq!(expired.len(), 1);
    assert_eq!(expired[0].task.attempt_number, 1, "the attempt counts: it may have been sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_transaction_that_does_not_end_holds_up_only_its_own_key() {
    let world = proxied().await;
    let mut client = plain(world.database.url()).await;
    client
        .batch_execute(
            "INSERT INTO redrive.policies VALUES ('default', 'default', 1) ON CONFLICT DO NOTHING;
             INSERT INTO redrive.policy_versions VALUES ('default', 'default', 1, 0, 6, 30000, 86400000, false, '{}')
             ON CONFLICT DO NOTHING",
        )
        .await
        .unwrap();
    let open = client.transaction().await.unwrap();
    let enqueue = "SELECT redrive.enqueue('http://a.b/', tenant => 'default', idempotency_key => 'held')";
    open.query_one(enqueue, &[]).await.unwrap();
    let tasks = (1..=20).map(|n| {
        let sample = task(n).of("default");
        let sample = if n == 7 { sample.key("held") } else { sample };
        let store = world.store.clone();
        async move { store.tasks().submit(vec![sample.0]).await }
    });
    let answers = futures_util::future::join_all(tasks).await;
    for (n, answer) in (1..).zip(answers) {
        match n {
            7 => assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}"),
            _ => assert!(matches!(answer.unwrap()[..], [Submitted::Created(_, None)]), "task {n}"),
        }
    }
}

/// Submits until `stop` is set; returns the acknowledged tasks.
async fn submit_until(store: Arc<PostgresStore>, caller: u64, stop: Arc<std::sync::atomic::AtomicBool>) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    let mut n = caller * 1_000_000;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        n += 1;
        match store.tasks().submit(vec![task(n).0]).await {
            Ok(answer) => {
                assert!(matches!(answer[..], [Submitted::Created(_, None)]), "{answer:?}");
                acknowledged.push(n);
            }
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
    acknowledged
}

async fn what_was_acknowledged_is_there_after(end: fn(&Postgres)) {
    let postgres = Postgres::start();
    let database = postgres.fresh_database();
    let store = Arc::new(PostgresStore::open(Options::new(database.url(), node("one"))).await.unwrap());
    allow(&*store, acme()).await;
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let callers: Vec<_> =
        (1..=8).map(|caller| tokio::spawn(submit_until(store.clone(), caller, stop.clone()))).collect();
    for round in 1..=3 {
        while counts_or_none(&store).await.is_none_or(|count| count < round * 100) {
            tokio::task::yield_now().await;
        }
        end(&postgres);
        postgres.start_again();
    }
    while counts_or_none(&store).await.is_none() {
        tokio::task::yield_now().await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut acknowledged = 0;
    for caller in callers {
        for n in caller.await.unwrap() {
            acknowledged += 1;
            assert!(
                store.reads().task(acme(), id(n)).await.unwrap().is_some(),
                "task {n} was acknowledged and is gone"
            );
        }
    }
    assert!(acknowledged >= 300, "{acknowledged}");
}

async fn counts_or_none(store: &PostgresStore) -> Option<u64> {
    let counts = store.reads().counts(acme()).await.ok()?;
    counts.get(&redrive_core::Status::Pending).copied().or(Some(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_server_that_is_killed_under_load() {
    what_was_acknowledged_is_there_after(Postgres::kill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_an_immediate_stop_under_load() {
    what_was_acknowledged_is_there_after(Postgres::stop_immediate).await;
}

/// A disk without space for a task, simulated by the error that PostgreSQL returns then.
#[tokio::test]
async fn a_store_whose_submissions_find_no_space_is_not_ready_until_there_is_some() {
    let opened = open("one").await;
    allow(&*opened.store, acme()).await;
    let client = plain(opened.database.url()).await;
    client
        .batch_execute(
            "CREATE FUNCTION redrive.no_space() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
             CREATE TRIGGER no_space BEFORE INSERT ON redrive.tasks EXECUTE FUNCTION redrive.no_space();
             CREATE TRIGGER no_space BEFORE INSERT ON redrive.meta FOR EACH ROW
             WHEN (length(NEW.value) > 8000) EXECUTE FUNCTION redrive.no_space();",
        )
        .await
        .unwrap();
    opened.store.health().check().await.unwrap();
    for _ in 0..2 {
        let refused = opened.store.tasks().submit(vec![task(1).0]).await;
        assert!(matches!(refused, Err(Error::Full(_))), "{refused:?}");
        let check = opened.store.health().check().await;
        assert!(matches!(check, Err(Error::Full(_))), "{check:?}");
    }
    client
        .batch_execute("DROP TRIGGER no_space ON redrive.tasks; DROP TRIGGER no_space ON redrive.meta")
        .await
        .unwrap();
    opened.store.health().check().await.unwrap();
    let created = submit(&*opened.store, [task(1)]).await;
    assert!(matches!(created[..], [Submitted::Created(_, None)]), "{created:?}");
    let left: i64 =
        client.query_one("SELECT count(*) FROM redrive.meta WHERE name = 'room'", &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}
