//! Facts about submitting new tasks.

use redrive_core::request::FingerprintVersion;
use redrive_core::{PolicyId, Status, policy};

use crate::conformance::samples::*;
use crate::{ClaimedTask, Expected, Lease, Settled, Store, Submitted, Token};

pub(crate) async fn a_submitted_task_is_found_as_it_was_given(store: &dyn Store) {
    let sample = task(1).due(at(70)).created(at(3));
    assert_eq!(keep(store, [sample.clone()]).await, [None]);
    let found = detail(store, &sample.0.task).await;
    assert_eq!(found.task, sample.0.task);
    assert_eq!(found.request, sample.0.request);
    assert_eq!(found.answer, None);
    assert_eq!(attempts(store, &sample.0.task).await, []);
}

pub(crate) async fn a_task_that_starts_claimed_counts_its_first_attempt(store: &dyn Store) {
    let sample = task(1).due(at(5)).claimed(at(7));
    let lease = keep(store, [sample.clone()]).await.remove(0).expect("a task that starts claimed has a lease");
    assert_eq!(lease, Lease { token: Token(1), since: at(7), until: at(15_007) });
    let found = now_of(store, &sample.0.task).await;
    assert_eq!((found.status, found.attempt_number, found.next_attempt_at), (Status::InFlight, 1, Some(at(5))));
    let claimed = ClaimedTask { task: found, request: sample.0.request, lease };
    assert_eq!(settle(store, succeed(&claimed, at(20))).await, Settled::Done(Status::Succeeded));
}

pub(crate) async fn a_task_that_starts_claimed_is_not_pending_for_anybody(store: &dyn Store) {
    keep(store, [task(1).claimed(at(0))]).await;
    assert!(claim(store, billing(), 10, at(1_000_000)).await.is_empty());
    assert!(store.upkeep().pending_lanes(None, 10).await.unwrap().is_empty());
}

pub(crate) async fn the_same_key_and_request_is_answered_with_the_task_as_it_is_now(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1).key("k")).await;
    let again = submit(store, [task(2).key("k")]).await.remove(0);
    assert_eq!(again, Submitted::Replayed(Box::new(claimed.task.clone())));
    settle(store, succeed(&claimed, at(9))).await;
    let ended = now_of(store, &claimed.task).await;
    // A second submission that would start claimed claims nothing either.
    assert_eq!(submit(store, [task(3).key("k").claimed(at(9))]).await, [Submitted::Replayed(Box::new(ended))]);
    assert_eq!(counts(store, acme()).await, [0, 0, 1, 0, 0, 0]);
}

pub(crate) async fn the_same_key_with_another_request_is_refused_and_changes_nothing(store: &dyn Store) {
    let sample = task(1).key("k");
    keep(store, [sample.clone()]).await;
    assert_eq!(submit(store, [task(2).key("k").body("other")]).await, [Submitted::KeyReused(id(1))]);
    assert_eq!(now_of(store, &sample.0.task).await, sample.0.task);
    assert_eq!(store.reads().task(acme(), id(2)).await.unwrap(), None);
    assert_eq!(counts(store, acme()).await, [1, 0, 0, 0, 0, 0]);
}

pub(crate) async fn a_key_leads_to_its_task_as_it_is_now(store: &dyn Store) {
    let sample = task(1).key("k");
    keep(store, [sample.clone()]).await;
    let claimed = claim(store, billing(), 1, at(1_000_000)).await.remove(0);
    let key = sample.0.task.idempotency_key.clone();
    let found = store.reads().by_key(acme(), key.clone()).await.unwrap();
    assert_eq!(found, Some((claimed.task, sample.0.fingerprint)));
    assert_eq!(store.reads().by_key(tenant("other"), key).await.unwrap(), None);
    assert_eq!(store.reads().by_key(acme(), task(2).key("unknown").0.task.idempotency_key).await.unwrap(), None);
}

