//! Idempotency records that several nodes share, and transactions of other programs that hold them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use redrive_core::idempotency::{
    Change, Changed, Completion, Epoch, ExecutionId, Owner, Previous, RecordKey, RequestHash, Reserve, Reserved,
    Response, State,
};
use redrive_core::{BodyRef, RecordName, Timestamp};
use redrive_store::conformance::samples::{acme, at, stored};
use redrive_store::{
    Error, MemoryStore, OperationFilter, RecordChange, RecordChanged, RecordQuery, Reservation, SeenRecord, Store,
};
use redrive_store_postgres::PostgresStore;
use tokio_postgres::Client;

use crate::support::{Opened, Random, neighbour, open, plain, until_gone};

const LEASE: Duration = Duration::from_secs(60);
const RETENTION: Duration = Duration::from_secs(3_600);

pub(crate) fn key(name: &str) -> RecordKey {
    key_of("pay", name)
}

fn key_of(operation: &str, name: &str) -> RecordKey {
    RecordKey { tenant: acme(), operation: operation.parse().unwrap(), name: RecordName::try_new(name).unwrap() }
}

pub(crate) fn ask(number: u128) -> Reserve {
    Reserve {
        request_hash: RequestHash([1; 32]),
        execution: ExecutionId::from_u128(number),
        lease: LEASE,
        retention: RETENTION,
        is_complete: false,
    }
}

pub(crate) fn owner(number: u128, epoch: u64) -> Owner {
    Owner { execution: ExecutionId::from_u128(number), epoch: Epoch(epoch) }
}

pub(crate) fn response(body: &'static str) -> Completion {
    Completion { response: Some(Response { status: 201, headers: vec![], body: body.into() }), resource: None }
}

fn stored_response(body: BodyRef) -> Completion {
    Completion { response: Some(Response { status: 201, headers: vec![], body: body.into() }), resource: None }
}

pub(crate) async fn reserve(store: &dyn Store, name: &str, number: u128, now: Timestamp) -> Reserved {
    store.records().reserve_one(key(name), ask(number), now).await.unwrap()
}

pub(crate) async fn change(store: &dyn Store, name: &str, by: Owner, made: Change, now: Timestamp) -> RecordChanged {
    store.records().change_one(key(name), by, made, now).await.unwrap()
}

