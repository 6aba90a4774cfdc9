//! Facts about policies and their versions.

use redrive_core::policy::Spec;
use redrive_core::{Status, TenantId};

use super::reads::content::full_spec;
use crate::conformance::samples::*;
use crate::{DeletePolicy, Expected, PolicyVersion, PutPolicy, Store, Submitted};

fn spec(max_attempts: u32) -> Spec {
    Spec { max_attempts: Some(max_attempts), ..Spec::default() }
}

fn version(version: u32, spec: Spec, created: u64) -> PolicyVersion {
    PolicyVersion { id: policy_id("hooks"), version, spec, created_at: at(created) }
}

async fn put(store: &dyn Store, spec: Spec, expected: Expected, now: u64) -> PutPolicy {
    store.policies().put(acme(), policy_id("hooks"), spec, expected, at(now)).await.unwrap()
}

async fn delete(store: &dyn Store, expected: Expected) -> DeletePolicy {
    store.policies().delete(acme(), policy_id("hooks"), expected).await.unwrap()
}

async fn versions(store: &dyn Store, tenant: TenantId) -> Vec<PolicyVersion> {
    store.policies().versions(tenant, policy_id("hooks")).await.unwrap()
}

pub(super) async fn another_spec_is_the_next_version_and_the_same_spec_is_none(store: &dyn Store) {
    assert_eq!(versions(store, acme()).await, []);
    let first = version(1, spec(3), 10);
    assert_eq!(put(store, spec(3), Expected::Anything, 10).await, PutPolicy::Created(first.clone()));
    assert_eq!(put(store, spec(3), Expected::Anything, 20).await, PutPolicy::Unchanged(first.clone()));
    let second = version(2, spec(4), 30);
    assert_eq!(put(store, spec(4), Expected::Anything, 30).await, PutPolicy::Updated(second.clone()));
    // Going back to an earlier spec makes a new version too.
    let third = version(3, spec(3), 40);
    assert_eq!(put(store, spec(3), Expected::Anything, 40).await, PutPolicy::Updated(third.clone()));
    assert_eq!(versions(store, acme()).await, [first, second, third]);
}

pub(super) async fn a_policy_is_kept_with_every_field(store: &dyn Store) {
    put(store, full_spec(), Expected::Anything, 10).await;
    assert_eq!(versions(store, acme()).await, [version(1, full_spec(), 10)]);
    assert_eq!(store.policies().list(acme(), None, 10).await.unwrap(), [version(1, full_spec(), 10)]);
    let unchanged = put(store, full_spec(), Expected::Anything, 20).await;
    assert_eq!(unchanged, PutPolicy::Unchanged(version(1, full_spec(), 10)));
}

pub(super) async fn a_put_that_expects_something_else_changes_nothing(store: &dyn Store) {
    assert_eq!(put(store, spec(1), Expected::Version(1), 5).await, PutPolicy::Conflict(None));
    assert_eq!(versions(store, acme()).await, []);
    assert!(matches!(put(store, spec(1), Expected::Absent, 10).await, PutPolicy::Created(_)));
    assert!(matches!(put(store, spec(2), Expected::Version(1), 20).await, PutPolicy::Updated(_)));
    for expected in [Expected::Absent, Expected::Version(1), Expected::Version(3), Expected::Version(0)] {
        // A wrong expectation is a conflict even if the spec is the same.
        for given in [spec(2), spec(9)] {
            assert_eq!(put(store, given, expected, 30).await, PutPolicy::Conflict(Some(2)), "{expected:?}");
        }
    }
    let second = version(2, spec(2), 20);
    assert_eq!(put(store, spec(2), Expected::Version(2), 40).await, PutPolicy::Unchanged(second.clone()));
    assert_eq!(versions(store, acme()).await.last(), Some(&second));
}

pub(super) async fn policies_are_listed_in_byte_order_with_their_current_version(store: &dyn Store) {
    let mut names = ["b", "a", "B", "a.b", "a-b", "Z", "_", "10", "9", "a:b"];
    for name in names {
        for attempts in 1..=2 {
            store
                .policies()
                .put(acme(), policy_id(name), spec(attempts), Expected::Anything, at(attempts.into()))
                .await
                .unwrap();
        }
    }
    names.sort_unstable();
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.policies().list(acme(), after.clone(), 3).await.unwrap();
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        assert!(after.as_ref() < Some(&last.id), "a page goes on behind the one before, or paging never ends");
        after = Some(last.id.clone());
        found.extend(page);
    }
    let expected = names.map(|name| PolicyVersion { id: policy_id(name), ..version(2, spec(2), 2) });
    assert_eq!(found, expected);
}

