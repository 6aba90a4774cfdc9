//! Several processes over one database.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{neighbour, node, open, plain, until_listening};
use futures_util::future::join_all;
use redrive_core::{Class, Status, Timestamp};
use redrive_store::conformance::samples::*;
use redrive_store::{
    BlobStorageId, CancelOutcome, ClaimKnownRequest, Heartbeat, KnownTask, News, Overdue, Settled, Store, Submitted,
    Token,
};

#[tokio::test]
async fn no_two_processes_claim_the_same_task() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    keep(&*opened.store, (0..200).map(task)).await;
    let mut claimed = Vec::new();
    for _ in 0..40 {
        let (one, two) = tokio::join!(claim(&*opened.store, billing(), 4, at(5)), claim(&*other, billing(), 4, at(5)));
        claimed.extend(one.into_iter().chain(two).map(|claimed| claimed.task.id));
    }
    let distinct: BTreeSet<_> = claimed.iter().collect();
    assert_eq!((claimed.len(), distinct.len()), (200, 200));
}

#[tokio::test]
async fn one_key_is_one_task_however_many_processes_submit_it() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    allow(&*opened.store, acme()).await;
    for n in 0..50 {
        let (one, two) = tokio::join!(
            submit(&*opened.store, [task(2 * n).key(&format!("k-{n}"))]),
            submit(&*other, [task(2 * n + 1).key(&format!("k-{n}"))])
        );
        let created = [&one[0], &two[0]].iter().filter(|answer| matches!(answer, Submitted::Created(_, None))).count();
        assert_eq!(created, 1, "{one:?} {two:?}");
    }
    assert_eq!(counts(&*opened.store, acme()).await, [50, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn whoever_settles_first_wins_also_between_processes() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let claimed = keep_and_claim(&*opened.store, task(1)).await;
    let (one, two) =
        tokio::join!(settle(&*opened.store, succeed(&claimed, at(5))), settle(&*other, succeed(&claimed, at(6))));
    let done = [one, two].iter().filter(|settled| matches!(settled, Settled::Done(_))).count();
    assert_eq!(done, 1, "{one:?} {two:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_submissions_of_one_key_on_three_nodes_one_makes_the_task() {
    let opened = open("one").await;
    let stores = [opened.store.clone(), neighbour(&opened, "two").await, neighbour(&opened, "three").await];
    allow(&*opened.store, acme()).await;
    let calls = (0..1_000).map(|n| {
        let store = stores[n % 3].clone();
        tokio::spawn(async move { submit(&*store, [task(n as u64).key("wanted")]).await.remove(0) })
    });
    let answers: Vec<Submitted> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let created = answers.iter().filter(|answer| matches!(answer, Submitted::Created(..))).count();
    assert_eq!((created, answers.len()), (1, 1_000));
    assert_eq!(counts(&*opened.store, acme()).await, [1, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_settlement_that_meets_a_lock_is_made_when_the_lock_is_gone() {
    let opened = open("one").await;
    let claimed = keep_and_claim(&*opened.store, task(1)).await;
    let (mut holder, watcher) = (plain(opened.database.url()).await, plain(opened.database.url()).await);
    let held = holder.transaction().await.unwrap();
    held.execute("SELECT FROM redrive.live FOR UPDATE", &[]).await.unwrap();
    let tried_twice = async {
        let waiting = "SELECT query_start::text FROM pg_stat_activity
                       WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let mut tries = std::collections::BTreeSet::<String>::new();
        while tries.len() < 2 {
            tries.extend(watcher.query(waiting, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0)));
        }
        held.commit().await.unwrap();
    };
    let (settled, ()) = tokio::join!(settle(&*opened.store, succeed(&claimed, at(5))), tried_twice);
    assert!(matches!(settled, Settled::Done(_)), "{settled:?}");
}

#[tokio::test]
async fn work_that_one_process_leaves_waiting_is_told_to_the_others() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    until_listening(&opened, 2).await;
    keep(&*other, [task(1).due(at(7))]).await;
    let heard = opened.store.shared().unwrap().next_news().await;
    assert_eq!(heard, [News::Due(lane_due(billing(), Class::First, Some(at(7))))]);
}

#[tokio::test]
async fn the_first_place_of_bodies_is_recorded_for_all_processes_and_for_ever() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let (one, two) = (opened.store.shared().unwrap(), other.shared().unwrap());
    let (mine, theirs) = (BlobStorageId::of(1), BlobStorageId::of(2));
    assert_eq!(one.blob_storage_id(None).await.unwrap(), None, "a node without blob storage records nothing");
    assert_eq!(two.blob_storage_id(Some(theirs)).await.unwrap(), Some(theirs));
    assert_eq!(one.blob_storage_id(Some(mine)).await.unwrap(), Some(theirs));
    assert_eq!(one.blob_storage_id(None).await.unwrap(), Some(theirs));
}

#[tokio::test]
async fn of_places_that_are_recorded_at_once_all_processes_learn_the_same() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let (one, two) = (opened.store.shared().unwrap(), other.shared().unwrap());
    let client = plain(opened.database.url()).await;
    for _ in 0..50 {
        client.execute("DELETE FROM redrive.meta WHERE name = 'body_place'", &[]).await.unwrap();
        let (first, second) = tokio::join!(
            one.blob_storage_id(Some(BlobStorageId::of(1))),
            two.blob_storage_id(Some(BlobStorageId::of(2)))
        );
        assert_eq!(first.unwrap().unwrap(), second.unwrap().unwrap());
    }
}

fn beat(in_flight: u64) -> Heartbeat {
    Heartbeat {
        started_at: at(0),
        version: "1.2.3".into(),
        address: "127.0.0.1:8620".into(),
        in_flight,
        is_draining: false,
        claims: true,
        clock_ahead_ms: -1_500,
        every: Duration::from_secs(5),
    }
}

#[tokio::test]
async fn all_processes_are_told_the_time_of_the_database() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let client = plain(opened.database.url()).await;
    let clock = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8";
    let shown = async || client.query_one(clock, &[]).await.unwrap().get::<_, f64>(0) as u64;
    let before = shown().await;
    let first = opened.store.shared().unwrap().time().await.unwrap();
    let second = other.shared().unwrap().time().await.unwrap();
    let after = shown().await;
    assert!(before <= first.as_millis() && first <= second && second.as_millis() <= after);
}

