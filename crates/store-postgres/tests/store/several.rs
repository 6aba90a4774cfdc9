//! Several processes over one database.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{neighbour, node, open, plain, until_listening};
use redrive_store::conformance::samples::*;
use redrive_store::{Heartbeat, Hold, Known, LaneDue, PlaceId, Settled, Store, Submitted, Tally, Token, Totals};

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
        let created = [&one[0], &two[0]].iter().filter(|answer| ***answer == Submitted::Created(None)).count();
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

#[tokio::test]
async fn work_that_one_process_leaves_waiting_is_told_to_the_others() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    until_listening(&opened, 2).await;
    keep(&*other, [task(1).due(at(7))]).await;
    let heard = opened.store.shared().unwrap().heard().await;
    assert_eq!(heard, [LaneDue { lane: billing(), next_due: Some(at(7)) }]);
}

#[tokio::test]
async fn the_first_place_of_bodies_is_recorded_for_all_processes_and_for_ever() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let (one, two) = (opened.store.shared().unwrap(), other.shared().unwrap());
    let (mine, theirs) = (PlaceId::of(1), PlaceId::of(2));
    assert_eq!(one.body_place(None).await.unwrap(), None, "a node without a place records nothing");
    assert_eq!(two.body_place(Some(theirs)).await.unwrap(), Some(theirs));
    assert_eq!(one.body_place(Some(mine)).await.unwrap(), Some(theirs));
    assert_eq!(one.body_place(None).await.unwrap(), Some(theirs));
}

#[tokio::test]
async fn of_places_that_are_recorded_at_once_all_processes_learn_the_same() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let (one, two) = (opened.store.shared().unwrap(), other.shared().unwrap());
    let client = plain(opened.database.url()).await;
    for _ in 0..50 {
        client.execute("DELETE FROM redrive.meta WHERE name = 'body_place'", &[]).await.unwrap();
        let (first, second) = tokio::join!(one.body_place(Some(PlaceId::of(1))), two.body_place(Some(PlaceId::of(2))));
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
        every: Duration::from_secs(5),
    }
}

#[tokio::test]
async fn processes_are_listed_with_what_they_hold_until_they_leave() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let (one, two) = (opened.store.shared().unwrap(), other.shared().unwrap());
    assert_eq!(one.nodes().await.unwrap(), []);
    keep(&*opened.store, [task(1).claimed(at(0)), task(2), task(3)]).await;
    assert_eq!(claim(&*other, billing(), 2, at(5)).await.len(), 2);
    one.beat(beat(1), at(10)).await.unwrap();
    two.beat(beat(9), at(11)).await.unwrap();
    two.beat(beat(2), at(12)).await.unwrap();
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
    two.beat(beat(1), at(0)).await.unwrap();
    keep(&*other, [task(1)]).await;
    let claimed = claim(&*other, billing(), 1, at(5)).await.remove(0);
    let long_after = at(0).after(redrive_store::FORGOTTEN_AFTER).after(Duration::from_secs(1));
    let names = async || one.nodes().await.unwrap().into_iter().map(|node| node.id).collect::<Vec<_>>();
    one.beat(beat(0), long_after).await.unwrap();
    assert_eq!(names().await, [node("one"), node("two")]);
    settle(&*opened.store, succeed(&claimed, at(9))).await;
    one.beat(beat(0), long_after).await.unwrap();
    assert_eq!(names().await, [node("one")]);
}

#[tokio::test]
async fn known_tasks_are_claimed_by_id_and_token_if_they_are_due() {
    let opened = open("one").await;
    let store = &*opened.store;
    keep(store, [task(1), task(2).due(at(100)), task(3), task(4).claimed(at(0))]).await;
    let known = |n, token| Known { tenant: acme(), id: id(n), token: Token(token) };
    let shared = store.shared().unwrap();
    let asked = vec![known(3, 0), known(1, 1), known(2, 0), known(4, 1), known(9, 0), known(1, 0)];
    let claimed = shared.claim_known(asked, TERMS, at(5)).await.unwrap();
    let ids: Vec<_> = claimed.iter().map(|claimed| (claimed.task.id, claimed.lease.token)).collect();
    assert_eq!(ids, [(id(3), Token(1)), (id(1), Token(1))], "in the order asked, what is due and of this token");
    assert_eq!(
        claimed[0],
        store.expired(at(9_000_000), 10).await.unwrap().into_iter().find(|found| found.task.id == id(3)).unwrap()
    );
    assert_eq!(shared.claim_known(vec![known(3, 0), known(3, 1)], TERMS, at(6)).await.unwrap(), []);
    assert_eq!(counts(store, acme()).await, [1, 3, 0, 0, 0, 0]);
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
async fn what_guards_count_is_added_up_over_processes_and_seconds() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let (one, two) = (opened.store.shared().unwrap().guards(), other.shared().unwrap().guards());
    let tally = |second: u64, first, retries| Tally {
        lane: billing(),
        at: at(second * 1_000),
        counted: Totals { first, retries, failures: retries },
    };
    let totals = |first, retries| Totals { first, retries, failures: retries };
    assert_eq!(one.tally(vec![tally(1, 10, 1)], at(0)).await.unwrap(), [totals(10, 1)]);
    assert_eq!(two.tally(vec![tally(1, 5, 2), tally(2, 1, 0)], at(0)).await.unwrap(), [totals(16, 3); 2]);
    assert_eq!(one.tally(vec![tally(31, 1, 1)], at(2_000)).await.unwrap(), [totals(2, 1)], "the first second is out");
    assert_eq!(one.tally(vec![tally(31, 0, 0)], at(32_000)).await.unwrap(), [totals(0, 0)]);
}

#[tokio::test]
async fn a_lane_is_held_back_for_all_until_the_latest_time_that_anybody_said() {
    let opened = open("one").await;
    let other = neighbour(&opened, "two").await;
    let (one, two) = (opened.store.shared().unwrap().guards(), other.shared().unwrap().guards());
    let hold = |dependency: &str, until| Hold { lane: lane("acme", dependency), until: at(until) };
    assert_eq!(one.hold(vec![hold("a", 10), hold("b", 5)]).await.unwrap(), [at(10), at(5)]);
    assert_eq!(two.hold(vec![hold("a", 7), hold("b", 20)]).await.unwrap(), [at(10), at(20)]);
    assert_eq!(one.held(at(6), 10).await.unwrap(), [hold("b", 20), hold("a", 10)]);
    assert_eq!(one.held(at(10), 10).await.unwrap(), [hold("b", 20)]);
    assert_eq!(one.held(at(6), 1).await.unwrap(), [hold("b", 20)]);
}

#[tokio::test]
async fn a_page_with_much_in_it_is_shorter_and_leads_on() {
    let opened = open("one").await;
    let store = &*opened.store;
    // One byte short of what a body may be where there is no place for large ones.
    let body = vec![7; 1024 * 1024 - 1];
    keep(store, (1..=60).map(|n| task(n).body(body.clone()))).await;
    let page = store.tasks(everything(acme())).await.unwrap();
    assert_eq!((page.tasks.len(), page.next), (50, Some(id(11))));
    assert_eq!(list(store, everything(acme())).await.len(), 60);
}