pub(crate) async fn a_key_belongs_to_the_tenant_and_not_to_the_dependency(store: &dyn Store) {
    keep(store, [task(1).key("k").to("one")]).await;
    let elsewhere = task(2).key("k").to("two").body("other");
    assert_eq!(submit(store, [elsewhere]).await, [Submitted::KeyReused(id(1))]);
}

pub(crate) async fn the_same_key_of_two_tenants_is_two_tasks(store: &dyn Store) {
    keep(store, [task(1).key("k").of("one"), task(2).key("k").of("two"), task(3).key("k").of("three").body("b")]).await;
    assert_eq!(counts(store, tenant("one")).await, [1, 0, 0, 0, 0, 0]);
    assert_eq!(counts(store, tenant("two")).await, [1, 0, 0, 0, 0, 0]);
}

pub(crate) async fn keys_are_compared_exactly(store: &dyn Store) {
    let long = "k".repeat(63);
    let keys = ["k", "K", "k'", "k\"", "k%", "k_", "1", "01", "1.0", &format!("{long}a"), &format!("{long}b")];
    keep(store, keys.iter().zip(1..).map(|(key, n)| task(n).key(key))).await;
    for (key, n) in keys.iter().zip(1..) {
        let again = submit(store, [task(n + 100).key(key)]).await;
        assert!(matches!(&again[..], [Submitted::Replayed(owner)] if owner.id == id(n)), "{key}: {again:?}");
    }
}

pub(crate) async fn keys_are_compared_within_one_call(store: &dyn Store) {
    allow(store, acme()).await;
    let first = task(1).key("k");
    let submitted = submit(
        store,
        [first.clone(), task(2).key("k"), task(3).key("k").body("other"), task(4).key("l"), task(5).key("l")],
    )
    .await;
    assert_eq!(submitted[0], Submitted::Created(Box::new(first.0.task.clone()), None));
    assert_eq!(submitted[1], Submitted::Replayed(Box::new(first.0.task)));
    assert_eq!(submitted[2], Submitted::KeyReused(id(1)));
    assert_eq!(submitted[3], Submitted::Created(Box::new(task(4).key("l").0.task), None));
    assert!(matches!(&submitted[4], Submitted::Replayed(task) if task.id == id(4)));
    assert_eq!(counts(store, acme()).await, [2, 0, 0, 0, 0, 0]);
}

pub(crate) async fn a_batch_of_a_thousand_keeps_each_key_once_and_answers_in_order(store: &dyn Store) {
    allow(store, acme()).await;
    // Every third item repeats the key before it, every ninth with another request.
    let samples = (0..1_000).map(|n| match n {
        _ if n % 9 == 2 => task(n).key(&format!("key-{}", n - 1)).body("other"),
        _ if n % 3 == 2 => task(n).key(&format!("key-{}", n - 1)),
        _ => task(n),
    });
    let submitted = submit(store, samples).await;
    assert_eq!(submitted.len(), 1_000);
    for (n, submitted) in (0..).zip(submitted) {
        match submitted {
            Submitted::KeyReused(owner) => assert!(n % 9 == 2 && owner == id(n - 1), "{n}"),
            Submitted::Replayed(owner) => assert!(n % 3 == 2 && owner.id == id(n - 1), "{n}"),
            Submitted::Created(task, None) => assert!(n % 3 != 2 && task.id == id(n), "{n}"),
            other => panic!("{n}: {other:?}"),
        }
    }
    assert_eq!(counts(store, acme()).await, [667, 0, 0, 0, 0, 0]);
}