#[tokio::test]
async fn processes_are_listed_with_what_they_hold_until_they_leave() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let (one, two) = (opened.store.shared().unwrap(), other.shared().unwrap());
    assert_eq!(one.nodes().await.unwrap(), []);
    keep(&*opened.store, [task(1).claimed(at(0)), task(2), task(3)]).await;
    assert_eq!(claim(&*other, billing(), 2, at(5)).await.len(), 2);
    one.heartbeat(beat(1), at(10)).await.unwrap();
    two.heartbeat(beat(9), at(11)).await.unwrap();
    two.heartbeat(beat(2), at(12)).await.unwrap();
    let listed: Vec<_> =
        one.nodes().await.unwrap().into_iter().map(|node| (node.id, node.seen_at, node.beat, node.leases)).collect();
    assert_eq!(listed, [(node("one"), at(10), beat(1), 1), (node("two"), at(12), beat(2), 2)]);
    two.leave().await.unwrap();
    assert_eq!(one.nodes().await.unwrap().len(), 1);
}

#[tokio::test]
async fn who_died_is_forgotten_only_once_its_leases_are_gone() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let (one, two) = (opened.store.shared().unwrap(), other.shared().unwrap());
    two.heartbeat(beat(1), at(0)).await.unwrap();
    keep(&*other, [task(1)]).await;
    let claimed = claim(&*other, billing(), 1, at(5)).await.remove(0);
    let long_after = at(0).after(redrive_store::FORGOTTEN_AFTER).after(Duration::from_secs(1));
    let names = async || one.nodes().await.unwrap().into_iter().map(|node| node.id).collect::<Vec<_>>();
    one.heartbeat(beat(0), long_after).await.unwrap();
    assert_eq!(names().await, [node("one"), node("two")]);
    settle(&*opened.store, succeed(&claimed, at(9))).await;
    one.heartbeat(beat(0), long_after).await.unwrap();
    assert_eq!(names().await, [node("one")]);
}

fn known(n: u64, token: u64, has_slot: bool) -> KnownTask {
    KnownTask { tenant: acme(), id: id(n), token: Token(token), has_slot }
}

fn known_request(known: impl IntoIterator<Item = KnownTask>, now: Timestamp) -> ClaimKnownRequest {
    ClaimKnownRequest { known: known.into_iter().collect(), due_by: now, lease: TERMS, now }
}