pub(super) async fn a_policy_belongs_to_its_tenant(store: &dyn Store) {
    put(store, spec(1), Expected::Anything, 10).await;
    let other = tenant("other");
    assert_eq!(versions(store, other.clone()).await, []);
    assert_eq!(store.policies().list(other.clone(), None, 10).await.unwrap(), []);
    let deleted = store.policies().delete(other.clone(), policy_id("hooks"), Expected::Anything).await.unwrap();
    assert_eq!(deleted, DeletePolicy::NotFound);
    let theirs = store.policies().put(other, policy_id("hooks"), spec(2), Expected::Absent, at(20)).await.unwrap();
    assert_eq!(theirs, PutPolicy::Created(version(1, spec(2), 20)));
    assert_eq!(versions(store, acme()).await, [version(1, spec(1), 10)]);
}

pub(super) async fn a_deleted_policy_is_gone(store: &dyn Store) {
    put(store, spec(1), Expected::Anything, 10).await;
    assert_eq!(delete(store, Expected::Anything).await, DeletePolicy::Done);
    assert_eq!(versions(store, acme()).await, []);
    assert_eq!(store.policies().list(acme(), None, 10).await.unwrap(), []);
    assert_eq!(delete(store, Expected::Anything).await, DeletePolicy::NotFound);
    assert_eq!(submit(store, [task(1).policy("hooks", 1)]).await, [Submitted::PolicyGone]);
}

pub(super) async fn a_delete_that_expects_something_else_changes_nothing(store: &dyn Store) {
    for expected in [Expected::Anything, Expected::Version(1), Expected::Absent] {
        assert_eq!(delete(store, expected).await, DeletePolicy::NotFound);
    }
    put(store, spec(1), Expected::Anything, 10).await;
    put(store, spec(2), Expected::Anything, 20).await;
    for expected in [Expected::Version(1), Expected::Version(3), Expected::Absent] {
        assert_eq!(delete(store, expected).await, DeletePolicy::Conflict(2));
    }
    assert_eq!(versions(store, acme()).await.last(), Some(&version(2, spec(2), 20)));
    assert_eq!(delete(store, Expected::Version(2)).await, DeletePolicy::Done);
}

pub(super) async fn a_policy_that_live_tasks_pin_cannot_be_deleted(store: &dyn Store) {
    put(store, spec(1), Expected::Anything, 10).await;
    keep(store, [task(1).policy("hooks", 1), task(2).policy("hooks", 1).due(at(5))]).await;
    put(store, spec(2), Expected::Anything, 20).await;
    keep(store, [task(3).policy("hooks", 2).claimed(at(0)), task(4)]).await;
    assert_eq!(delete(store, Expected::Anything).await, DeletePolicy::Pinned(3), "pins of all versions count");
    store.tasks().cancel_one(acme(), id(2), at(1)).await.unwrap();
    assert_eq!(delete(store, Expected::Anything).await, DeletePolicy::Pinned(2));
    // One task starts claimed and one is pending.
    let in_flight = store.upkeep().expired_leases(at(9_000_000), 1).await.unwrap().remove(0);
    settle(store, end(&in_flight, Status::Failed, None, at(30))).await;
    assert_eq!(delete(store, Expected::Anything).await, DeletePolicy::Pinned(1));
    store.tasks().cancel_one(acme(), id(1), at(40)).await.unwrap();
    assert_eq!(delete(store, Expected::Anything).await, DeletePolicy::Done);
    assert_eq!(now_of(store, &task(1).0.task).await.policy.version, 1, "the ended tasks stay as they were");
}

pub(super) async fn only_the_tenants_own_tasks_pin_its_policy(store: &dyn Store) {
    let hooks = policy_id("hooks");
    put(store, spec(1), Expected::Anything, 10).await;
    store.policies().put(tenant("other"), hooks.clone(), spec(1), Expected::Anything, at(10)).await.unwrap();
    keep(store, [task(1).of("other").policy("hooks", 1)]).await;
    assert_eq!(delete(store, Expected::Anything).await, DeletePolicy::Done);
    let theirs = store.policies().delete(tenant("other"), hooks, Expected::Anything).await.unwrap();
    assert_eq!(theirs, DeletePolicy::Pinned(1));
}

pub(super) async fn a_version_number_is_never_used_twice(store: &dyn Store) {
    put(store, spec(1), Expected::Anything, 10).await;
    put(store, spec(2), Expected::Anything, 20).await;
    assert_eq!(delete(store, Expected::Anything).await, DeletePolicy::Done);
    assert_eq!(put(store, spec(2), Expected::Version(2), 25).await, PutPolicy::Conflict(None));
    let third = version(3, spec(2), 30);
    assert_eq!(put(store, spec(2), Expected::Absent, 30).await, PutPolicy::Created(third.clone()));
    assert_eq!(versions(store, acme()).await, store.policies().list(acme(), None, 10).await.unwrap());
    assert_eq!(versions(store, acme()).await, [third]);
    let gone = submit(store, [task(1).policy("hooks", 1), task(2).policy("hooks", 2)]).await;
    assert_eq!(gone, [Submitted::PolicyGone, Submitted::PolicyGone]);
    keep(store, [task(3).policy("hooks", 3)]).await;
}