fn is_granted(answer: &Reserved) -> bool {
    matches!(answer, Reserved::Granted { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_callers_on_three_nodes_one_owns_the_record() {
    let opened = open("one").await;
    let stores = [opened.store.clone(), neighbour(&opened, "two").await, neighbour(&opened, "three").await];
    let calls = (0..1_000).map(|n| {
        let store = stores[n % 3].clone();
        tokio::spawn(async move { reserve(&*store, "a", n as u128, at(0)).await })
    });
    let answers: Vec<Reserved> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|answer| is_granted(answer)).count(), 1);
    let others = answers.iter().filter(|answer| {
        matches!(answer, Reserved::InProgress { started_at, lease_until }
            if (*started_at, *lease_until) == (at(0), at(0).after(LEASE)))
    });
    assert_eq!(others.count(), 999, "the others are told when they may take over");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_takes_over_after_the_lease_and_the_owner_before_is_fenced() {
    let opened = open("one").await;
    let (one, two) = (opened.store.clone(), neighbour(&opened, "two").await);
    assert!(is_granted(&reserve(&*one, "a", 1, at(0)).await));
    let late = at(0).after(LEASE);
    let taken = Reserved::Granted {
        epoch: Epoch(2),
        lease_until: late.after(LEASE),
        previous: Some(Previous { owner: owner(1, 1), state: State::InProgress }),
    };
    assert_eq!(reserve(&*two, "a", 2, late).await, taken);
    let complete = |body| Change::Complete(response(body));
    let fenced = RecordChanged::Decided(Changed::Fenced);
    assert_eq!(change(&*one, "a", owner(1, 1), complete("one"), late).await, fenced);
    let done = change(&*two, "a", owner(2, 2), complete("two"), late).await;
    assert!(matches!(done, RecordChanged::Decided(Changed::Done(_))), "{done:?}");
    assert_eq!(change(&*one, "a", owner(1, 1), complete("one"), late).await, fenced);
    let Reserved::Ended(record) = reserve(&*one, "a", 3, late).await else { panic!("it has ended") };
    assert_eq!(record.completion, response("two"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_callers_on_two_nodes_one_takes_over_after_the_lease() {
    let opened = open("one").await;
    let stores = [opened.store.clone(), neighbour(&opened, "two").await];
    assert!(is_granted(&reserve(&*stores[0], "a", 1, at(0)).await));
    for round in 1..=10 {
        let late = at(round * 60_000);
        let calls = (0..40).map(|n| {
            let (store, number) = (stores[n % 2].clone(), u128::from(round) * 1_000 + n as u128);
            tokio::spawn(async move { reserve(&*store, "a", number, late).await })
        });
        let answers: Vec<Reserved> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
        let epochs: Vec<_> = answers
            .iter()
            .filter_map(|answer| match answer {
                Reserved::Granted { epoch, .. } => Some(epoch.0),
                _ => None,
            })
            .collect();
        assert_eq!(epochs, [round + 1], "each round has one new owner");
    }
}

/// Reserves the keys `b` to `z` and the held key together, on one store.
async fn reserve_all(store: &Arc<PostgresStore>, held: &str, first: u128) -> (Reserved, usize) {
    let names = (b'b'..=b'z').map(|name| char::from(name).to_string()).chain([held.to_owned()]);
    let calls = (first..).zip(names).map(|(number, name)| {
        let store = store.clone();
        tokio::spawn(async move { reserve(&*store, &name, number, at(5)).await })
    });
    let mut answers: Vec<Reserved> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let held = answers.pop().unwrap();
    (held, answers.iter().filter(|answer| is_granted(answer)).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_an_open_transaction_has_inserted_is_in_progress_and_holds_up_no_other() {
    let opened = open("one").await;
    let mut client = plain(opened.database.url()).await;
    let open = client.transaction().await.unwrap();
    open.batch_execute(INSERT).await.unwrap();
    let (held, granted) = reserve_all(&opened.store, "held", 1).await;
    let in_progress = Reserved::InProgress { started_at: at(5), lease_until: at(1_005) };
    assert_eq!((held, granted), (in_progress.clone(), 25));
    // Also for one call with all of them.
    let items = (0..40).map(|n| {
        let name = if n == 7 { "held".to_owned() } else { format!("n-{n}") };
        Reservation { key: key(&name), ask: ask(100 + n) }
    });
    let answers = opened.store.records().reserve(items.collect(), at(5)).await.unwrap();
    for (n, answer) in answers.into_iter().map(Result::unwrap).enumerate() {
        assert!(if n == 7 { answer == in_progress } else { is_granted(&answer) }, "{n}: {answer:?}");
    }
    open.rollback().await.unwrap();
    assert!(is_granted(&reserve(&*opened.store, "held", 200, at(6)).await), "nothing is left of it");
}

/// What an application's transaction does that has reserved a key, or has changed it.
const INSERT: &str = "
INSERT INTO redrive.idempotency_records
VALUES ('acme', 'pay', 'held', gen_random_uuid(), 1, 0, 0, 0, 0, 0, 'IN_PROGRESS', '')";
const UPDATE: &str = "UPDATE redrive.idempotency_records SET updated_at = updated_at + 1 WHERE name = 'held'";

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_an_open_transaction_has_changed_holds_up_no_other() {
    let opened = open("one").await;
    for name in ["held", "b"] {
        assert!(is_granted(&reserve(&*opened.store, name, 1, at(0)).await));
    }
    let mut client = plain(opened.database.url()).await;
    let open = client.transaction().await.unwrap();
    open.batch_execute(UPDATE).await.unwrap();
    let (held, granted) = reserve_all(&opened.store, "held", 10).await;
    let in_progress = Reserved::InProgress { started_at: at(0), lease_until: at(0).after(LEASE) };
    assert_eq!((held, granted), (in_progress, 24), "the others, but for one that is owned");
    let asked = Reserve { request_hash: RequestHash([2; 32]), ..ask(50) };
    let other = opened.store.records().reserve_one(key("held"), asked, at(6)).await.unwrap();
    assert_eq!(other, Reserved::OtherRequest, "by what is committed");
    let late = at(0).after(LEASE);
    let held = Reserved::InProgress { started_at: late, lease_until: late.after(Duration::from_secs(1)) };
    assert_eq!(reserve(&*opened.store, "held", 51, late).await, held, "it cannot be taken over now");
    let complete = |name: &str| RecordChange {
        key: key(name),
        owner: owner(1, 1),
        change: Change::Complete(Completion::default()),
    };
    let made = opened.store.records().change(vec![complete("held"), complete("b")], at(6)).await.unwrap();
    let [held, other] = &made[..] else { panic!("{made:?}") };
    assert!(matches!(held, Err(Error::Unavailable(told)) if told.contains("an open transaction holds")), "{held:?}");
    assert!(matches!(other, Ok(RecordChanged::Decided(Changed::Done(_)))), "{other:?}");
    open.rollback().await.unwrap();
    let done = change(&*opened.store, "held", owner(1, 1), Change::Release, at(7)).await;
    assert!(matches!(done, RecordChanged::Decided(Changed::Done(_))), "{done:?}");
}

/// On one thread, so that all calls are queued before the writer takes its next batch.
#[tokio::test]
async fn many_calls_for_a_held_key_are_tried_once_and_another_key_does_not_wait_for_them() {
    let opened = open("one").await;
    assert!(is_granted(&reserve(&*opened.store, "held", 1, at(0)).await));
    let mut client = plain(opened.database.url()).await;
    let open = client.transaction().await.unwrap();
    open.batch_execute(UPDATE).await.unwrap();
    let late = at(0).after(LEASE);
    let names = std::iter::repeat_n("held", 100).chain(["free"]);
    let mut calls: FuturesUnordered<_> = (10..)
        .zip(names)
        .map(|(number, name)| {
            let store = opened.store.clone();
            async move { (name, reserve(&*store, name, number, late).await) }
        })
        .collect();
    let watcher = plain(opened.database.url()).await;
    let waiting = "SELECT pid::text || query_start FROM pg_stat_activity
                   WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let mut tries = BTreeSet::<String>::new();
    let held = Reserved::InProgress { started_at: late, lease_until: late.after(Duration::from_secs(1)) };
    // Not interrupted before all calls are queued.
    let answered = tokio::task::unconstrained(async {
        let (first, answer) = calls.next().await.unwrap();
        assert!(first == "free" && is_granted(&answer), "{first}: {answer:?}");
        let answers: Vec<_> = calls.collect().await;
        assert!(answers.iter().all(|(_, answer)| *answer == held), "{answers:?}");
    });
    let watching = async {
        loop {
            tries.extend(watcher.query(waiting, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0)));
        }
    };
    tokio::select! {
        () = answered => {}
        () = watching => {}
    }
    assert!(tries.len() <= 1, "one try for all calls: {tries:?}");
    open.rollback().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_thousand_records_is_one_transaction() {
    let opened = open("one").await;
    let client = plain(opened.database.url()).await;
    let items = (0..1_000).map(|n| Reservation { key: key(&format!("n-{n}")), ask: ask(n) });
    let answers = opened.store.records().reserve(items.collect(), at(1)).await.unwrap();
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(is_granted)));
    let transactions = "SELECT count(*), count(DISTINCT xmin::text) FROM redrive.idempotency_records";
    let counted = async || {
        let row = client.query_one(transactions, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    assert_eq!(counted().await, (1_000, 1));
    let made = (0..1_000).map(|n| RecordChange {
        key: key(&format!("n-{n}")),
        owner: owner(n, 1),
        change: Change::Complete(Completion::default()),
    });
    let answers = opened.store.records().change(made.collect(), at(2)).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Ok(RecordChanged::Decided(Changed::Done(_))))));
    assert_eq!(counted().await, (1_000, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_fails_only_its_own_items() {
    let opened = open("one").await;
    let store = &*opened.store;
    for name in ["a", "b", "c"] {
        assert!(is_granted(&reserve(store, name, 1, at(0)).await));
    }
    let damage = "UPDATE redrive.idempotency_records SET state = 'HALF_DONE' WHERE name = 'b'";
    plain(opened.database.url()).await.batch_execute(damage).await.unwrap();
    let items = ["a", "b", "c", "d"].map(|name| Reservation { key: key(name), ask: ask(2) });
    let answers = store.records().reserve(items.into(), at(1)).await.unwrap();
    assert!(matches!(answers[0], Ok(Reserved::InProgress { .. })), "{answers:?}");
    assert!(matches!(&answers[1], Err(Error::Corrupt(told)) if told.contains("HALF_DONE")), "{answers:?}");
    assert!(matches!(answers[3], Ok(Reserved::Granted { .. })), "{answers:?}");
    let items = ["a", "b"].map(|name| RecordChange { key: key(name), owner: owner(1, 1), change: Change::Release });
    let answers = store.records().change(items.into(), at(1)).await.unwrap();
    assert!(matches!(answers[..], [Ok(_), Err(Error::Corrupt(_))]), "{answers:?}");
    assert!(matches!(store.records().read(key("b"), at(1)).await, Err(Error::Corrupt(_))));
    assert!(matches!(store.records().delete(key("b"), None, at(1)).await, Err(Error::Corrupt(_))));
    let listed = store.records().list(everything(at(1))).await.unwrap();
    let names: Vec<_> = listed.records.iter().map(|(key, _)| key.name.as_str()).collect();
    assert_eq!(names, ["c", "d"]);
}

pub(crate) fn everything(now: Timestamp) -> RecordQuery {
    RecordQuery {
        tenant: acme(),
        operations: OperationFilter::AllNamed,
        state: None,
        updated_before: None,
        after: None,
        limit: 100,
        now,
    }
}

/// Waits until a session waits for a lock in this database.
async fn until_a_session_waits(opened: &Opened) {
    let client: Client = plain(opened.database.url()).await;
    let waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while client.query(waiting, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_whose_blob_is_condemned_while_it_is_written_is_refused() {
    let opened = open("one").await;
    let body = stored("large", 1);
    opened.store.blobs().adopt(acme(), body, at(0)).await.unwrap();
    assert!(is_granted(&reserve(&*opened.store, "a", 1, at(0)).await));
    let mut client = plain(opened.database.url()).await;
    let condemning = client.transaction().await.unwrap();
    condemning
        .batch_execute("SELECT FROM redrive.blobs FOR UPDATE; UPDATE redrive.blobs SET condemned = true")
        .await
        .unwrap();
    let made = Change::Complete(stored_response(body));
    let changing = tokio::spawn({
        let (store, made) = (opened.store.clone(), made.clone());
        async move { store.records().change_one(key("a"), owner(1, 1), made, at(1)).await }
    });
    until_a_session_waits(&opened).await;
    condemning.commit().await.unwrap();
    // It may have waited for too long, on a slow machine; it is refused all the same when it is made again.
    match changing.await.unwrap() {
        Ok(answer) => assert_eq!(answer, RecordChanged::BodyGone),
        Err(error) => assert!(matches!(error, Error::Unavailable(_)), "{error}"),
    }
    assert_eq!(change(&*opened.store, "a", owner(1, 1), made, at(2)).await, RecordChanged::BodyGone);
    let record = opened.store.records().read(key("a"), at(2)).await.unwrap().unwrap();
    assert_eq!(record.state, State::InProgress);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_know_records_condemns_no_blob_of_one() {
    let opened = open("one").await;
    let client = plain(opened.database.url()).await;
    let (used, unused) = (stored("used", 1), stored("unused", 1));
    for body in [used, unused] {
        opened.store.blobs().adopt(acme(), body, at(0)).await.unwrap();
    }
    assert!(is_granted(&reserve(&*opened.store, "a", 1, at(0)).await));
    let complete = Change::Complete(stored_response(used));
    assert!(matches!(
        change(&*opened.store, "a", owner(1, 1), complete, at(1)).await,
        RecordChanged::Decided(Changed::Done(_))
    ));
    // As the collector of version 6 does it, for blobs that no task and no log entry refers to.
    let condemn = "
        INSERT INTO redrive.blobs (tenant, body, hash, adopted_at, condemned)
        SELECT kept.tenant, kept.body, kept.hash, kept.adopted_at, true FROM redrive.blobs AS kept
        ON CONFLICT (tenant, body) DO UPDATE SET condemned = true
        RETURNING body";
    let condemned =
        async || -> Vec<String> { client.query(condemn, &[]).await.unwrap().iter().map(|row| row.get(0)).collect() };
    assert_eq!(condemned().await, [unused.to_record()]);
    assert_eq!(opened.store.blobs().find(acme(), used.hash).await.unwrap(), Some(used));
    opened.store.records().delete(key("a"), None, at(2)).await.unwrap();
    assert_eq!(condemned().await.len(), 2, "no record refers to it any more");
}

/// All records of the lists, page by page.
async fn listed(store: &dyn Store, mut query: RecordQuery) -> Vec<(RecordKey, redrive_core::idempotency::Record)> {
    let mut records = Vec::new();
    loop {
        let page = store.records().list(query.clone()).await.unwrap();
        records.extend(page.records);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return records,
        }
    }
}

/// One step of a random life, made on two nodes in turn and on the memory store.
pub(crate) async fn step(random: &mut Random, n: u64, store: &dyn Store, model: &dyn Store, now: Timestamp) {
    let operation = random.pick(&["inbox/mail", "pay", "pay.out", "refund"]);
    let one = key_of(operation, &format!("k-{}", random.below(4)));
    match random.below(6) {
        0..=2 => {
            let asked = Reserve { is_complete: random.chance(10), ..ask(u128::from(n)) };
            let expected = model.records().reserve_one(one.clone(), asked.clone(), now).await.unwrap();
            assert_eq!(store.records().reserve_one(one, asked, now).await.unwrap(), expected, "step {n}");
        }
        3 | 4 => {
            let known = model.records().read(one.clone(), now).await.unwrap();
            let by = known.map_or(owner(1, 1), |record| record.owner);
            let made = match random.below(5) {
                0 => Change::Renew(LEASE),
                1 => Change::Release,
                2 => Change::FailRetryable,
                3 => Change::FailFinal(response("no")),
                _ => Change::Complete(response("yes")),
            };
            let expected = model.records().change_one(one.clone(), by, made.clone(), now).await.unwrap();
            assert_eq!(store.records().change_one(one, by, made, now).await.unwrap(), expected, "step {n}");
        }
        _ => {
            let seen = model.records().read(one.clone(), now).await.unwrap().map(|record| SeenRecord::of(&record));
            let expected = model.records().delete(one.clone(), seen, now).await.unwrap();
            assert_eq!(store.records().delete(one, seen, now).await.unwrap(), expected, "step {n}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_random_life_over_two_nodes_is_that_of_the_memory_store() {
    let opened = open("one").await;
    let (other, model) = (neighbour(&opened, "two").await, MemoryStore::new());
    let mut random = Random(3);
    let mut now = at(0);
    for n in 0..400 {
        now = now.after(Duration::from_millis(random.below(30_000)));
        let store = if n % 2 == 0 { &opened.store } else { &other };
        step(&mut random, n, &**store, &model, now).await;
        if n % 20 == 0 {
            let (all, limit) = (everything(now), 1 + random.below(5) as usize);
            let state = Some(random.pick(&State::ALL)).filter(|_| random.chance(50));
            let operations = match random.chance(30) {
                true => OperationFilter::One("inbox/mail".parse().unwrap()),
                false => OperationFilter::AllNamed,
            };
            let query = RecordQuery { limit, state, operations, ..all };
            assert_eq!(listed(&**store, query.clone()).await, listed(&model, query).await, "step {n}");
            let counts = store.records().counts(acme(), None, limit, 2).await.unwrap();
            assert_eq!(counts, model.records().counts(acme(), None, limit, 2).await.unwrap(), "step {n}");
        }
        if n % 50 == 49 {
            assert_eq!(
                store.records().clean(now, 100).await.unwrap(),
                model.records().clean(now, 100).await.unwrap(),
                "step {n}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_passes_a_bounded_number_of_rows_and_reaches_the_last() {
    let opened = open("one").await;
    let client = plain(opened.database.url()).await;
    let fill = "
        INSERT INTO redrive.idempotency_records
        SELECT 'acme', operation, 'n-' || lpad(n::text, 4, '0'), gen_random_uuid(), 1, 0, 0, 0, 0,
               CASE WHEN n = 2500 THEN 9000000000000 ELSE 1 END, 'SUCCEEDED', sha256('')
        FROM generate_series(1, 2500) AS n, unnest(ARRAY['inbox/mail', 'in', 'pay']) AS operation";
    client.batch_execute(fill).await.unwrap();
    let mut query = everything(at(0));
    let (mut pages, mut found) = (0, Vec::new());
    loop {
        let page = opened.store.records().list(query.clone()).await.unwrap();
        pages += 1;
        found.extend(page.records.into_iter().map(|(key, _)| key.to_string()));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(found, ["acme/in/n-2500", "acme/pay/n-2500"]);
    assert_eq!(pages, 5, "1,000 rows of an operation a page, and none of the inbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_in_progress_are_listed_along_an_index_of_their_own() {
    let opened = open("one").await;
    let client = plain(opened.database.url()).await;
    let fill = "
        INSERT INTO redrive.idempotency_records
        SELECT 'acme', 'pay', 'n-' || lpad(n::text, 4, '0'), gen_random_uuid(), 1, 0, 0, 0, n, 9000000000000,
               CASE WHEN n % 100 = 0 THEN 'IN_PROGRESS' ELSE 'SUCCEEDED' END, sha256('')
        FROM generate_series(1, 2500) AS n";
    client.batch_execute(fill).await.unwrap();
    let before = Some(Timestamp::from_millis(350));
    for _ in 0..10 {
        let query = RecordQuery { state: Some(State::InProgress), updated_before: before, ..everything(at(0)) };
        let page = opened.store.records().list(query).await.unwrap();
        let names: Vec<_> = page.records.iter().map(|(key, _)| key.name.as_str()).collect();
        assert_eq!((names, page.next), (vec!["n-0100", "n-0200", "n-0300"], None), "without the rows between them");
    }
    opened.store.close().await;
    until_gone(&client, "redrive one").await;
    let used = "
        SELECT indexrelname::text FROM pg_stat_user_indexes
        WHERE relname = 'idempotency_records' AND idx_scan >= 20 ORDER BY 1";
    let used: Vec<String> = client.query(used, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(used, ["idempotency_records_in_progress"], "each list finds its edge and its page there");
}
