//! What a node over a shared store reads to find work for which it got no notification.

#![allow(clippy::disallowed_methods, reason = "a test is its own caller, on a task of its own")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use redrive_core::policy::Spec;
use redrive_core::{Status, TaskId};
use redrive_engine::{Options, Steps};
use redrive_store::memory::MemoryStore;
use world::{FailingStore, PausedClock, Peers, World, lane};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How many lanes there are, and how many of them are read at once: three pages.
const LANES: usize = 25;
const PAGE: usize = 10;

fn options() -> Options {
    let look_around_every = Duration::from_secs(5);
    Options { look_around_every, steps: Steps { rebuild: PAGE, ..Steps::default() }, ..Options::default() }
}

/// A node that waits, with one task in each lane that is due in a day; and one that writes and never claims.
async fn waiting_node() -> (World, World, Arc<Peers>) {
    let peers = Peers::start();
    let store = Arc::new(FailingStore::of_several(MemoryStore::new(), peers.clone()));
    let writer = World::over(store.clone(), PausedClock::start(), options()).await;
    writer.engine.stop().await;
    for number in 0..LANES {
        write(&writer, number, DAY).await;
    }
    let node = World::over(store, PausedClock::start(), options()).await;
    // During its first minute the node reads all lanes.
    pass(13).await;
    (node, writer, peers)
}

/// A task in this lane that is due after `wait`, without a notification of it.
async fn write(writer: &World, number: usize, wait: Duration) -> TaskId {
    let mut draft = writer.draft(&format!("{number}-{}", wait.as_secs()), Spec::default()).await;
    draft.lane = lane(&format!("lane-{number:02}"));
    draft.not_before = Some(writer.engine.now().after(wait));
    writer.submit_draft(draft).await.id
}

/// Passes the time of this many looks.
async fn pass(looks: u32) {
    tokio::time::sleep(options().look_around_every * looks + Duration::from_millis(10)).await;
}

async fn status(node: &World, id: TaskId) -> Status {
    node.task(id).await.status
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_missed_nothing_reads_one_page_at_a_time() {
    let (node, ..) = waiting_node().await;
    let before = node.store.calls("pending_lanes");
    pass(30).await;
    assert_eq!(node.store.calls("pending_lanes") - before, 30);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_missed_is_looked_for_in_all_lanes() {
    let (node, writer, peers) = waiting_node().await;
    let id = write(&writer, LANES - 1, Duration::ZERO).await;
    peers.miss();
    pass(1).await;
    assert_eq!(status(&node, id).await, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_failed_may_have_done_something_so_all_lanes_are_looked_at() {
    let (node, writer, _) = waiting_node().await;
    // On the first page, which was just read.
    let id = write(&writer, 0, Duration::ZERO).await;
    node.store.fail("expired_leases", 1);
    // The rescuer fails, and the look after that reads all lanes.
    pass(2).await;
    assert_eq!((status(&node, id).await, node.store.failures_left("expired_leases")), (Status::Succeeded, 0));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_find_out_what_it_missed_looks_at_all_lanes() {
    let (node, writer, peers) = waiting_node().await;
    let id = write(&writer, 0, Duration::ZERO).await;
    peers.fail(true);
    pass(1).await;
    assert_eq!(status(&node, id).await, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_look_at_everything_that_fails_is_taken_again() {
    let (node, writer, peers) = waiting_node().await;
    let id = write(&writer, 0, Duration::ZERO).await;
    peers.miss();
    node.store.fail("pending_lanes", 1);
    pass(1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(status(&node, id).await, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn what_slips_through_is_found_once_its_page_is_read() {
    let (node, writer, _) = waiting_node().await;
    let ids = [write(&writer, 0, Duration::ZERO).await, write(&writer, LANES - 1, Duration::ZERO).await];
    // Three pages, and the place where the last look ended.
    pass(4).await;
    for id in ids {
        assert_eq!(status(&node, id).await, Status::Succeeded);
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_with_due_work_is_followed_by_the_next_at_once() {
    let (node, writer, _) = waiting_node().await;
    let mut ids = Vec::new();
    for number in 0..LANES {
        ids.push(write(&writer, number, Duration::ZERO).await);
    }
    let before = node.store.calls("pending_lanes");
    // From the beginning of the next page to the end, and then from the first page.
    pass(2).await;
    assert!(node.store.calls("pending_lanes") - before <= 5, "{}", node.store.calls("pending_lanes") - before);
    for id in ids {
        assert_eq!(status(&node, id).await, Status::Succeeded);
    }
}
