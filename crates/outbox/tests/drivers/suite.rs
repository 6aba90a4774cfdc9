//! What is true of enqueueing with any driver.

use std::time::{Duration, SystemTime};

use redrive_core::Timestamp;
use redrive_outbox::{Body, Enqueue};
use redrive_testbed::Postgres;

use crate::driver::{Driver, End, Refused};
use crate::world::World;

const NOTHING: &str = "SELECT 1";

pub(crate) async fn the_task_exists_if_and_only_if_the_transaction_commits<D: Driver>() {
    let mut world = World::<D>::new().await;
    world.driver.enqueue("CREATE TABLE orders (id int)", &Enqueue::new("http://a.b/"), End::Rollback).await.unwrap();
    assert_eq!(world.pending().await, 0);
    let id = world.driver.enqueue("CREATE TABLE orders (id int)", &Enqueue::new("http://a.b/"), End::Commit).await;
    assert_eq!(world.pending().await, 1);
    assert!(world.task(id.unwrap()).await.is_some());
}

pub(crate) async fn what_is_enqueued_is_what_will_be_sent<D: Driver>() {
    let mut world = World::<D>::new().await;
    let at = SystemTime::now() + Duration::from_secs(3_600);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let enqueue = Enqueue {
        method: "PUT".into(),
        headers: vec![pair("X-Longer", "1"), pair("X-A", "ü"), pair("X-Longer", "2")],
        body: Body::Json(serde_json::json!({"order": 7})),
        idempotency_key: Some("order-7".into()),
        dependency: Some("billing".into()),
        not_before: Some(at),
        labels: [pair("order", "7"), pair("team", "pay")].into(),
        ..Enqueue::new("https://example.com/orders?x=1")
    };
    let id = world.driver.enqueue(NOTHING, &enqueue, End::Commit).await.unwrap();
    let detail = world.task(id).await.unwrap();
    let (task, request) = (&detail.task, &detail.request);
    assert_eq!((task.idempotency_key.as_str(), task.lane.to_string()), ("order-7", "default/billing".into()));
    let millis = at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    assert_eq!(task.next_attempt_at, Some(Timestamp::from_millis(millis.try_into().unwrap())));
    assert_eq!((request.method.as_str(), request.target_url.as_str()), ("PUT", "https://example.com/orders?x=1"));
    assert_eq!(request.body, r#"{"order":7}"#.into());
    let implied = pair("content-type", "application/json");
    assert_eq!(request.headers, [enqueue.headers, vec![implied]].concat());
    assert_eq!(request.labels, enqueue.labels);
}

pub(crate) async fn what_is_left_out_has_a_default<D: Driver>() {
    let mut world = World::<D>::new().await;
    let id = world.driver.enqueue(NOTHING, &Enqueue::new("http://Example.com:80/"), End::Commit).await.unwrap();
    let detail = world.task(id).await.unwrap();
    assert_eq!(detail.task.lane.to_string(), "default/http://example.com");
    assert_eq!(detail.task.policy.id.as_str(), "default");
    assert_eq!(detail.task.idempotency_key.as_str().len(), 36, "one was made");
    assert_eq!((detail.request.method.as_str(), detail.request.body.length()), ("POST", 0));
    assert_eq!((detail.request.headers.len(), detail.request.labels.len()), (0, 0));
}

pub(crate) async fn the_same_key_and_request_is_the_same_task<D: Driver>() {
    let mut world = World::<D>::new().await;
    let enqueue = Enqueue {
        body: Body::Bytes(vec![0, 159, 255]),
        idempotency_key: Some("k".into()),
        ..Enqueue::new("http://a.b/")
    };
    let first = world.driver.enqueue(NOTHING, &enqueue, End::Commit).await.unwrap();
    assert_eq!(world.driver.enqueue(NOTHING, &enqueue, End::Commit).await, Ok(first));
    assert_eq!(world.pending().await, 1);
}

pub(crate) async fn what_is_refused_has_its_own_error_and_the_servers_words<D: Driver>() {
    let mut world = World::<D>::new().await;
    let mine = Enqueue { idempotency_key: Some("mine".into()), ..Enqueue::new("http://a.b/") };
    let owner = world.driver.enqueue(NOTHING, &mine, End::Commit).await.unwrap();
    let invalid = |message: &str| Refused::InvalidArgument(message.to_owned());
    for (enqueue, expected) in [
        (Enqueue::new("https://a.b:0/"), invalid("redrive.enqueue: target_url must have a port from 1 to 65535")),
        (
            Enqueue { labels: [("a".to_owned(), "\0".to_owned())].into(), ..Enqueue::new("http://a.b/") },
            invalid("unsupported Unicode escape sequence"),
        ),
        (
            Enqueue { method: "\0".into(), ..Enqueue::new("http://a.b/") },
            invalid("invalid byte sequence for encoding \"UTF8\": 0x00"),
        ),
        (
            Enqueue { method: "PUT".into(), ..mine },
            Refused::KeyReused(format!(
                "redrive.enqueue: the idempotency key 'mine' belongs to another request (task {owner})"
            )),
        ),
        (
            Enqueue { policy_id: "p".into(), ..Enqueue::new("http://a.b/") },
            Refused::UnknownPolicy("redrive.enqueue: there is no policy 'p' of tenant 'default'".into()),
        ),
    ] {
        assert_eq!(world.driver.enqueue(NOTHING, &enqueue, End::Commit).await, Err(expected));
    }
    assert_eq!(world.pending().await, 1);
}

pub(crate) async fn a_database_without_the_schema_is_the_drivers_error<D: Driver>() {
    let database = Postgres::shared().fresh_database();
    let mut driver = D::connect(&database).await;
    let refused = driver.enqueue(NOTHING, &Enqueue::new("http://a.b/"), End::Commit).await;
    assert_eq!(refused, Err(Refused::Database(Some("3F000".into()))));
}
