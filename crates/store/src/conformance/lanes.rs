//! Facts about finding the lanes that have work.

use redrive_core::{Lane, Status};

use super::samples::*;
use crate::{LaneDue, Store};

async fn pending(store: &dyn Store) -> Vec<(Lane, redrive_core::Timestamp)> {
    let lanes = store.pending_lanes(None, 1_000).await.unwrap();
    lanes.into_iter().map(|LaneDue { lane, next_due }| (lane, next_due.expect("a pending lane is due"))).collect()
}

pub(super) async fn a_pending_lane_says_when_its_earliest_task_is_due(store: &dyn Store) {
    keep(
        store,
        [task(1).to("a").due(at(30)), task(2).to("a").due(at(20)), task(3).to("b").due(at(10)), task(4).to("a")],
    )
    .await;
    assert_eq!(pending(store).await, [(lane(TENANT, "a"), at(0)), (lane(TENANT, "b"), at(10))]);
    claim(store, lane(TENANT, "a"), 1, at(0)).await;
    assert_eq!(pending(store).await, [(lane(TENANT, "a"), at(20)), (lane(TENANT, "b"), at(10))]);
}

pub(super) async fn a_lane_with_no_pending_task_is_absent_until_it_has_one(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1).to("a")).await;
    keep_and_end(store, task(2).to("b"), Status::Failed, at(5)).await;
    assert_eq!(pending(store).await, []);
    settle(store, retry(&claimed, at(10), at(70))).await;
    assert_eq!(pending(store).await, [(lane(TENANT, "a"), at(70))]);
}

pub(super) async fn lanes_come_by_tenant_and_then_by_dependency_in_byte_order(store: &dyn Store) {
    // Names whose order changes if a store joins the two into one text, folds case or asks a locale.
    let mut lanes = Vec::new();
    for tenant in ["a", "a-b", "a.b", "aa", "B", "b", "Z", "a:b", "_"] {
        for dependency in ["a", "~", "!", "A", "https://a.example", "https://a.example:8443", "Z"] {
            lanes.push(lane(tenant, dependency));
        }
    }
    let samples = (0..).zip(&lanes).map(|(n, lane)| task(n).of(lane.tenant.as_str()).to(lane.dependency.as_str()));
    keep(store, samples).await;
    lanes.sort();
    let found: Vec<Lane> = pending(store).await.into_iter().map(|(lane, _)| lane).collect();
    assert_eq!(found, lanes);

    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = store.pending_lanes(after.clone(), 4).await.unwrap();
        assert!(page.len() <= 4);
        let Some(last) = page.last() else { break };
        assert!(after.as_ref() < Some(&last.lane), "a page goes on behind the one before, or paging never ends");
        after = Some(last.lane.clone());
        paged.extend(page.into_iter().map(|due| due.lane));
    }
    assert_eq!(paged, lanes);
}

pub(super) async fn lanes_go_on_after_one_that_is_no_longer_there(store: &dyn Store) {
    keep(store, [task(1).to("a"), task(2).to("c"), task(3).of("b").to("a")]).await;
    let after = store.pending_lanes(Some(lane(TENANT, "b")), 10).await.unwrap();
    let names: Vec<_> = after.into_iter().map(|due| due.lane).collect();
    assert_eq!(names, [lane(TENANT, "c"), lane("b", "a")]);
    assert_eq!(store.pending_lanes(Some(lane("z", "z")), 10).await.unwrap(), []);
}

pub(super) async fn a_large_backlog_in_one_lane_does_not_hide_the_others(store: &dyn Store) {
    keep(store, (0..2_000).map(|n| task(n).to("dead").due(at(n)))).await;
    keep(store, [task(5_000).to("alive").due(at(9_999)), task(5_001).to("zest").due(at(3))]).await;
    let expected = [(lane(TENANT, "alive"), at(9_999)), (lane(TENANT, "dead"), at(0)), (lane(TENANT, "zest"), at(3))];
    assert_eq!(pending(store).await, expected);
    assert_eq!(claim(store, lane(TENANT, "zest"), 5, at(10)).await.len(), 1);
    assert_eq!(counts(store, acme()).await, [2_001, 1, 0, 0, 0, 0]);
}
