//! `GET /events`: what is told to whom, what is told again after a reconnect, and what readers cost.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use redrive_core::{ErrorType, TenantId};
use redrive_server::live_events::{EventFilter, EventReader, Kind, MOST_READERS, Progress, StartAt};
use redrive_server::operations::{EventQuery, SubmissionHeaders, follow_events, submit_task};
use redrive_server::{Caller, Limits, OperationError, rest, wire};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::world::{Ask, Connection, NODE, Plan, START, Setup, World, answer};

/// How long anything may take before a test is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// One block of a stream that has data.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    id: String,
    name: String,
    data: Value,
}

/// A stream that is being read.
struct Feed {
    _connection: Connection,
    body: Incoming,
    text: String,
    last_id: String,
}

impl Feed {
    async fn open(world: &World, ask: Ask) -> Feed {
        let mut connection = Connection::open(world.address).await;
        let response = connection.begin(ask).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let mut feed =
            Feed { _connection: connection, body: response.into_body(), text: String::new(), last_id: String::new() };
        // The server has opened the stream once it has said where it begins.
        let opening = tokio::time::timeout(PATIENCE, feed.block()).await.unwrap().unwrap();
        assert!(opening.contains("retry: 1000\nid: "), "{opening}");
        feed
    }

    async fn get(world: &World, path: &str) -> Feed {
        Feed::open(world, Ask::get(path)).await
    }

    /// One that comes back after the event with this id.
    async fn after(world: &World, id: &str) -> Feed {
        Feed::open(world, Ask::get("/events").header("last-event-id", id)).await
    }

    /// The next block; nothing at the end of the stream.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(id) = block.lines().find_map(|line| line.strip_prefix("id: ")) {
                    id.clone_into(&mut self.last_id);
                }
                return Some(block);
            }
            let frame = self.body.frame().await?.unwrap();
            self.text += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
        }
    }

    /// The next event; nothing at the end of the stream.
    async fn try_next(&mut self) -> Option<Told> {
        // Of all frames together: heartbeats come while nothing happens.
        tokio::time::timeout(PATIENCE, self.next_with_data()).await.expect("an event, or the end")
    }

    async fn next_with_data(&mut self) -> Option<Told> {
        loop {
            let block = self.block().await?;
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            let Some(data) = field("data: ") else { continue };
            let data: Value = serde_json::from_str(&data).unwrap();
            let told = Told { id: field("id: ").unwrap(), name: field("event: ").unwrap(), data };
            assert_eq!(told.data["kind"], told.name);
            return Some(told);
        }
    }

    async fn next(&mut self) -> Told {
        self.try_next().await.expect("the stream ended")
    }

    /// The kinds of the next events.
    async fn kinds(&mut self, count: usize) -> Vec<String> {
        let mut kinds = Vec::new();
        for _ in 0..count {
            kinds.push(self.next().await.name);
        }
        kinds
    }

    /// All events up to the end of the stream.
    async fn rest(&mut self) -> Vec<Told> {
        let mut all = Vec::new();
        while let Some(told) = self.try_next().await {
            all.push(told);
        }
        all
    }
}

impl World {
    /// One that keeps this many events.
    async fn keeping(kept: usize) -> World {
        World::of(Setup { events: Some(kept), ..Setup::default() }).await
    }

    /// The events that are kept and match the query.
    async fn past(&self, query: &str) -> Vec<Told> {
        Feed::get(self, &format!("/events?past=true&follow=false{query}")).await.rest().await
    }

