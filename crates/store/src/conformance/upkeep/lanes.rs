//! Facts about listing the classes of lanes that have pending tasks.

use redrive_core::{Class, Lane, Status};

use crate::conformance::samples::*;
use crate::{LaneDue, Store};

async fn pending(store: &dyn Store) -> Vec<LaneDue> {
    store.upkeep().pending_lanes(None, 1_000).await.unwrap()
}

fn first(dependency: &str, due: u64) -> LaneDue {
    lane_due(lane(TENANT, dependency), Class::First, Some(at(due)))
}

fn retries(dependency: &str, due: u64) -> LaneDue {
    lane_due(lane(TENANT, dependency), Class::Retry, Some(at(due)))
}

/// The classes of lanes, read in pages of this size.
async fn paged(store: &dyn Store, limit: usize) -> Vec<(Lane, Class)> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.upkeep().pending_lanes(after.clone(), limit).await.unwrap();
        assert!(page.len() <= limit);
        let queues = page.into_iter().map(|due| (due.lane, due.class));
        found.extend(queues);
        if found.last() == after.as_ref() {
            return found;
        }
        assert!(after.as_ref() < found.last(), "a page goes on behind the one before, or paging never ends");
        after = found.last().cloned();
    }
}

pub(crate) async fn a_pending_lane_says_when_its_earliest_task_is_due(store: &dyn Store) {
    let first_attempts = [("a", 30), ("a", 20), ("b", 10), ("a", 0)];
    keep(store, (1..).zip(first_attempts).map(|(n, (name, due))| task(n).to(name).due(at(due)))).await;
    assert_eq!(pending(store).await, [first("a", 0), first("b", 10)]);
    claim(store, lane(TENANT, "a"), 1, at(0)).await;
    assert_eq!(pending(store).await, [first("a", 20), first("b", 10)]);
}

pub(crate) async fn each_class_of_a_lane_says_when_its_earliest_task_is_due(store: &dyn Store) {
    keep(store, [task(1).to("a").due(at(50)), task(2).to("c").due(at(60))]).await;
    keep_retries(store, [task(3).to("a").due(at(30)), task(4).to("a").due(at(10)), task(5).to("b").due(at(20))]).await;
    assert_eq!(pending(store).await, [first("a", 50), retries("a", 10), retries("b", 20), first("c", 60)]);
    claim_class(store, lane(TENANT, "a"), Class::Retry, 1, at(10)).await;
    assert_eq!(pending(store).await, [first("a", 50), retries("a", 30), retries("b", 20), first("c", 60)]);
}

pub(crate) async fn a_lane_with_no_pending_task_is_absent_until_it_has_one(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1).to("a")).await;
    keep_and_end(store, task(2).to("b"), Status::Failed, at(5)).await;
    assert_eq!(pending(store).await, []);
    settle(store, retry(&claimed, at(10), at(70))).await;
    assert_eq!(pending(store).await, [retries("a", 70)]);
}

pub(crate) async fn lanes_come_by_tenant_and_then_by_dependency_in_byte_order(store: &dyn Store) {
    // Names whose order changes if a store joins the two into one text, folds case or sorts by a locale.
    let mut lanes = Vec::new();
    for tenant in ["a", "a-b", "a.b", "aa", "B", "b", "Z", "a:b", "_"] {
        for dependency in ["a", "~", "!", "A", "https://a.example", "https://a.example:8443", "Z"] {
            lanes.push(lane(tenant, dependency));
        }
    }
    let samples = (0..).zip(&lanes).map(|(n, lane)| task(n).of(lane.tenant.as_str()).to(lane.dependency.as_str()));
    keep(store, samples).await;
    lanes.sort();
    let found: Vec<Lane> = pending(store).await.into_iter().map(|due| due.lane).collect();
    assert_eq!(found, lanes);
    let by_page: Vec<Lane> = paged(store, 4).await.into_iter().map(|(lane, _)| lane).collect();
    assert_eq!(by_page, lanes);
}

pub(crate) async fn lanes_are_paged_class_by_class(store: &dyn Store) {
    keep(store, (0..5).map(|n| task(n).to(["a", "b", "d", "e", "f"][n as usize]))).await;
    keep_retries(store, (0..5).map(|n| task(10 + n).to(["b", "c", "d", "f", "g"][n as usize]))).await;
    let (first, retry) = (Class::First, Class::Retry);
    let expected = [
        ("a", first),
        ("b", first),
        ("b", retry),
        ("c", retry),
        ("d", first),
        ("d", retry),
        ("e", first),
        ("f", first),
        ("f", retry),
        ("g", retry),
    ];
    let expected = expected.map(|(name, class)| (lane(TENANT, name), class));
    for limit in 1..=11 {
        assert_eq!(paged(store, limit).await, expected, "pages of {limit}");
    }
}

pub(crate) async fn lanes_go_on_after_one_that_is_no_longer_there(store: &dyn Store) {
    keep(store, [task(1).to("a"), task(2).to("c"), task(3).of("b").to("a")]).await;
    keep_retries(store, [task(4).to("c")]).await;
    let after =
        |name: &str, dependency: &str, class| store.upkeep().pending_lanes(Some((lane(name, dependency), class)), 10);
    let last = lane_due(lane("b", "a"), Class::First, Some(at(0)));
    for class in Class::ALL {
        assert_eq!(after(TENANT, "b", class).await.unwrap(), [first("c", 0), retries("c", 0), last.clone()]);
        assert_eq!(after("z", "z", class).await.unwrap(), []);
    }
    // After a class that does not exist, in a lane whose other class does.
    assert_eq!(after(TENANT, "c", Class::First).await.unwrap(), [retries("c", 0), last.clone()]);
    assert_eq!(after(TENANT, "a", Class::Retry).await.unwrap(), [first("c", 0), retries("c", 0), last]);
}

pub(crate) async fn a_large_backlog_in_one_lane_does_not_hide_the_others(store: &dyn Store) {
    keep(store, (0..2_000).map(|n| task(n).to("dead").due(at(n)))).await;
    keep(store, [task(5_000).to("alive").due(at(9_999)), task(5_001).to("zest").due(at(3))]).await;
    assert_eq!(pending(store).await, [first("alive", 9_999), first("dead", 0), first("zest", 3)]);
    assert_eq!(claim(store, lane(TENANT, "zest"), 5, at(10)).await.len(), 1);
    assert_eq!(counts(store, acme()).await, [2_001, 1, 0, 0, 0, 0]);
}
