//! Facts about who owns a record.

use redrive_core::idempotency::{Change, Changed, Epoch, Previous, Reserve, Reserved, State};

use super::*;
use crate::conformance::samples::{acme, at};
use crate::conformance::whole::together;
use crate::{RecordChange, Reservation};

fn late() -> Timestamp {
    at(1).after(LEASE)
}

pub(crate) async fn a_record_has_one_owner_until_its_lease_is_over(store: &dyn Store) {
    let granted = Reserved::Granted { epoch: Epoch(1), lease_until: at(1).after(LEASE), previous: None };
    assert_eq!(reserve(store, key("a"), ask(1), at(1)).await, granted);
    let in_progress = Reserved::InProgress { started_at: at(1), lease_until: at(1).after(LEASE) };
    assert_eq!(reserve(store, key("a"), ask(2), at(2)).await, in_progress);
    let previous = Some(Previous { owner: owner(1, 1), state: State::InProgress });
    let taken_over = Reserved::Granted { epoch: Epoch(2), lease_until: late().after(LEASE), previous };
    assert_eq!(reserve(store, key("a"), ask(2), late()).await, taken_over);
    assert_eq!(read(store, key("a"), late()).await.unwrap().owner, owner(2, 2));
}

pub(crate) async fn an_owner_that_was_replaced_changes_nothing(store: &dyn Store) {
    let old = own(store, key("a"), 1, at(1)).await;
    let new = own(store, key("a"), 2, late()).await;
    let before = read(store, key("a"), late()).await;
    let release = Change::Release;
    for made in [Change::Complete(response("old")), Change::FailRetryable, Change::Renew(LEASE), release] {
        assert_eq!(change(store, key("a"), old, made, late()).await, Changed::Fenced);
    }
    assert_eq!(change(store, key("a"), owner(1, 2), Change::Release, late()).await, Changed::Fenced);
    assert_eq!(change(store, key("a"), owner(2, 1), Change::Release, late()).await, Changed::Fenced);
    assert_eq!(read(store, key("a"), late()).await, before);
    make(store, key("a"), new, Change::Complete(response("new")), late()).await;
    assert_eq!(change(store, key("a"), old, Change::Complete(response("old")), late()).await, Changed::Fenced);
    let Reserved::Ended(record) = reserve(store, key("a"), ask(3), late()).await else { panic!("not ended") };
    assert_eq!(record.completion, response("new"));
}

pub(crate) async fn a_call_that_is_repeated_is_answered_like_the_first(store: &dyn Store) {
    let one = own(store, key("a"), 1, at(1)).await;
    assert_eq!(own(store, key("a"), 1, at(2)).await, one, "its first answer was lost");
    let ended = make(store, key("a"), one, Change::Complete(response("done")), at(3)).await;
    let again = make(store, key("a"), one, Change::Complete(response("done")), at(4)).await;
    assert_eq!(again, ended);
    let other = change(store, key("a"), one, Change::FailRetryable, at(4)).await;
    assert_eq!(other, Changed::AlreadyEnded(State::Succeeded));
    assert_eq!(change(store, key("b"), one, Change::FailRetryable, at(4)).await, Changed::Absent);
}

pub(crate) async fn an_execution_that_failed_lets_the_next_one_try(store: &dyn Store) {
    let one = own(store, key("a"), 1, at(1)).await;
    make(store, key("a"), one, Change::FailRetryable, at(2)).await;
    let previous = Some(Previous { owner: one, state: State::FailedRetryable });
    let granted = Reserved::Granted { epoch: Epoch(2), lease_until: at(3).after(LEASE), previous };
    assert_eq!(reserve(store, key("a"), ask(2), at(3)).await, granted);
    let failed = make(store, key("a"), owner(2, 2), Change::FailFinal(response("no funds")), at(4)).await;
    assert_eq!(reserve(store, key("a"), ask(3), at(5)).await, Reserved::Ended(Box::new(failed)));
}

pub(crate) async fn a_renewed_lease_is_longer(store: &dyn Store) {
    let one = own(store, key("a"), 1, at(1)).await;
    let record = make(store, key("a"), one, Change::Renew(LEASE * 3), at(2)).await;
    assert_eq!(record.lease_until, at(2).after(LEASE * 3));
    assert!(matches!(reserve(store, key("a"), ask(2), late()).await, Reserved::InProgress { .. }));
}

pub(crate) async fn a_record_that_was_released_is_absent_and_its_epochs_go_on(store: &dyn Store) {
    let one = own(store, key("a"), 1, at(1)).await;
    make(store, key("a"), one, Change::Release, at(2)).await;
    assert_eq!(read(store, key("a"), at(3)).await, None);
    assert_eq!(list(store, query(acme(), at(3))).await, []);
    let granted = Reserved::Granted { epoch: Epoch(2), lease_until: at(3).after(LEASE), previous: None };
    assert_eq!(reserve(store, key("a"), ask_otherwise(2), at(3)).await, granted);
}

pub(crate) async fn another_request_with_the_same_key_learns_and_changes_nothing(store: &dyn Store) {
    let one = own(store, key("a"), 1, at(1)).await;
    assert_eq!(reserve(store, key("a"), ask_otherwise(2), late()).await, Reserved::OtherRequest);
    let ended = make(store, key("a"), one, Change::Complete(response("secret")), late()).await;
    assert_eq!(reserve(store, key("a"), ask_otherwise(2), late()).await, Reserved::OtherRequest);
    assert_eq!(read(store, key("a"), late()).await, Some(ended));
}

