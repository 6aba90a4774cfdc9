//! What is true of idempotency records and events with any driver.

use std::time::{Duration, SystemTime};

use redrive_outbox::{
    Completion, Event, ExecutionId, Failure, HashedRequest, PreviousState, RequestHash, Reservation, Reserve, Reserved,
    Resource, Response,
};

use crate::driver::{Driver, End, Ending, Refused};
use crate::world::World;

fn reserve(key: &str) -> Reserve {
    let request = HashedRequest { method: "POST", path: "/pay", ..HashedRequest::default() };
    Reserve::new("pay", key, RequestHash::of(&request))
}

fn completion() -> Completion {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Completion {
        response: Some(Response {
            status: 201,
            headers: vec![pair("X-Longer", "1"), pair("X-A", "ü"), pair("X-Longer", "2")],
            body: vec![0, 159, 255],
        }),
        resource: Some(Resource { kind: "payment".to_owned(), id: "pay_1".to_owned() }),
    }
}

fn own(reserved: Reserved) -> Reservation {
    match reserved {
        Reserved::Owner(reservation) => reservation,
        other => panic!("not the owner: {other:?}"),
    }
}

const WORK: &str = "CREATE TABLE payments (id int)";

pub(crate) async fn an_operation_takes_place_if_and_only_if_its_transaction_commits<D: Driver>() {
    let mut world = World::<D>::new().await;
    for end in [End::Rollback, End::Commit] {
        // The table would exist already if the first transaction had left anything.
        let reserved = world.driver.execute(&reserve("order-1"), WORK, Some(&completion()), end).await.unwrap();
        assert_eq!(own(reserved).epoch, 1, "nothing is left of a transaction that was rolled back");
    }
    let again = world.driver.execute(&reserve("order-1"), WORK, Some(&completion()), End::Commit).await.unwrap();
    assert!(matches!(again, Reserved::Replay(_)), "{again:?}");
}

pub(crate) async fn a_result_is_replayed_as_it_was_given<D: Driver>() {
    let mut world = World::<D>::new().await;
    let empty = Response { status: 204, headers: vec![], body: vec![] };
    for (key, given, is_failure) in [
        ("all", completion(), false),
        ("none", Completion::default(), false),
        ("empty", Completion { response: Some(empty), resource: None }, false),
        ("failed", completion(), true),
    ] {
        let reservation = own(world.driver.execute(&reserve(key), "", None, End::Commit).await.unwrap());
        let ending = match is_failure {
            true => Ending::Fail(Failure::Final(given.clone())),
            false => Ending::Complete(given.clone()),
        };
        assert_eq!(world.driver.end(&reservation, &ending).await, Ok(()));
        assert_eq!(world.driver.end(&reservation, &ending).await, Ok(()), "the same again");
        let ended = match world.driver.execute(&reserve(key), "", None, End::Commit).await.unwrap() {
            Reserved::Replay(ended) if !is_failure => ended,
            Reserved::Failed(ended) if is_failure => ended,
            other => panic!("{key}: {other:?}"),
        };
        assert_eq!((ended.completion, ended.is_body_elsewhere), (given, false), "{key}");
    }
}

pub(crate) async fn another_execution_is_told_about_the_one_before<D: Driver>() {
    let mut world = World::<D>::new().await;
    let before = SystemTime::now();
    let mine = Reserve { execution_id: Some(ExecutionId::from_u128(7)), ..reserve("order-1") };
    let first = own(world.driver.execute(&mine, "", None, End::Commit).await.unwrap());
    assert_eq!((first.execution_id, first.epoch, first.previous), (ExecutionId::from_u128(7), 1, None));
    assert!(first.lease_until >= before + Duration::from_secs(59), "{:?}", first.lease_until);
    let other = world.driver.execute(&reserve("order-1"), "", None, End::Commit).await.unwrap();
    assert_eq!(other, Reserved::InProgress { lease_until: first.lease_until });
    let again = own(world.driver.execute(&mine, "", None, End::Commit).await.unwrap());
    assert_eq!((again.execution_id, again.epoch), (first.execution_id, 1), "the same execution asks again");
    let another_request = Reserve { request_hash: RequestHash([9; 32]), ..reserve("order-1") };
    let other = world.driver.execute(&another_request, "", None, End::Commit).await.unwrap();
    assert_eq!(other, Reserved::OtherRequest);
    world.driver.end(&first, &Ending::Fail(Failure::Retryable)).await.unwrap();
    let second = own(world.driver.execute(&reserve("order-1"), "", None, End::Commit).await.unwrap());
    assert_eq!((second.epoch, second.previous), (2, Some(PreviousState::FailedRetryable)));
}

pub(crate) async fn an_execution_that_does_not_own_the_record_has_its_own_errors<D: Driver>() {
    let mut world = World::<D>::new().await;
    let first = own(world.driver.execute(&reserve("order-1"), "", None, End::Commit).await.unwrap());
    let stranger = Reservation { execution_id: ExecutionId::from_u128(9), ..first.clone() };
    let complete = Ending::Complete(Completion::default());
    let fenced = Refused::Fenced("redrive.complete: another execution owns the record 'pay/order-1'".to_owned());
    assert_eq!(world.driver.end(&stranger, &complete).await, Err(fenced));
    assert_eq!(world.driver.end(&first, &complete).await, Ok(()));
    let ended = "redrive.release: the record 'pay/order-1' has ended before, in another way".to_owned();
    assert_eq!(world.driver.end(&first, &Ending::Release).await, Err(Refused::AlreadyEnded(ended)));
    let unknown = Reservation { key: "order-2".to_owned(), ..first };
    let absent = "redrive.fail: there is no record 'pay/order-2'".to_owned();
    let fail = Ending::Fail(Failure::Retryable);
    assert_eq!(world.driver.end(&unknown, &fail).await, Err(Refused::UnknownRecord(absent)));
    for (invalid, told) in [
        (reserve(""), "redrive.reserve: key must be 1 to 64 visible ASCII characters"),
        (Reserve { lease: Duration::MAX, ..reserve("k") }, "redrive.reserve: lease must be from 1 second to 24:00:00"),
    ] {
        let refused = world.driver.execute(&invalid, "", None, End::Commit).await;
        assert_eq!(refused, Err(Refused::InvalidArgument(told.to_owned())));
    }
}

pub(crate) async fn an_event_is_new_until_the_transaction_that_saw_it_commits<D: Driver>() {
    let mut world = World::<D>::new().await;
    let event = Event::new("billing", "evt-1");
    for (end, expected) in [(End::Rollback, false), (End::Commit, false), (End::Commit, true)] {
        assert_eq!(world.driver.seen(&event, "SELECT 1", end).await, Ok(expected));
    }
    let other = Event::new("shipping", "evt-1");
    assert_eq!(world.driver.seen(&other, "SELECT 1", End::Commit).await, Ok(false), "another consumer");
    world.begin_event("billing", "evt-2").await;
    let told = "redrive.seen: another execution is handling the event 'evt-2' of 'billing'".to_owned();
    let refused = world.driver.seen(&Event::new("billing", "evt-2"), "SELECT 1", End::Commit).await;
    assert_eq!(refused, Err(Refused::EventInProgress(told)));
}
