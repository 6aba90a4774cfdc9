//! Facts about what is kept of a record, and how long.

use redrive_core::BodyRef;
use redrive_core::idempotency::{Change, Reserved, State};

use super::*;
use crate::conformance::samples::{acme, at, stored, tenant};
use crate::{Blob, DeletedRecord, SeenRecord};

pub(crate) async fn a_result_is_replayed_as_it_was_given(store: &dyn Store) {
    let text = "{\"id\": \"pay_123\", \"note\": \"zwölf \u{1F600}\"}";
    let headers = vec![("X-One".to_owned(), "ü".to_owned()), ("x-one".to_owned(), String::new())];
    let bytes: Vec<u8> = (0..=255).collect();
    let odd = Response { status: 599, headers, body: Body::from(bytes::Bytes::from(bytes)) };
    let completions = [
        Completion::default(),
        response(text),
        response(""),
        with_resource(Completion::default()),
        with_resource(Completion { response: Some(odd), resource: None }),
    ];
    for (n, completion) in completions.into_iter().enumerate() {
        let name = format!("a-{n}");
        let one = own(store, key(&name), 7, at(1)).await;
        let ended = make(store, key(&name), one, Change::Complete(completion.clone()), at(5)).await;
        let expected = Record {
            request_hash: RequestHash([1; 32]),
            state: State::Succeeded,
            owner: one,
            lease_until: at(5),
            retention: RETENTION,
            started_at: at(1),
            updated_at: at(5),
            expires_at: at(5).after(RETENTION),
            completion,
        };
        assert_eq!(ended, expected);
        assert_eq!(reserve(store, key(&name), ask(8), at(6)).await, Reserved::Ended(Box::new(expected.clone())));
        assert_eq!(read(store, key(&name), at(6)).await, Some(expected));
    }
}

pub(crate) async fn numbers_of_a_record_are_kept_to_their_ends(store: &dyn Store) {
    let execution = ExecutionId::from_u128(u128::MAX);
    let long = Duration::from_millis(1 << 40);
    let asked = Reserve { execution, lease: long, retention: long, request_hash: RequestHash([255; 32]), ..ask(1) };
    let Reserved::Granted { epoch, .. } = reserve(store, key("a"), asked, at(1)).await else { panic!("not granted") };
    let record = read(store, key("a"), at(1)).await.unwrap();
    assert_eq!((record.owner, record.retention), (Owner { execution, epoch }, long));
    assert_eq!((record.lease_until, record.expires_at), (at(1).after(long), at(1).after(long).after(long)));
}

pub(crate) async fn keys_of_records_are_compared_exactly(store: &dyn Store) {
    let long = "x".repeat(RecordName::MAX_CHARS);
    let keys = [
        key_of(acme(), "pay", "a"),
        key_of(acme(), "pay", "A"),
        key_of(acme(), "pay", "a/b"),
        key_of(acme(), "pay", "%"),
        key_of(acme(), "pay", &long),
        key_of(acme(), "Pay", "a"),
        key_of(acme(), "pay.a", "b"),
        key_of(acme(), "inbox/pay", "a"),
        key_of(tenant("other"), "pay", "a"),
    ];
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(own(store, key.clone(), n as u128, at(1)).await.epoch, Epoch(1), "{key}");
    }
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(read(store, key.clone(), at(1)).await.unwrap().owner, owner(n as u128, 1), "{key}");
    }
}

pub(crate) async fn a_record_expires_at_its_time_whether_or_not_it_was_cleaned(store: &dyn Store) {
    let one = own(store, key("a"), 1, at(1)).await;
    let ended = make(store, key("a"), one, Change::Complete(response("done")), at(2)).await;
    let expires = at(2).after(RETENTION);
    let before = expires.before(Duration::from_millis(1));
    assert_eq!(read(store, key("a"), before).await, Some(ended));
    assert!(matches!(reserve(store, key("a"), ask(2), before).await, Reserved::Ended(_)));
    assert_eq!(read(store, key("a"), expires).await, None);
    assert_eq!(list(store, query(acme(), expires)).await, []);
    let other = reserve(store, key("a"), ask_otherwise(2), expires).await;
    let granted = Reserved::Granted { epoch: Epoch(2), lease_until: expires.after(LEASE), previous: None };
    assert_eq!(other, granted, "another request may use the key now");
}

