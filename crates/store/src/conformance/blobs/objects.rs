//! Facts about which stored bodies are kept, and which may be deleted.

use redrive_core::{Answer, Status, Timestamp};

use crate::conformance::samples::*;
use crate::{Blob, CleanFrom, Condemned, Next, Settled, Store, Submitted};

const CONTENT: &str = "a large body";

fn blob(copy: u64) -> Blob {
    Blob { tenant: acme(), body: stored(CONTENT, copy) }
}

/// Adopts a blob of acme's, which must be new.
async fn adopt(store: &dyn Store, copy: u64, now: Timestamp) {
    assert_eq!(store.blobs().adopt(acme(), stored(CONTENT, copy), now).await.unwrap(), stored(CONTENT, copy));
}

/// All blobs that a whole pass condemns.
async fn condemn(store: &dyn Store, adopted_before: Timestamp) -> Vec<Blob> {
    let pass = store.blobs().condemn(adopted_before, None, 1_000).await.unwrap();
    assert_eq!(pass.next, None);
    pass.blobs
}

pub(crate) async fn content_that_is_adopted_twice_is_one_blob(store: &dyn Store) {
    assert_eq!(store.blobs().find(acme(), blob(1).body.hash).await.unwrap(), None);
    adopt(store, 1, at(0)).await;
    let again = store.blobs().adopt(acme(), stored(CONTENT, 2), at(1)).await.unwrap();
    assert_eq!(again, stored(CONTENT, 1));
    assert_eq!(store.blobs().find(acme(), again.hash).await.unwrap(), Some(again));
    let other = store.blobs().adopt(acme(), stored("another body", 3), at(1)).await.unwrap();
    assert_eq!(other, stored("another body", 3));
}

pub(crate) async fn a_blob_belongs_to_its_tenant(store: &dyn Store) {
    adopt(store, 1, at(0)).await;
    assert_eq!(store.blobs().find(tenant("other"), blob(1).body.hash).await.unwrap(), None);
    allow(store, tenant("other")).await;
    assert_eq!(submit(store, [task(1).of("other").stored(blob(1).body)]).await, [Submitted::BodyGone]);
    let theirs = store.blobs().adopt(tenant("other"), stored(CONTENT, 2), at(1)).await.unwrap();
    assert_eq!(theirs, stored(CONTENT, 2), "the same content of two tenants is two blobs");
    assert_eq!(condemn(store, at(1)).await, [blob(1)]);
}

pub(crate) async fn a_task_with_a_stored_body_is_kept_as_it_was_given(store: &dyn Store) {
    let body = stored(CONTENT, u64::MAX);
    assert_eq!(store.blobs().adopt(acme(), body, at(0)).await.unwrap(), body);
    let sample = task(1).stored(body);
    let claimed = keep_and_claim(store, sample.clone()).await;
    assert_eq!(claimed.request, sample.0.request);
    assert_eq!(detail(store, &claimed.task).await.request, sample.0.request);
    assert_eq!(list(store, everything(acme())).await[0].request, sample.0.request);
    assert_eq!(store.upkeep().expired_leases(Timestamp::MAX, 1).await.unwrap()[0].request, sample.0.request);
}

pub(crate) async fn a_task_refers_only_to_a_blob_that_is_kept(store: &dyn Store) {
    allow(store, acme()).await;
    let gone = [Submitted::BodyGone];
    assert_eq!(submit(store, [task(1).stored(blob(1).body)]).await, gone, "it was not adopted");
    adopt(store, 1, at(0)).await;
    assert_eq!(submit(store, [task(1).stored(blob(2).body)]).await, gone, "it is another copy that is kept");
    assert_eq!(condemn(store, at(1)).await, [blob(1)]);
    assert_eq!(submit(store, [task(1).stored(blob(1).body)]).await, gone, "it is condemned");
    store.blobs().forget(vec![blob(1)]).await.unwrap();
    assert_eq!(submit(store, [task(1).stored(blob(1).body)]).await, gone, "it is forgotten");
    assert_eq!(counts(store, acme()).await, [0; 6]);
    // The rejected submission took neither the key nor the id.
    adopt(store, 3, at(2)).await;
    keep(store, [task(1).stored(blob(3).body)]).await;
}