    /// Delivers a task for a dependency.
    async fn deliver(&self, dependency: &str) -> String {
        let id = self.submit(&format!(r#"{{"targetUrl":"https://a.test/","dependency":"{dependency}"}}"#)).await;
        self.ended(&id).await;
        id
    }
}

#[tokio::test]
async fn a_life_is_told_step_by_step_and_only_in_names_and_numbers() {
    let world = World::start().await;
    let mut feed = Feed::get(&world, "/events").await;
    for plan in [Plan::Fail(ErrorType::ConnectionRefused), Plan::Answer(answer(503, "secret-answer"))] {
        world.target.plan(plan);
    }
    let id = world
        .submit(
            r#"{"targetUrl":"https://user:secret-password@a.test/?token=secret-query","dependency":"a","correlationId":"order-7",
            "idempotencyKey":"secret-key","headers":{"x-a":"secret-header"},"body":"secret-body","labels":{"l":"secret-label"},
            "policy":{"jitterType":"NONE","initialDelayMs":2000,"maxAttempts":2}}"#,
        )
        .await;
    world.until(&id, |task| task["status"] == "PENDING").await;
    world.clock.advance(Duration::from_secs(2));
    world.ended(&id).await;
    let mut told = Vec::new();
    for _ in 0..6 {
        told.push(feed.next().await.data);
    }
    let start = START;
    let mut expected = [
        json!({ "at": start, "kind": "accepted", "dueAt": start }),
        json!({ "at": start, "kind": "attempt", "attemptNumber": 1, "attemptInRun": 1, "maxAttempts": 2, "run": 1, "outcome": "retryable",
            "errorType": "connection-refused", "responseStatus": null, "durationMs": 0, "backoffMs": 2000 }),
        json!({ "at": start, "kind": "retry-scheduled", "dueAt": start + 2_000 }),
        json!({ "at": start + 2_000, "kind": "attempt", "attemptNumber": 2, "attemptInRun": 2, "maxAttempts": 2, "run": 1,
            "outcome": "retryable", "errorType": "http-status", "responseStatus": 503, "durationMs": 0, "backoffMs": null }),
        json!({ "at": start + 2_000, "kind": "ended", "status": "EXHAUSTED", "statusReason": "attempts", "attemptNumber": 2,
            "attemptInRun": 2, "run": 1 }),
        json!({ "at": start + 2_000, "kind": "dead-letter", "status": "EXHAUSTED", "statusReason": "attempts", "attemptNumber": 2,
            "attemptInRun": 2, "run": 1 }),
    ];
    for (at, event) in expected.iter_mut().enumerate() {
        let id_of_event = told[at]["id"].clone();
        assert!(id_of_event.as_str().unwrap().ends_with(&format!("-{}", at + 1)), "{id_of_event}");
        let common =
            json!({ "id": id_of_event, "node": NODE, "dependency": "a", "taskId": id, "correlationId": "order-7" });
        event.as_object_mut().unwrap().extend(common.as_object().unwrap().clone());
    }
    assert_eq!(told, expected);
    assert!(!format!("{told:?}").contains("secret"));
}

#[tokio::test]
async fn filters_select_by_dependency_task_and_kind() {
    let world = World::start().await;
    let first = world.deliver("a").await;
    let second = world.deliver("b").await;
    world.target.plan(Plan::Answer(answer(404, "")));
    let third = world.deliver("b").await;
    for (query, expected) in [
        ("&dependency=a", vec![("accepted", &first), ("attempt", &first), ("ended", &first)]),
        ("&dependency=none", vec![]),
        ("&kind=attempt", vec![("attempt", &first), ("attempt", &second), ("attempt", &third)]),
        (
            "&kind=ended&kind=dead-letter&dependency=b",
            vec![("ended", &second), ("ended", &third), ("dead-letter", &third)],
        ),
        (
            "&kind=accepted,dead-letter",
            vec![("accepted", &first), ("accepted", &second), ("accepted", &third), ("dead-letter", &third)],
        ),
        (&format!("&taskId={second}"), vec![("accepted", &second), ("attempt", &second), ("ended", &second)]),
        (&format!("&taskId={second}&dependency=a"), vec![]),
    ] {
        let told = world.past(query).await;
        let told: Vec<(&str, &str)> =
            told.iter().map(|told| (&*told.name, told.data["taskId"].as_str().unwrap())).collect();
        let expected: Vec<(&str, &str)> = expected.into_iter().map(|(kind, id)| (kind, &**id)).collect();
        assert_eq!(told, expected, "{query}");
    }
}

#[tokio::test]
async fn a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice() {
    let world = World::start().await;
    let mut feed = Feed::get(&world, "/events").await;
    world.deliver("a").await;
    let mut seen = vec![feed.next().await, feed.next().await];
    let id = seen[1].id.clone();
    drop(feed);
    world.deliver("b").await;
    let mut again = Feed::after(&world, &id).await;
    for _ in 0..4 {
        seen.push(again.next().await);
    }
    assert_eq!(seen, world.past("").await);
    // A program may give the id in the query, and the header of a later reconnect counts more.
    let path = format!("/events?follow=false&after={id}");
    assert_eq!(Feed::get(&world, &path).await.rest().await, seen[2..]);
    let later = Ask::get(&path).header("last-event-id", &seen[4].id);
    assert_eq!(Feed::open(&world, later).await.rest().await, seen[5..]);
    let at_the_end = Feed::after(&world, &seen[5].id);
    assert_eq!(at_the_end.await.last_id, seen[5].id);
}

#[tokio::test]
async fn a_reader_with_a_narrow_filter_resumes_where_it_was() {
    let world = World::keeping(4).await;
    let mut feed = Feed::get(&world, "/events?past=true&follow=false&dependency=none").await;
    assert_eq!(feed.rest().await, []);
    for _ in 0..2 {
        world.deliver("a").await;
        let path = format!("/events?follow=false&dependency=none&after={}", feed.last_id);
        feed = Feed::get(&world, &path).await;
        assert_eq!(feed.rest().await, [], "what it did not want is not missing");
    }
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let world = World::keeping(4).await;
    world.deliver("a").await;
    let known = world.past("").await;
    world.deliver("b").await;
    // Six events, of which the first two are gone.
    let gap = |id: &str, reason: &str, missed: Value| Told {
        id: id.to_owned(),
        name: "gap".to_owned(),
        data: json!({ "kind": "gap", "node": NODE, "reason": reason, "missed": missed }),
    };
    let start = known[0].id.split('-').next().unwrap().to_owned();
    let of = |number: u64| format!("{start}-{number}");
    for (after, missing, next) in [
        (of(0), Some(gap(&of(2), "too-old", json!(2))), Some(3)),
        (of(1), Some(gap(&of(2), "too-old", json!(1))), Some(3)),
        (of(2), None, Some(3)),
        (of(5), None, Some(6)),
        (of(6), None, None),
        ("0123456789abcdef-3".to_owned(), Some(gap(&of(2), "restart", Value::Null)), Some(3)),
    ] {
        let mut told = Feed::get(&world, &format!("/events?follow=false&after={after}")).await.rest().await;
        if let Some(missing) = missing {
            assert_eq!(told.remove(0), missing, "{after}");
        }
        assert_eq!(told.first().map(|told| told.id.clone()), next.map(of), "{after}");
    }
    assert_eq!(world.past("").await.len(), 4, "the past is what is kept: nothing of it is missing");
}

#[tokio::test]
async fn ids_and_filters_that_are_wrong_are_refused_with_the_reason() {
    let world = World::start().await;
    for (path, field) in [
        ("/events?after=7", "after"),
        ("/events?after=0000000000000000-1&after=0000000000000000-1", "after"),
        ("/events?taskId=7", "taskId"),
        ("/events?kind=none", "kind"),
        ("/events?past=yes", "past"),
        ("/events?follow=", "follow"),
        ("/events?dependency=", "dependency"),
        ("/events?other=1", "other"),
    ] {
        let problem = world.get(path).await.problem(400, "invalid-parameter");
        assert_eq!(problem["field"], field, "{path}: {problem}");
    }
    let problem = world.ask(Ask::get("/events").header("last-event-id", "x-1")).await.problem(400, "invalid-parameter");
    assert_eq!(problem["field"], "Last-Event-ID");
    world.deliver("a").await;
    let start = world.past("").await[0].id.split('-').next().unwrap().to_owned();
    let problem = world.get(&format!("/events?after={start}-4")).await.problem(400, "invalid-parameter");
    assert_eq!(problem["detail"], format!("no event has the id {start}-4 yet"));
    // Browsers that have seen no event.
    let feed = Feed::open(&world, Ask::get("/events?follow=false").header("last-event-id", "")).await;
    assert_eq!(feed.last_id, format!("{start}-3"));
}

#[tokio::test]
async fn events_that_are_off_are_a_problem() {
    let world = World::of(Setup { events: None, ..Setup::default() }).await;
    world.deliver("a").await;
    world.get("/events").await.problem(501, "events-off");
    assert_eq!(world.ask(Ask::new("HEAD", "/events")).await.status, 501);
}

#[tokio::test]
async fn readers_are_bounded_and_head_keeps_no_place() {
    let world = World::start().await;
    for _ in 0..=MOST_READERS {
        let head = world.ask(Ask::new("HEAD", "/events")).await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!((head.header("content-length"), head.body.len()), (None, 0));
    }
    let mut feeds = Vec::new();
    for _ in 0..MOST_READERS {
        feeds.push(Feed::get(&world, "/events").await);
    }
    let refused = world.get("/events?follow=false").await;
    let problem = refused.problem(503, "too-many-readers");
    assert!(problem["detail"].as_str().unwrap().starts_with("64 readers"), "{problem}");
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(world.ask(Ask::new("HEAD", "/events")).await.status, 503);
    // A place is free as soon as the server has noticed that a reader left.
    feeds.pop();
    let until = tokio::time::Instant::now() + PATIENCE;
    while world.get("/events?follow=false").await.status == 503 {
        assert!(tokio::time::Instant::now() < until, "the place was never free");
    }
}

#[tokio::test]
async fn a_stop_ends_streams_at_once() {
    let options = rest::Options { drain_timeout: PATIENCE * 10, ..rest::Options::default() };
    let mut world = World::with(Limits::default(), options).await;
    let mut feeds = [Feed::get(&world, "/events").await, Feed::get(&world, "/events?dependency=none").await];
    world.deliver("a").await;
    world.begin_shutdown();
    tokio::time::timeout(PATIENCE, world.stopped()).await.unwrap().unwrap();
    assert_eq!(feeds[0].rest().await.len(), 3);
    assert_eq!(feeds[1].rest().await, []);
    assert_eq!(feeds[1].last_id, feeds[0].last_id, "it knows where to resume");
}

/// A connection whose caller has little room for what it does not read, and that follows events.
async fn unread(world: &World) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(world.address).await.unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 200");
    stream
}