pub(crate) async fn a_task_whose_policy_version_is_missing_is_refused_alone(store: &dyn Store) {
    allow(store, acme()).await;
    allow(store, tenant("other")).await;
    store
        .policies()
        .put(tenant("other"), policy_id("theirs"), policy::Spec::default(), Expected::Anything, at(0))
        .await
        .unwrap();
    let submitted = submit(
        store,
        [
            task(1),
            task(2).policy("nowhere", 1),
            task(3).policy("default", 2),
            task(4).policy("default", 0),
            task(5).policy("theirs", 1),
            task(6).of("nobody"),
            task(7).claimed(at(0)).policy("nowhere", 1),
            task(8),
        ],
    )
    .await;
    let kept: Vec<bool> = submitted.iter().map(|submitted| matches!(submitted, Submitted::Created(_, None))).collect();
    assert_eq!(kept, [true, false, false, false, false, false, false, true]);
    assert_eq!(submitted.iter().filter(|submitted| **submitted == Submitted::PolicyGone).count(), 6);
    for n in 2..=7 {
        assert_eq!(store.reads().task(acme(), id(n)).await.unwrap(), None, "{n}");
    }
}

pub(crate) async fn a_refused_task_does_not_take_its_key(store: &dyn Store) {
    allow(store, acme()).await;
    assert_eq!(submit(store, [task(1).key("k").policy("nowhere", 1)]).await, [Submitted::PolicyGone]);
    keep(store, [task(2).key("k")]).await;
}

pub(crate) async fn a_taken_key_is_answered_even_if_the_policy_is_gone(store: &dyn Store) {
    keep_and_end(store, task(1).key("k"), Status::Succeeded, at(9)).await;
    store.policies().delete(acme(), PolicyId::default_policy(), Expected::Anything).await.unwrap();
    let again = submit(store, [task(2).key("k"), task(3).key("k").body("other"), task(4)]).await;
    assert!(matches!(&again[0], Submitted::Replayed(task) if task.id == id(1)));
    assert_eq!(again[1..], [Submitted::KeyReused(id(1)), Submitted::PolicyGone]);
}

pub(crate) async fn a_superseded_policy_version_that_a_task_refers_to_still_takes_tasks(store: &dyn Store) {
    keep(store, [task(1)]).await;
    let spec = policy::Spec { max_attempts: Some(9), ..policy::Spec::default() };
    store.policies().put(acme(), PolicyId::default_policy(), spec, Expected::Anything, at(1)).await.unwrap();
    keep(store, [task(2).policy("default", 1), task(3).policy("default", 2)]).await;
    assert_eq!(now_of(store, &task(2).0.task).await.policy.version, 1);
    assert_eq!(now_of(store, &task(3).0.task).await.policy.version, 2);
}

pub(crate) async fn tasks_may_arrive_in_any_order_of_their_ids(store: &dyn Store) {
    keep(store, [task(5), task(3)]).await;
    keep(store, [task(4)]).await;
    let listed: Vec<_> = list(store, everything(acme())).await.into_iter().map(|found| found.task.id).collect();
    assert_eq!(listed, [id(5), id(4), id(3)]);
    assert_eq!(store.upkeep().newest_task().await.unwrap(), Some(id(5)));
}

pub(crate) async fn an_empty_call_is_an_empty_answer(store: &dyn Store) {
    assert_eq!(store.tasks().submit(Vec::new()).await.unwrap(), []);
    assert_eq!(claim_rooms(store, [], at(0)).await, crate::Claims::default());
    assert_eq!(store.tasks().settle(Vec::new()).await.unwrap(), []);
}

pub(crate) async fn a_key_whose_fingerprint_has_another_version_is_answered_with_it(store: &dyn Store) {
    let mut old = task(1);
    old.0.fingerprint.version = FingerprintVersion::V1;
    keep(store, [old.clone()]).await;
    let found = store.reads().by_key(acme(), old.0.task.idempotency_key.clone()).await.unwrap().unwrap();
    assert_eq!(found.1, old.0.fingerprint);
    let mut again = task(4).key("key-1");
    again.0.fingerprint.version = FingerprintVersion::V1;
    let answers = submit(store, [task(2).key("key-1"), task(3).key("key-1").body("other"), again]).await;
    let stored = Box::new(found.0);
    let other_version = Submitted::KeyOfVersion(stored.clone(), found.1);
    assert_eq!(answers, [other_version.clone(), other_version, Submitted::Replayed(stored)]);
}