pub(crate) async fn a_reservation_may_be_complete_at_once(store: &dyn Store) {
    let complete = |number| Reserve { is_complete: true, ..ask(number) };
    assert!(matches!(reserve(store, key("a"), complete(1), at(1)).await, Reserved::Granted { epoch: Epoch(1), .. }));
    let Reserved::Ended(record) = reserve(store, key("a"), complete(2), at(2)).await else { panic!("not ended") };
    assert_eq!(
        (record.state, record.owner, record.expires_at),
        (State::Succeeded, owner(1, 1), at(1).after(RETENTION))
    );
    let again = Reserved::Granted { epoch: Epoch(1), lease_until: at(1), previous: None };
    assert_eq!(reserve(store, key("a"), complete(1), at(3)).await, again, "the answer to its first call was lost");
    assert_eq!(read(store, key("a"), at(3)).await, Some(*record), "nothing was changed");
}

pub(crate) async fn items_of_one_call_are_decided_in_order(store: &dyn Store) {
    let item = |name, ask| Reservation { key: key(name), ask };
    let items = vec![item("b", ask(1)), item("a", ask(2)), item("b", ask(3)), item("a", ask_otherwise(4))];
    let answers = store.records().reserve(items, at(1)).await.unwrap();
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    let granted = Reserved::Granted { epoch: Epoch(1), lease_until: at(1).after(LEASE), previous: None };
    let in_progress = Reserved::InProgress { started_at: at(1), lease_until: at(1).after(LEASE) };
    assert_eq!(answers, [granted.clone(), granted, in_progress, Reserved::OtherRequest]);
    let made = |name, number, change| RecordChange { key: key(name), owner: owner(number, 1), change };
    let complete = Change::Complete(response("done"));
    let changes = vec![
        made("a", 2, Change::Renew(LEASE)),
        made("b", 3, complete.clone()),
        made("a", 2, complete.clone()),
        made("a", 2, Change::FailRetryable),
        made("b", 1, complete),
    ];
    let answers = store.records().change(changes, at(2)).await.unwrap();
    let short = |answer| match answer {
        Ok(RecordChanged::Decided(Changed::Done(record))) => Ok(record.state),
        other => Err(format!("{other:?}")),
    };
    let answers: Vec<_> = answers.into_iter().map(short).collect();
    assert_eq!(
        (&answers[0], &answers[2], &answers[4]),
        (&Ok(State::InProgress), &Ok(State::Succeeded), &Ok(State::Succeeded))
    );
    assert!(answers[1].as_ref().is_err_and(|text| text.contains("Fenced")), "{answers:?}");
    assert!(answers[3].as_ref().is_err_and(|text| text.contains("AlreadyEnded(Succeeded)")), "{answers:?}");
}

pub(crate) async fn a_thousand_records_are_reserved_in_one_call(store: &dyn Store) {
    let items = (0..1_000).map(|n| Reservation { key: key(&format!("k-{}", n / 2)), ask: ask(n) });
    let answers = store.records().reserve(items.collect(), at(1)).await.unwrap();
    let granted = |answer: &Result<Reserved, _>| matches!(answer, Ok(Reserved::Granted { .. }));
    assert!(answers.chunks(2).all(|pair| granted(&pair[0]) && !granted(&pair[1])));
    assert_eq!(store.records().reserve(Vec::new(), at(1)).await.unwrap().len(), 0);
    assert_eq!(store.records().change(Vec::new(), at(1)).await.unwrap().len(), 0);
}

pub(crate) async fn the_results_in_one_answer_have_a_bounded_number_of_bytes(store: &dyn Store) {
    let mib = 1024 * 1024;
    let fit = (crate::MOST_BODY_BYTES / mib) as usize;
    let body = Body::from(Bytes::from(vec![7; mib as usize]));
    let large = Response { status: 200, headers: Vec::new(), body: body.clone() };
    for n in 0..fit + 2 {
        let one = own(store, key(&format!("k-{n:02}")), 1, at(1)).await;
        let completion = Completion { response: Some(large.clone()), resource: None };
        make(store, key(&format!("k-{n:02}")), one, Change::Complete(completion), at(2)).await;
    }
    let item = |n: usize| Reservation { key: key(&format!("k-{n:02}")), ask: ask(2) };
    let bodies = async |items: Vec<Reservation>| -> Vec<Body> {
        let answers = store.records().reserve(items, at(3)).await.unwrap();
        let ended = answers.into_iter().map(|answer| match answer.unwrap() {
            Reserved::Ended(record) => record.completion.response.unwrap().body,
            other => panic!("it has ended: {other:?}"),
        });
        ended.collect()
    };
    let all = bodies((0..fit + 2).map(item).collect()).await;
    assert!(all[..fit].iter().all(|given| *given == body), "as many as fit");
    assert_eq!(all[fit..], [Body::LeftOut(mib), Body::LeftOut(mib)]);
    assert_eq!(bodies(vec![item(fit + 1)]).await, [body], "by itself");
    let listed = list(store, query(acme(), at(3))).await;
    let shown = |record: &Record| record.completion.response.as_ref().map(|response| response.body.clone());
    assert!(listed.iter().all(|(_, record)| shown(record) == Some(Body::LeftOut(mib))), "a list has no bodies");
}

pub(crate) async fn of_many_callers_at_once_one_owns_the_record(store: &dyn Store) {
    let answers = together((0..1_000).map(|n| reserve(store, key("wanted"), ask(n), at(1)))).await;
    let granted = answers.iter().filter(|answer| matches!(answer, Reserved::Granted { .. })).count();
    let waiting = answers.iter().filter(|answer| matches!(answer, Reserved::InProgress { .. })).count();
    assert_eq!((granted, waiting), (1, 999));
}
