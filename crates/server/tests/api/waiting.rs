//! `Prefer: wait=N`

use std::time::Duration;

use crate::world::{Ask, World};

const DOCUMENT: &str = r#"{"targetUrl":"https://example.com/","idempotencyKey":"k"}"#;

fn submit(wait: &str) -> Ask {
    Ask::post("/retry-tasks", DOCUMENT).header("prefer", wait)
}

#[tokio::test]
async fn a_task_that_ends_in_time_is_the_answer() {
    let world = World::start().await;
    let first = world.ask(submit("wait=10")).await;
    assert_eq!((first.status, first.json()["status"].as_str().unwrap()), (201, "SUCCEEDED"));
    assert_eq!(first.header("preference-applied"), Some("wait=10"));
    assert!(first.header("location").is_some());
    assert_eq!(first.json()["response"]["status"], 200);

    let replay = world.ask(submit("respond-async, wait=100")).await;
    assert_eq!((replay.status, replay.header("idempotent-replayed")), (200, Some("true")));
    assert_eq!(replay.header("preference-applied"), Some("wait=30"));
    assert_eq!(replay.json(), first.json());
}

#[tokio::test]
async fn a_wait_that_is_over_is_answered_with_the_task_as_it_is() {
    let world = World::start().await;
    let _held = world.target.hold();
    let waiting = world.ask(submit("wait=7"));
    let time_passes = async {
        world.clock.until_a_sleep_of(Duration::from_secs(7)).await;
        world.clock.advance(Duration::from_secs(7));
    };
    let (answer, ()) = tokio::join!(waiting, time_passes);
    assert_eq!((answer.status, answer.header("preference-applied")), (202, Some("wait=7")));
    assert_eq!(answer.json()["status"], "IN_FLIGHT");

    // A wait of zero is over at once.
    let answer = world.ask(submit("wait=0")).await;
    assert_eq!((answer.status, answer.header("idempotent-replayed")), (202, Some("true")));
}

#[tokio::test]
async fn nonsense_is_ignored() {
    let world = World::start().await;
    let _held = world.target.hold();
    for wait in ["wait=soon", "wait", "handling=lenient", "wait=-1"] {
        let answer = world.ask(submit(wait)).await;
        assert!([200, 201].contains(&answer.status), "{wait}");
        assert_eq!(answer.header("preference-applied"), None, "{wait}");
    }
}

#[tokio::test]
async fn looking_at_a_task_can_wait_too() {
    let world = World::start().await;
    let release = world.target.hold();
    let id = world.submit(DOCUMENT).await;
    let look = || Ask::get(&format!("/retry-tasks/{id}")).header("prefer", "wait=20");

    let time_passes = async {
        world.clock.until_a_sleep_of(Duration::from_secs(20)).await;
        world.clock.advance(Duration::from_secs(20));
    };
    let (answer, ()) = tokio::join!(world.ask(look()), time_passes);
    assert_eq!((answer.status, answer.json()["status"].as_str().unwrap()), (200, "IN_FLIGHT"));
    assert_eq!(answer.header("preference-applied"), Some("wait=20"));

    let it_ends = async {
        world.clock.until_a_sleep_of(Duration::from_secs(20)).await;
        release.send(()).unwrap();
    };
    let (answer, ()) = tokio::join!(world.ask(look()), it_ends);
    assert_eq!((answer.status, answer.json()["status"].as_str().unwrap()), (200, "SUCCEEDED"));
    let unknown = Ask::get("/retry-tasks/018bcfe5-6800-7f57-a123-456789abcdef").header("prefer", "wait=20");
    world.ask(unknown).await.problem(404, "task-not-found");
}
