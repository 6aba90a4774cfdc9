//! A server that dies and connections that break: nothing is lost, nothing happens twice, and the store recovers by
//! itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::records;
use crate::support::{node, open, plain};
use redrive_core::idempotency::{self, Change, Changed, Epoch, Previous, Reserve, Reserved};
use redrive_core::{Class, Status};
use redrive_store::conformance::samples::*;
use redrive_store::{Error, RecordChanged, Settled, Store, Submitted};
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{Database, Postgres, Proxy};
use tokio::task::JoinHandle;

/// The size of a body that is much larger than everything else that a connection carries.
const LARGE: usize = 100_000;

/// How long the database may take before a test fails instead of waiting without end.
const PATIENCE: Duration = Duration::from_secs(120);

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
    let options = Options { plans_last: Duration::ZERO, ..Options::new(url, node("one")) };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let known = keep_and_claim(&*store, task(900).to("elsewhere")).await;
    settle(&*store, succeed(&known, at(5))).await;
    Proxied { store, proxy, database }
}

/// Waits until the database has executed the request, whether or not its answer arrives.
async fn until_there(world: &Proxied, what: &str) {
    let client = plain(world.database.url()).await;
    let there = async {
        while client.query(what, &[]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, there).await.unwrap_or_else(|_| panic!("nothing was found by: {what}"));
}

/// Whether the database executes the request of this call. If a claim needs more than one statement, because it looks at
/// the beginning of a lane again, the answer of the first one is lost and the call ends without having done anything.
async fn is_there_before_its_end<T>(world: &Proxied, what: &str, call: &JoinHandle<T>) -> bool {
    let client = plain(world.database.url()).await;
    loop {
        let has_ended = call.is_finished();
        if !client.query(what, &[]).await.unwrap().is_empty() {
            return true;
        }
        if has_ended {
            return false;
        }
        tokio::task::yield_now().await;
    }
}

/// Waits until the proxy has dropped an answer: the request has been executed, and the caller has not been answered.
async fn until_lost(proxy: &Proxy) {
    while proxy.lost_bytes() == 0 {
        tokio::task::yield_now().await;
    }
}

/// Waits until the proxy has dropped a large body. A call that ends before has sent no body: it had no connection.
async fn until_body_lost<T>(proxy: &Proxy, call: &JoinHandle<T>) {
    while proxy.lost_bytes() < LARGE as u64 {
        assert!(!call.is_finished(), "the call ended after {} bytes", proxy.lost_bytes());
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

/// Makes a call until it reaches the database. The loss of an idle connection is noticed a moment later, and a call that
/// writes and gets such a connection fails. (A read is made again by itself.)
async fn reconnected<T>(call: impl AsyncFn() -> Result<T, Error>) -> T {
    loop {
        match call().await {
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            answer => return answer.unwrap(),
        }
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
    until_body_lost(&world.proxy, &submitting).await;
    cut_and_restore(&world.proxy);
    let created = submitting.await.unwrap().unwrap();
    assert!(matches!(created[..], [Submitted::Created(_, None)]), "{created:?}");
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
    let again = reconnected(|| world.store.tasks().settle(vec![succeed(&claimed, at(6))])).await;
    assert_eq!(again, [Settled::LeaseLost]);
    assert_eq!(attempts(&*world.store, &claimed.task).await.len(), 1);
    assert_eq!(counts(&*world.store, acme()).await, [0, 0, 2, 0, 0, 0]);
}

/// Commits that write records wait until the gate is open. A commit that has begun has had all earlier answers.
const GATE: &str = "
CREATE TABLE gate (is_open boolean NOT NULL);
INSERT INTO gate VALUES (true);
CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WHILE NOT (SELECT is_open FROM gate) LOOP
        PERFORM pg_sleep(0.001);
    END LOOP;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER gate AFTER INSERT OR UPDATE ON redrive.idempotency_records
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_gate()";

/// Lets a commit that waits at the gate succeed, and loses its answer. Then the connection breaks.
async fn lose_the_answer_to_a_commit(world: &Proxied, record: &str) {
    let client = plain(world.database.url()).await;
    let committing = "SELECT FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active'
                      AND datname = current_database()";
    until_there(world, committing).await;
    let lost = world.proxy.lost_bytes();
    world.proxy.lose_answers();
    client.batch_execute("UPDATE gate SET is_open = true").await.unwrap();
    until_there(world, &format!("SELECT FROM redrive.idempotency_records WHERE {record}")).await;
    while world.proxy.lost_bytes() == lost {
        tokio::task::yield_now().await;
    }
    cut_and_restore(&world.proxy);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_record_whose_answer_was_lost_is_answered_as_it_was_made() {
    let world = proxied().await;
    let client = plain(world.database.url()).await;
    client.batch_execute(GATE).await.unwrap();
    records::reserve(&*world.store, "a", 1, at(0)).await;
    client.batch_execute("UPDATE gate SET is_open = false").await.unwrap();
    let changing = tokio::spawn({
        let (store, made) = (world.store.clone(), Change::Complete(records::response("done")));
        async move { store.records().change_one(records::key("a"), records::owner(1, 1), made, at(1)).await }
    });
    lose_the_answer_to_a_commit(&world, "state = 'SUCCEEDED'").await;
    let answer = changing.await.unwrap().unwrap();
    assert!(matches!(&answer, RecordChanged::Decided(Changed::Done(_))), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_whose_answer_was_lost_is_answered_as_it_was_made() {
    let world = proxied().await;
    let late = at(0).after(Duration::from_secs(60));
    let takes_over = Reserved::Granted {
        epoch: Epoch(2),
        lease_until: late.after(Duration::from_secs(60)),
        previous: Some(Previous { owner: records::owner(1, 1), state: idempotency::State::InProgress }),
    };
    let complete = Reserved::Granted { epoch: Epoch(1), lease_until: late, previous: None };
    let client = plain(world.database.url()).await;
    client.batch_execute(GATE).await.unwrap();
    // A record whose owner is replaced, and one that is complete at once.
    records::reserve(&*world.store, "taken-over", 1, at(0)).await;
    for (name, is_complete, expected) in [("taken-over", false, takes_over), ("complete", true, complete)] {
        client.batch_execute("UPDATE gate SET is_open = false").await.unwrap();
        let reserving = tokio::spawn({
            let store = world.store.clone();
            let ask = Reserve { is_complete, ..records::ask(2) };
            async move { store.records().reserve_one(records::key(name), ask, late).await }
        });
        lose_the_answer_to_a_commit(&world, &format!("name = '{name}' AND started_at = {}", late.as_millis())).await;
        assert_eq!(reserving.await.unwrap().unwrap(), expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_was_lost_leaves_leases_that_run_out() {
    let world = proxied().await;
    keep(&*world.store, [task(1)]).await;
    let mut is_claimed = false;
    for _ in 0..5 {
        world.proxy.lose_answers();
        let claiming = tokio::spawn({
            let store = world.store.clone();
            async move { store.tasks().claim(request([room(billing(), Class::First, 1, 0)], at(5))).await }
        });
        let leased = "SELECT FROM redrive.live WHERE lease_until IS NOT NULL";
        is_claimed = is_there_before_its_end(&world, leased, &claiming).await;
        until_lost(&world.proxy).await;
        cut_and_restore(&world.proxy);
        assert!(matches!(claiming.await.unwrap(), Err(Error::Unavailable(_))));
        if is_claimed {
            break;
        }
        // The connections that were cut are gone once a call has noticed it.
        reconnected(|| world.store.upkeep().expired_leases(at(0), 10)).await;
    }
    assert!(is_claimed, "no claim was executed");
    let rooms = || Class::ALL.map(|class| room(billing(), class, 1, 0));
    let claims = reconnected(|| world.store.tasks().claim(request(rooms(), at(6)))).await;
    assert_eq!(claims.claimed, []);
    let expired = reconnected(|| world.store.upkeep().expired_leases(at(9_000_000), 10)).await;
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