#[tokio::test]
async fn known_tasks_are_claimed_by_id_and_token_if_they_are_due() {
    let opened = open("one").await;
    let store = &*opened.store;
    keep(store, [task(1), task(2).due(at(100)), task(3), task(4).claimed(at(0))]).await;
    let known = |n, token| known(n, token, true);
    let shared = store.shared().unwrap();
    let asked = [known(3, 0), known(1, 1), known(2, 0), known(4, 1), known(9, 0), known(1, 0)];
    let claimed = shared.claim_known(known_request(asked, at(5))).await.unwrap();
    let ids: Vec<_> = claimed.iter().map(|claimed| (claimed.task.id, claimed.lease.token)).collect();
    assert_eq!(ids, [(id(3), Token(1)), (id(1), Token(1))], "in the order asked, what is due and of this token");
    assert_eq!(
        claimed[0],
        store
            .upkeep()
            .expired_leases(at(9_000_000), 10)
            .await
            .unwrap()
            .into_iter()
            .find(|found| found.task.id == id(3))
            .unwrap()
    );
    assert_eq!(shared.claim_known(known_request([known(3, 0), known(3, 1)], at(6))).await.unwrap(), []);
    assert_eq!(counts(store, acme()).await, [1, 3, 0, 0, 0, 0]);
}

#[tokio::test]
async fn known_tasks_are_claimed_before_they_are_due_with_a_lease_from_their_due_time() {
    let opened = open("one").await;
    keep(&*opened.store, [task(1).due(at(100)), task(2).due(at(101))]).await;
    let request =
        ClaimKnownRequest { due_by: at(100), ..known_request([known(1, 0, true), known(2, 0, true)], at(40)) };
    let claimed = opened.store.shared().unwrap().claim_known(request).await.unwrap();
    assert_eq!(ids(&claimed), [id(1)]);
    let until = at(100).after(ATTEMPT_TIMEOUT).after(TERMS.margin);
    assert_eq!((claimed[0].lease.since, claimed[0].lease.until), (at(40), until));
}

#[tokio::test]
async fn a_known_last_attempt_is_claimed_only_into_a_slot_and_ends_its_class_otherwise() {
    let opened = open("one").await;
    let store = &*opened.store;
    // The second and the fourth task have one attempt in all; the last one is of another lane.
    let samples = (1..=5).map(|n| task(n).max_attempts(if n % 2 == 0 { 1 } else { 5 }));
    keep(store, samples.chain([task(6).to("other")])).await;
    let client = plain(opened.database.url()).await;
    // As written by this version, and by the previous one.
    for written in ["SELECT", "UPDATE redrive.live SET max_attempts = NULL"] {
        client.batch_execute(written).await.unwrap();
        // tasks with a slot, claimed
        for (slots, expected) in [
            (vec![], vec![1, 6]),
            (vec![2], vec![1, 2, 3, 6]),
            (vec![1, 5], vec![1, 5, 6]),
            (vec![2, 4], vec![1, 2, 3, 4, 5, 6]),
        ] {
            let tokens = client.query("SELECT token FROM redrive.live ORDER BY id", &[]).await.unwrap();
            let known = (1..=6)
                .zip(tokens)
                .map(|(n, token)| known(n, token.get::<_, i64>(0).cast_unsigned(), slots.contains(&n)));
            let claimed = store.shared().unwrap().claim_known(known_request(known, at(5))).await.unwrap();
            assert_eq!(ids(&claimed), expected.into_iter().map(id).collect::<Vec<_>>(), "slots for {slots:?}");
            give_back(store, &claimed, at(5)).await;
        }
    }
}

#[tokio::test]
async fn overdue_tasks_end_once_however_many_processes_end_them() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    keep(&*opened.store, (0..200).map(|n| task(n).deadline(at(n)))).await;
    let mut ended = Vec::new();
    for _ in 0..40 {
        let (one, two) =
            tokio::join!(opened.store.upkeep().end_overdue(at(500), 10), other.upkeep().end_overdue(at(500), 10));
        ended.extend([one, two].into_iter().flat_map(|overdue| overdue.unwrap().ended).map(|task| task.id));
    }
    let distinct: BTreeSet<_> = ended.iter().collect();
    assert_eq!((ended.len(), distinct.len()), (200, 200));
    assert_eq!(counts(&*other, acme()).await, [0, 0, 0, 0, 200, 0]);
    assert_eq!(opened.store.upkeep().pending_alerts(Timestamp::MAX, 500).await.unwrap().len(), 200);
    assert_eq!(other.upkeep().end_overdue(at(500), 10).await.unwrap(), Overdue::default());
}

