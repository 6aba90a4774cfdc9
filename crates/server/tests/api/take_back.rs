//! Cancelling, and bringing forward.

use std::time::Duration;

use serde_json::json;

use crate::world::{Ask, World};

const START: u64 = 1_700_000_000_000;

#[tokio::test]
async fn a_waiting_task_is_cancelled_at_once() {
    let world = World::start().await;
    let id = world.submit(r#"{"targetUrl":"https://example.com/","delayMs":1000}"#).await;
    let path = format!("/retry-tasks/{id}");
    let answer = world.delete(&path).await;
    assert_eq!(answer.status, 200);
    let task = answer.json();
    assert_eq!((task["status"].as_str(), task["statusReason"].as_str()), (Some("CANCELLED"), Some("cancelled")));
    assert_eq!((task["endedAt"].as_u64(), task["nextAttemptAt"].clone()), (Some(START), json!(null)));
    assert_eq!(world.get(&path).await.json(), task);

    let problem = world.delete(&path).await.problem(409, "task-already-ended");
    assert_eq!(problem["taskId"], id);
    let problem = world.ask(Ask::new("POST", &format!("{path}/retry-now"))).await.problem(409, "task-already-ended");
    assert_eq!(problem["taskId"], id);
}

#[tokio::test]
async fn a_task_in_flight_is_marked_and_makes_no_further_attempt() {
    let world = World::start().await;
    let release = world.target.hold();
    let id = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    let path = format!("/retry-tasks/{id}");
    let problem = world.ask(Ask::new("POST", &format!("{path}/retry-now"))).await.problem(409, "task-in-flight");
    assert_eq!(problem["taskId"], id);

    for _ in 0..2 {
        let answer = world.delete(&path).await;
        assert_eq!(answer.status, 202);
        let task = answer.json();
        assert_eq!((task["status"].as_str(), task["cancelRequested"].as_bool()), (Some("IN_FLIGHT"), Some(true)));
    }
    release.send(()).unwrap();
    // This attempt succeeded, so the task did.
    assert_eq!(world.ended(&id).await["status"], "SUCCEEDED");
    world.delete(&path).await.problem(409, "task-already-ended");
}

#[tokio::test]
async fn a_waiting_task_is_brought_forward() {
    let world = World::start().await;
    let id = world.submit(r#"{"targetUrl":"https://example.com/","delayMs":3600000}"#).await;
    let answer = world.ask(Ask::new("POST", &format!("/retry-tasks/{id}/retry-now"))).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["nextAttemptAt"], START);
    assert_eq!(world.ended(&id).await["status"], "SUCCEEDED");
    assert_eq!(world.target.sends(1).await.len(), 1);
}

#[tokio::test]
async fn an_attempt_that_was_cancelled_before_its_first_byte_never_leaves() {
    let world = World::start().await;
    let (connecting, connected) = world.target.hold_connection();
    let id = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    connecting.await.unwrap();
    let answer = world.delete(&format!("/retry-tasks/{id}")).await;
    let task = answer.json();
    assert_eq!((answer.status, &task["status"], &task["cancelRequested"]), (202, &json!("IN_FLIGHT"), &json!(true)));

    connected.send(()).unwrap();
    let ended = world.ended(&id).await;
    assert_eq!((&ended["status"], &ended["attemptNumber"]), (&json!("CANCELLED"), &json!(0)));
    assert_eq!(world.get(&format!("/retry-tasks/{id}/attempts")).await.json()["attempts"], json!([]));
    assert_eq!(world.target.sent(), 0);
}

#[tokio::test]
async fn an_attempt_that_is_held_until_it_is_due_can_be_brought_forward() {
    let world = World::start().await;
    let id = held(&world).await;
    let answer = world.ask(Ask::new("POST", &format!("/retry-tasks/{id}/retry-now"))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let task = answer.json();
    assert_eq!((&task["taskId"], &task["status"], &task["attemptInRun"]), (&json!(id), &json!("IN_FLIGHT"), &json!(1)));
    // The clock stands still, before the due time.
    assert_eq!(world.ended(&id).await["status"], "SUCCEEDED");
    let log = world.get(&format!("/retry-tasks/{id}/attempts")).await.json();
    assert_eq!(log["attempts"][0]["startedAt"], START + 999);
}

#[tokio::test]
async fn an_attempt_that_is_held_until_it_is_due_can_be_cancelled() {
    let world = World::start().await;
    let id = held(&world).await;
    let answer = world.delete(&format!("/retry-tasks/{id}")).await;
    assert_eq!((answer.status, &answer.json()["cancelRequested"]), (202, &json!(true)));
    let ended = world.ended(&id).await;
    assert_eq!((&ended["status"], &ended["attemptNumber"]), (&json!("CANCELLED"), &json!(0)));
    assert_eq!(world.target.sent(), 0);
}

/// A task that is due in a millisecond: it is claimed already, and held until then.
async fn held(world: &World) -> String {
    let id = world.submit(r#"{"targetUrl":"https://example.com/","delayMs":1000}"#).await;
    world.clock.advance(Duration::from_millis(999));
    world.clock.until_a_sleep_of(Duration::from_millis(1)).await;
    id
}