pub(crate) async fn a_taken_key_is_answered_even_if_the_blob_is_gone(store: &dyn Store) {
    adopt(store, 1, at(0)).await;
    let first = task(1).key("k").stored(blob(1).body);
    keep(store, [first.clone()]).await;
    let again = task(2).key("k").stored(blob(7).body);
    assert_eq!(submit(store, [again]).await, [Submitted::Replayed(Box::new(first.0.task))]);
    assert_eq!(submit(store, [task(2).key("k").body("another")]).await, [Submitted::KeyReused(id(1))]);
}

pub(crate) async fn a_blob_that_a_task_refers_to_is_not_condemned_until_the_task_is_cleaned_away(store: &dyn Store) {
    adopt(store, 1, at(0)).await;
    keep(store, [task(1).stored(blob(1).body), task(2).stored(blob(1).body)]).await;
    assert_eq!(condemn(store, Timestamp::MAX).await, [], "pending");
    let claimed = claim(store, billing(), 2, at(0)).await;
    assert_eq!(condemn(store, Timestamp::MAX).await, [], "in flight");
    settle(store, succeed(&claimed[0], at(5))).await;
    settle(store, succeed(&claimed[1], at(9))).await;
    assert_eq!(condemn(store, Timestamp::MAX).await, [], "ended");
    store.upkeep().clean(at(6), CleanFrom::Start, 10).await.unwrap();
    assert_eq!(condemn(store, Timestamp::MAX).await, [], "one of two");
    store.upkeep().clean(at(10), CleanFrom::Start, 10).await.unwrap();
    assert_eq!(condemn(store, Timestamp::MAX).await, [blob(1)]);
}

pub(crate) async fn a_blob_that_no_task_refers_to_stays_for_a_while_after_its_last_adoption(store: &dyn Store) {
    adopt(store, 1, at(10)).await;
    assert_eq!(condemn(store, at(10)).await, []);
    store.blobs().adopt(acme(), stored(CONTENT, 2), at(20)).await.unwrap();
    // An adoption with an earlier time does not move the recorded time back.
    store.blobs().adopt(acme(), stored(CONTENT, 2), at(5)).await.unwrap();
    assert_eq!(condemn(store, at(20)).await, []);
    assert_eq!(condemn(store, at(21)).await, [blob(1)]);
}

pub(crate) async fn a_condemned_blob_is_named_until_it_is_forgotten(store: &dyn Store) {
    adopt(store, 1, at(0)).await;
    for _ in 0..2 {
        assert_eq!(condemn(store, at(1)).await, [blob(1)]);
    }
    assert_eq!(condemn(store, at(0)).await, [blob(1)], "what is condemned stays so, whatever the clock says");
    store.blobs().forget(vec![blob(1), blob(2)]).await.unwrap();
    assert_eq!(condemn(store, at(1)).await, []);
}

pub(crate) async fn what_is_not_condemned_is_not_forgotten(store: &dyn Store) {
    adopt(store, 1, at(0)).await;
    store.blobs().forget(vec![blob(1)]).await.unwrap();
    assert_eq!(store.blobs().find(acme(), blob(1).body.hash).await.unwrap(), Some(blob(1).body));
}

