//! Support code for the tests of this crate.

#![allow(dead_code, clippy::unwrap_used, reason = "for tests alone, each of which uses some of it")]

pub(crate) mod scheduled;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use redrive_core::{Class, Dependency, Lane, TaskId, TenantId, Timestamp};
use redrive_schedule_redis::{Builder, Options, Partition, RedisCallError, Schedule, Take, Taken, Turn};
use redrive_store::{PendingTask, Token};

/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

pub(crate) fn lane(name: &str) -> Lane {
    Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(name).unwrap() }
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn task(lane_name: &str, number: u64, due: u64) -> PendingTask {
    PendingTask {
        lane: lane(lane_name),
        class: Class::First,
        id: TaskId::from_parts(number, 7),
        token: Token(0),
        due: at(due),
    }
}

pub(crate) fn turn(lane_name: &str, tasks: usize) -> Turn {
    Turn { lane: lane(lane_name), class: Class::First, tasks }
}

/// An index at this address, connected, and complete though empty.
pub(crate) async fn complete_schedule(url: &str) -> Schedule {
    let schedule = connected_schedule(url).await;
    fill(&schedule).await;
    schedule
}

pub(crate) async fn connected_schedule(url: &str) -> Schedule {
    let schedule = Schedule::new(url.parse().unwrap(), Options::default()).unwrap();
    schedule.connect().await.unwrap();
    schedule
}

/// Marks all partitions as complete.
pub(crate) async fn fill(schedule: &Schedule) {
    let (all, builder) = (Partition::all().collect::<Vec<_>>(), Builder::new());
    for answer in schedule.begin(&all, &builder).await.into_iter().chain(schedule.finish(&all, &builder).await) {
        assert!(answer.unwrap());
    }
}

pub(crate) async fn add(schedule: &Schedule, tasks: impl IntoIterator<Item = PendingTask>) {
    let missing = schedule.add(tasks.into_iter().collect()).await;
    assert!(missing.is_empty(), "{missing:?}");
}

pub(crate) async fn try_take(schedule: &Schedule, name: &str, room: usize, now: u64) -> Result<Take, RedisCallError> {
    schedule.take(&[turn(name, room)], at(now)).await.remove(0)
}

pub(crate) async fn take(schedule: &Schedule, name: &str, room: usize, now: u64) -> Taken {
    match try_take(schedule, name, room, now).await.unwrap() {
        Take::Taken(taken) => taken,
        Take::Incomplete => panic!("{name} is not complete"),
    }
}

pub(crate) fn ids(tasks: &[PendingTask]) -> BTreeSet<TaskId> {
    tasks.iter().map(|task| task.id).collect()
}

/// Waits until `condition` holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let begin = Instant::now();
    while !condition().await {
        assert!(begin.elapsed() < LIMIT, "waited {LIMIT:?} in vain until {what}");
        tokio::time::sleep(LOOK_AGAIN_AFTER).await;
    }
}

/// The number of the partition that a lane is in: the tag in its keys.
pub(crate) fn partition(lane_name: &str) -> u64 {
    partition_of(&lane(lane_name))
}

fn partition_of(lane: &Lane) -> u64 {
    let name = lane.to_string();
    let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, hash) % 256
}

pub(crate) fn book_of(lane_name: &str) -> String {
    format!("redrive:2:{{{}}}:book", partition(lane_name))
}

pub(crate) fn due_of(lane_name: &str) -> String {
    due_of_lane(&lane(lane_name), Class::First)
}

pub(crate) fn due_of_lane(lane: &Lane, class: Class) -> String {
    format!("redrive:2:{{{}}}:due:{}:{lane}", partition_of(lane), class.code())
}