#[tokio::test]
async fn what_another_transaction_holds_is_left_to_it_for_a_moment() {
    let opened = open("one").await;
    let store = &*opened.store;
    keep(store, [task(1).due(at(5)).deadline(at(100)), task(2).due(at(6)).deadline(at(100)).max_attempts(1)]).await;
    let mut client = plain(opened.database.url()).await;
    let open = client.transaction().await.unwrap();
    open.query("SELECT FROM redrive.live FOR UPDATE", &[]).await.unwrap();
    assert_eq!(
        store.upkeep().end_overdue(at(200), 5).await.unwrap(),
        Overdue { ended: vec![], next_deadline: Some(at(250)) }
    );
    // due_by, slots, ahead, the reported next due time
    for (due_by, slots, ahead, next_due) in
        [(50, 1, 0, 90), (100, 1, 0, 90), (50, 0, 1, 5), (50, 0, 0, 5), (4, 1, 0, 5)]
    {
        let rooms = [room(billing(), Class::First, slots, ahead)];
        let asked = redrive_store::ClaimRequest { due_by: at(due_by), ..request(rooms, at(40)) };
        let claims = store.tasks().claim(asked).await.unwrap();
        assert!(claims.claimed.is_empty());
        let case = format!("{slots} slots, {ahead} ahead, by {due_by}");
        assert_eq!(claims.lanes, [lane_due(billing(), Class::First, Some(at(next_due)))], "{case}");
    }
}

#[tokio::test]
async fn a_cancel_of_a_task_in_flight_is_told_to_the_other_processes() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let claimed = keep_and_claim(&*opened.store, task(1)).await;
    keep(&*opened.store, [task(2).to("mail")]).await;
    until_listening(&opened, 2).await;
    // A pending task: no attempt is in flight that could be stopped.
    other.tasks().cancel_one(acme(), id(2), at(10)).await.unwrap();
    let cancelled = other.tasks().cancel_one(acme(), id(1), at(10)).await.unwrap();
    assert!(
        matches!(&cancelled, CancelOutcome::Done(task) if task.status == Status::InFlight && task.cancel_requested)
    );
    until_heard(&*opened.store, &News::CancelRequested(acme(), id(1))).await;
    // A process does not receive its own news: the next one that it receives was announced after the cancel.
    keep(&*opened.store, [task(3).to("hooks").due(at(9))]).await;
    until_heard(&*other, &News::Due(lane_due(lane(TENANT, "hooks"), Class::First, Some(at(9))))).await;
    assert_eq!(settle(&*opened.store, unsent(&claimed, at(11), at(11))).await, Settled::Done(Status::Cancelled));
}

/// Waits for this news, and checks that no other cancel comes before it.
async fn until_heard(store: &dyn Store, awaited: &News) {
    loop {
        for news in store.shared().unwrap().next_news().await {
            if news == *awaited {
                return;
            }
            assert!(!matches!(news, News::CancelRequested(..)), "{news:?}");
        }
    }
}

#[tokio::test]
async fn what_waits_is_read_page_by_page() {
    let opened = open("one").await;
    let store = &*opened.store;
    keep(store, [task(5).due(at(50)), task(1).due(at(10)), task(3).of("zoo").due(at(30)), task(2).claimed(at(0))])
        .await;
    let shared = store.shared().unwrap();
    let first = shared.waiting(None, 2).await.unwrap();
    let seen: Vec<_> = first.iter().map(|waiting| (waiting.id, waiting.due, waiting.token)).collect();
    assert_eq!(seen, [(id(1), at(10), Token(0)), (id(5), at(50), Token(0))]);
    let last = first.last().unwrap();
    let rest = shared.waiting(Some((last.lane.tenant.clone(), last.id)), 2).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!((rest[0].lane.tenant.as_str(), rest[0].id), ("zoo", id(3)));
}

#[tokio::test]
async fn a_page_with_much_in_it_is_shorter_and_leads_on() {
    let opened = open("one").await;
    let store = &*opened.store;
    // One byte less than the limit for bodies without blob storage.
    let body = vec![7; 1024 * 1024 - 1];
    keep(store, (1..=60).map(|n| task(n).body(body.clone()))).await;
    let page = store.reads().list(everything(acme())).await.unwrap();
    assert_eq!((page.tasks.len(), page.next), (50, Some(id(11))));
    assert_eq!(list(store, everything(acme())).await.len(), 60);
}