pub(crate) async fn records_that_have_expired_are_cleaned_in_steps(store: &dyn Store) {
    for n in 0..5 {
        let one = own(store, key(&format!("a-{n}")), 1, at(n)).await;
        make(store, key(&format!("a-{n}")), one, Change::Complete(response("done")), at(n)).await;
    }
    own(store, key("running"), 1, at(0)).await;
    let now = at(3).after(RETENTION);
    for removed in [3, 1, 0] {
        assert_eq!(store.records().clean(now, 3).await.unwrap(), removed);
    }
    for n in 0..5 {
        let kept = read(store, key(&format!("a-{n}")), at(4)).await;
        assert_eq!(kept.is_some(), n == 4, "a-{n}");
    }
    assert!(read(store, key("running"), now).await.is_some(), "it is kept for its retention after its lease");
    assert_eq!(own(store, key("a-1"), 2, now).await.epoch, Epoch(1), "nothing is left of it");
    assert_eq!(store.records().clean(Timestamp::MAX, 100).await.unwrap(), 3);
}

pub(crate) async fn a_record_is_deleted_only_if_it_is_the_one_that_was_seen(store: &dyn Store) {
    let one = own(store, key("a"), 1, at(1)).await;
    let seen = SeenRecord::of(&read(store, key("a"), at(1)).await.unwrap());
    let delete = async |key, seen| store.records().delete(key, seen, at(3)).await.unwrap();
    let renewed = make(store, key("a"), one, Change::Renew(LEASE * 2), at(1)).await;
    let changed = DeletedRecord::Changed(Box::new(renewed));
    assert_eq!(
        delete(key("a"), Some(seen)).await,
        changed,
        "it was renewed in the millisecond in which it was reserved"
    );
    let ended = make(store, key("a"), one, Change::Complete(with_resource(response("done"))), at(2)).await;
    assert_eq!(delete(key("b"), None).await, DeletedRecord::Absent);
    assert_eq!(delete(key("a"), Some(seen)).await, DeletedRecord::Changed(Box::new(ended.clone())));
    assert_eq!(read(store, key("a"), at(3)).await, Some(ended.clone()));
    let seen = Some(SeenRecord::of(&ended));
    assert_eq!(delete(key_of(tenant("other"), "pay", "a"), seen).await, DeletedRecord::Absent);
    assert_eq!(delete(key("a"), seen).await, DeletedRecord::Done(Box::new(ended)));
    assert_eq!(delete(key("a"), None).await, DeletedRecord::Absent);
    assert_eq!(read(store, key("a"), at(3)).await, None);
    let two = own(store, key("a"), 2, at(4)).await;
    assert_eq!(two.epoch, Epoch(2), "epochs go on");
    assert_eq!(read(store, key("a"), at(4)).await.unwrap().completion, Completion::default());
}

fn stored_response(body: BodyRef) -> Completion {
    Completion { response: Some(Response { status: 200, headers: Vec::new(), body: body.into() }), resource: None }
}

async fn condemned(store: &dyn Store) -> Vec<Blob> {
    store.blobs().condemn(at(1_000), None, 100).await.unwrap().blobs
}

pub(crate) async fn a_response_keeps_its_blob_until_its_record_is_gone(store: &dyn Store) {
    for (name, content) in [("cleaned", "one"), ("deleted", "two")] {
        let body = store.blobs().adopt(acme(), stored(content, 1), at(0)).await.unwrap();
        let one = own(store, key(name), 1, at(1)).await;
        let ended = make(store, key(name), one, Change::Complete(stored_response(body)), at(2)).await;
        assert_eq!(ended.completion, stored_response(body));
        assert_eq!(read(store, key(name), at(2)).await, Some(ended));
        assert_eq!(condemned(store).await, [], "{name}");
    }
    store.records().delete(key("deleted"), None, at(3)).await.unwrap();
    let gone = |content| Blob { tenant: acme(), body: stored(content, 1) };
    assert_eq!(condemned(store).await, [gone("two")]);
    store.blobs().forget(vec![gone("two")]).await.unwrap();
    store.records().clean(Timestamp::MAX, 100).await.unwrap();
    assert_eq!(condemned(store).await, [gone("one")]);
}

pub(crate) async fn a_response_refers_only_to_a_blob_that_is_kept(store: &dyn Store) {
    let one = own(store, key("a"), 1, at(1)).await;
    let before = read(store, key("a"), at(1)).await;
    let complete = |copy| Change::Complete(stored_response(stored("one", copy)));
    let refused = store.records().change_one(key("a"), one, complete(1), at(2)).await.unwrap();
    assert_eq!(refused, RecordChanged::BodyGone);
    assert_eq!(read(store, key("a"), at(2)).await, before, "nothing was changed");
    store.blobs().adopt(acme(), stored("one", 2), at(2)).await.unwrap();
    make(store, key("a"), one, complete(2), at(3)).await;
}
