//! Facts about the count of attempts that failed by DNS.

use redrive_core::{Reason, Status};

use crate::conformance::samples::*;
use crate::{ClaimedTask, Next, Settlement, Store};

/// The attempt failed, and its run has this many DNS failures now.
fn retry_after(claimed: &ClaimedTask, dns_failures: u32) -> Settlement {
    let next = Next::RetryAt { at: at(5), backoff: None, dns_failures };
    settlement(claimed, Some(failed_attempt(claimed)), next, at(5))
}

pub(crate) async fn the_number_of_dns_failures_is_carried_to_the_next_attempt(store: &dyn Store) {
    let mut claimed = keep_and_claim(store, task(1)).await;
    assert_eq!(claimed.task.dns_failures, 0);
    for dns_failures in [1, 1, 2, 0, 40_000] {
        settle(store, retry_after(&claimed, dns_failures)).await;
        assert_eq!(now_of(store, &claimed.task).await.dns_failures, dns_failures);
        claimed = claim(store, billing(), 1, at(5)).await.remove(0);
        assert_eq!(claimed.task.dns_failures, dns_failures);
    }
    assert_eq!(store.upkeep().expired_leases(claimed.lease.until, 1).await.unwrap(), [claimed]);
}

pub(crate) async fn an_attempt_given_back_unsent_keeps_the_number_of_dns_failures(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    settle(store, retry_after(&claimed, 2)).await;
    let claimed = claim(store, billing(), 1, at(5)).await;
    give_back(store, &claimed, at(6)).await;
    assert_eq!(now_of(store, &claimed[0].task).await.dns_failures, 2);
    assert_eq!(claim(store, billing(), 1, at(6)).await[0].task.dns_failures, 2);
}

pub(crate) async fn a_task_keeps_the_number_of_dns_failures_until_it_is_replayed(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    settle(store, retry_after(&claimed, 1)).await;
    let claimed = claim(store, billing(), 1, at(5)).await.remove(0);
    settle(store, end(&claimed, Status::Exhausted, Some(Reason::DnsAttempts), at(10))).await;
    let ended = now_of(store, &claimed.task).await;
    assert_eq!((ended.reason, ended.dns_failures), (Some(Reason::DnsAttempts), 1));
    store.tasks().replay_one(acme(), id(1), at(20)).await.unwrap();
    assert_eq!(now_of(store, &claimed.task).await.dns_failures, 0);
    assert_eq!(claim(store, billing(), 1, at(20)).await[0].task.dns_failures, 0);
}