/// Delivers many tasks, whose events are more than a connection's buffers hold.
async fn deliver_many(world: &World) {
    deliver_in_batches(world, 1_000).await;
}

/// The same, in batches of this many.
async fn deliver_in_batches(world: &World, size: usize) {
    let task =
        json!({ "targetUrl": "https://a.test/", "dependency": "a".repeat(300), "correlationId": "c".repeat(128) });
    let batch = json!({ "tasks": vec![task; size] }).to_string();
    for sent in 1..=4_000 / size {
        assert_eq!(world.post("/retry-tasks/batch", &batch).await.status, 200);
        world.target.sends(sent * size).await;
    }
}

#[tokio::test]
async fn a_reader_that_does_not_read_delays_nothing_holds_little_and_is_told_the_gap() {
    let options = rest::Options { write_timeout: Duration::from_secs(3_600), ..rest::Options::default() };
    let mut world = World::of(Setup { events: Some(500), options, ..Setup::default() }).await;
    let mut reader = unread(&world).await;
    deliver_many(&world).await;
    assert!(world.memory.held() < 1024 * 1024, "{}", world.memory.held());
    world.begin_shutdown();
    let mut text = String::new();
    tokio::time::timeout(PATIENCE, reader.read_to_string(&mut text)).await.unwrap().unwrap();
    let gap = text.lines().find(|line| line.contains(r#""kind":"gap""#)).expect("a gap");
    assert!(gap.contains(r#""reason":"slow-reader""#), "{gap}");
    world.stopped().await.unwrap();
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_reader_that_does_not_read() {
    let options =
        rest::Options { drain_timeout: PATIENCE * 10, write_timeout: PATIENCE * 10, ..rest::Options::default() };
    let world = World::with(Limits::default(), options).await;
    let _reader = unread(&world).await;
    deliver_many(&world).await;
    tokio::time::timeout(PATIENCE, world.stopped()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_closed_and_one_that_waits_for_events_is_not() {
    let options = rest::Options { write_timeout: Duration::from_millis(100), ..rest::Options::default() };
    let world = World::of(Setup { options, ..Setup::default() }).await;
    let mut waits = Feed::get(&world, "/events?dependency=b").await;
    let mut stalls = unread(&world).await;
    // Each answer fits into the buffers of its connection, so that this caller is never one that reads nothing.
    deliver_in_batches(&world, 8).await;
    // What it was sent before it was closed, and then the end; its last chunk is missing.
    let mut text = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, async {
        // Nothing is read until the server has given the connection up.
        while world.app.live_events.readers() > 1 {
            assert_eq!(world.get("/livez").await.status, 200);
        }
        stalls.read_to_end(&mut text).await
    });
    let ended = ended.await.unwrap();
    assert!(ended.is_err() || !text.ends_with(b"0\r\n\r\n"), "it was ended in good order");
    world.deliver("b").await;
    assert_eq!(waits.kinds(3).await, ["accepted", "attempt", "ended"]);
}

#[tokio::test]
async fn a_stream_that_waits_for_events_keeps_its_place_among_connections() {
    let options = rest::Options { max_connections: 3, ..rest::Options::default() };
    let world = World::with(Limits::default(), options).await;
    let mut feed = Feed::get(&world, "/events").await;
    let mut idle = Vec::new();
    for _ in 0..10 {
        idle.push(TcpStream::connect(world.address).await.unwrap());
        assert_eq!(world.get("/livez").await.status, 200);
    }
    world.deliver("a").await;
    assert_eq!(feed.kinds(3).await, ["accepted", "attempt", "ended"]);
}

fn reader_of(world: &World, tenant: &str) -> Result<EventReader, OperationError> {
    let query = EventQuery { filter: EventFilter::default(), start: StartAt::Past, follows: true };
    follow_events(&world.app, &Caller::local(TenantId::try_new(tenant).unwrap()), query)
}

#[tokio::test]
async fn no_tenant_sees_the_events_of_another() {
    let world = World::start().await;
    let mut readers = [reader_of(&world, "acme").unwrap(), reader_of(&world, "other").unwrap()];
    let caller = Caller::local(TenantId::try_new("acme").unwrap());
    world
        .engine
        .policies()
        .put(
            caller.tenant.clone(),
            redrive_core::PolicyId::default_policy(),
            redrive_core::policy::Spec::default(),
            redrive_store::Expected::Absent,
        )
        .await
        .unwrap();
    let submission: wire::Submission<'_> = wire::parse(br#"{"targetUrl":"https://a.test/"}"#).unwrap();
    submit_task(&world.app, &caller, submission, &SubmissionHeaders::default()).await.unwrap();
    let mut kinds = Vec::new();
    while kinds.len() < 3 {
        tokio::time::timeout(PATIENCE, readers[0].wait()).await.unwrap();
        kinds.extend(readers[0].read().events.into_iter().map(|(_, event)| event.kind()));
    }
    assert_eq!(kinds, [Kind::Accepted, Kind::Attempt, Kind::Ended]);
    let batch = readers[1].read();
    assert_eq!((batch.events.len(), batch.gap, batch.progress), (0, None, Progress::CaughtUp));
}
