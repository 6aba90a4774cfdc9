//! An outage of the store is a few lines in the log, however many calls fail in it.

#![allow(clippy::disallowed_methods, reason = "a test is its own caller, on a task of its own")]

mod world;

use std::time::Duration;

use redrive_core::Status;
use redrive_engine::clock::Clock;
use world::{Log, World, attempts};

#[tokio::test(start_paused = true)]
async fn an_outage_is_logged_when_it_begins_once_a_minute_and_when_it_ends() {
    let log = Log::watch();
    let world = World::new().await;
    world.store.share();
    // On a shared store every loop queries again and again.
    for method in ["claim", "submit", "settle", "expired_leases", "end_overdue", "pending_lanes"] {
        world.store.fail(method, usize::MAX);
    }
    let draft = world.draft("k", attempts(3)).await;
    for _ in 0..185 {
        world.engine.submit(vec![draft.clone()]).await.unwrap_err();
        world.engine.store_failed("submitTask", &"what the API says of it");
        world.clock.sleep(Duration::from_secs(1)).await;
    }
    let lines = log.lines();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(lines[0].contains("the store fails: trying again"), "{lines:#?}");
    assert!(lines[1..].iter().all(|line| line.contains("the store still fails")), "{lines:#?}");

    for method in ["claim", "submit", "settle", "expired_leases", "end_overdue", "pending_lanes"] {
        world.store.fail(method, 0);
    }
    let task = world.submit("later", attempts(3)).await;
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
    world.engine.store_worked("submitTask");
    world.clock.sleep(Duration::from_secs(120)).await;
    assert!(world.store.failures_left("claim") == 0 && log.lines()[4..].len() == 1, "{:#?}", log.lines());
    assert!(log.lines()[4].contains("the store works again"), "{:#?}", log.lines());
}