pub(crate) async fn content_that_was_condemned_comes_back_as_another_copy(store: &dyn Store) {
    adopt(store, 1, at(0)).await;
    assert_eq!(condemn(store, at(1)).await, [blob(1)]);
    assert_eq!(store.blobs().find(acme(), blob(1).body.hash).await.unwrap(), None);
    adopt(store, 2, at(2)).await;
    keep(store, [task(1).stored(blob(2).body)]).await;
    // The first copy is still condemned, and deleting it does not affect the second.
    assert_eq!(condemn(store, Timestamp::MAX).await, [blob(1)]);
    store.blobs().forget(vec![blob(1)]).await.unwrap();
    assert_eq!(store.blobs().find(acme(), blob(1).body.hash).await.unwrap(), Some(blob(2).body));
    assert_eq!(condemn(store, Timestamp::MAX).await, []);
}

/// The settlement of a success whose answer is in this blob.
async fn end_with(store: &dyn Store, n: u64, copy: u64, status: Status) -> Answer {
    let claimed = keep_and_claim(store, task(n)).await;
    let mut kept = *answer(200);
    kept.body = blob(copy).body.into();
    let attempt = if status == Status::Succeeded { successful_attempt(&claimed) } else { failed_attempt(&claimed) };
    let next = Next::End { status, reason: None, answer: Some(Box::new(kept.clone())) };
    assert_eq!(settle(store, settlement(&claimed, Some(attempt), next, at(5))).await, Settled::Done(status));
    kept
}

pub(crate) async fn an_answer_keeps_its_blob_until_its_task_is_cleaned_away(store: &dyn Store) {
    adopt(store, 1, at(0)).await;
    for (n, status) in [(1, Status::Succeeded), (2, Status::Failed)] {
        let kept = end_with(store, n, 1, status).await;
        assert_eq!(detail(store, &task(n).0.task).await.answer, Some(kept));
    }
    assert_eq!(condemn(store, Timestamp::MAX).await, []);
    store.upkeep().clean(at(6), CleanFrom::Start, 10).await.unwrap();
    assert_eq!(condemn(store, Timestamp::MAX).await, [blob(1)]);
}

pub(crate) async fn of_an_answer_whose_blob_is_gone_the_rest_is_kept(store: &dyn Store) {
    for (n, status) in [(1, Status::Succeeded), (2, Status::Failed)] {
        let kept = end_with(store, n, n, status).await;
        assert_eq!(detail(store, &task(n).0.task).await.answer, Some(kept.without_body()));
    }
}

pub(crate) async fn a_replay_lets_go_of_the_answers_blob_and_not_of_the_bodys(store: &dyn Store) {
    adopt(store, 1, at(0)).await;
    end_with(store, 1, 1, Status::Failed).await;
    store.tasks().replay_one(acme(), id(1), at(6)).await.unwrap();
    assert_eq!(condemn(store, Timestamp::MAX).await, [blob(1)]);
    adopt(store, 2, at(7)).await;
    keep_and_end(store, task(2).stored(blob(2).body), Status::Exhausted, at(9)).await;
    store.tasks().replay_one(acme(), id(2), at(10)).await.unwrap();
    assert_eq!(condemn(store, Timestamp::MAX).await, [blob(1)]);
}

pub(crate) async fn a_pass_over_blobs_goes_in_steps_and_reaches_every_one(store: &dyn Store) {
    let mut expected = Vec::new();
    for n in 0..10 {
        for name in ["acme", "other"] {
            let blob = Blob { tenant: tenant(name), body: stored(&format!("body {n}"), n) };
            store.blobs().adopt(blob.tenant.clone(), blob.body, at(n)).await.unwrap();
            expected.push(blob);
        }
    }
    let (mut found, mut after, mut steps) = (Vec::new(), None, 0);
    loop {
        let Condemned { blobs, next } = store.blobs().condemn(at(8), after, 3).await.unwrap();
        assert!(blobs.len() <= 3, "{blobs:?}");
        found.extend(blobs);
        steps += 1;
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert!(steps >= 7, "{steps} steps for 20 blobs");
    found.sort();
    expected.retain(|blob| blob.body.copy < 8);
    expected.sort();
    assert_eq!(found, expected);
}
