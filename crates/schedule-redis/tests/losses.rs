//! What Redis can lose, and how it is detected. After every loss the index is incomplete until it is filled again.

mod support;

use std::time::{Duration, Instant};

use redrive_schedule_redis::{Builder, Partition, RedisCallError, Schedule, Take};
use redrive_testbed::Redis;
use redrive_testbed::redis::Options;
use support::*;

/// Two lanes of different partitions, each with two tasks.
async fn with_tasks(redis: &Redis) -> Schedule {
    assert_ne!(partition("a"), partition("b"));
    let schedule = complete_schedule(&redis.url()).await;
    add(&schedule, [task("a", 1, 1), task("a", 2, 2), task("b", 3, 3), task("b", 4, 4)]).await;
    schedule
}

/// Whether this lane is incomplete according to the index.
async fn is_incomplete(schedule: &Schedule, name: &str) -> bool {
    matches!(try_take(schedule, name, 1, 100).await, Ok(Take::Incomplete))
}

#[tokio::test]
async fn an_index_that_was_never_filled_is_not_complete() {
    let redis = Redis::start();
    let schedule = connected_schedule(&redis.url()).await;
    add(&schedule, [task("a", 1, 1)]).await;
    assert!(is_incomplete(&schedule, "a").await);
    fill(&schedule).await;
    assert_eq!(take(&schedule, "a", 5, 5).await.tasks, [task("a", 1, 1)]);
}

#[tokio::test]
async fn a_flushed_index_is_not_complete() {
    let redis = Redis::start();
    let schedule = with_tasks(&redis).await;
    redis.call(&["FLUSHALL"]);
    assert!(is_incomplete(&schedule, "a").await);
    add(&schedule, [task("a", 5, 1)]).await;
    assert!(is_incomplete(&schedule, "a").await, "an addition does not make up for what is lost");
    fill(&schedule).await;
    assert_eq!(take(&schedule, "a", 5, 5).await.tasks, [task("a", 5, 1)]);
}

#[tokio::test]
async fn a_lane_that_was_evicted_makes_its_partition_incomplete_and_no_other() {
    let redis = Redis::start();
    let schedule = with_tasks(&redis).await;
    assert_eq!(redis.call(&["DEL", &due_of("a")]), "1");
    assert!(is_incomplete(&schedule, "a").await);
    assert_eq!(take(&schedule, "b", 1, 100).await.tasks, [task("b", 3, 3)]);
}

#[tokio::test]
async fn an_evicted_lane_shows_even_after_more_came_in() {
    let redis = Redis::start();
    let schedule = with_tasks(&redis).await;
    assert_eq!(redis.call(&["DEL", &due_of("a")]), "1");
    add(&schedule, (10..20).map(|number| task("a", number, 1))).await;
    assert!(is_incomplete(&schedule, "a").await);
}

#[tokio::test]
async fn a_book_that_was_evicted_makes_its_partition_incomplete() {
    let redis = Redis::start();
    let schedule = with_tasks(&redis).await;
    assert_eq!(redis.call(&["DEL", &book_of("a")]), "1");
    assert!(is_incomplete(&schedule, "a").await);
    fill(&schedule).await;
    let tasks = take(&schedule, "a", 5, 100).await.tasks;
    assert_eq!(tasks, [task("a", 1, 1), task("a", 2, 2)], "what outlived the book is counted again");
    assert!(!is_incomplete(&schedule, "a").await);
}

#[tokio::test]
async fn a_server_that_comes_back_empty_is_not_complete() {
    let redis = Redis::start();
    let schedule = with_tasks(&redis).await;
    redis.kill();
    assert!(try_take(&schedule, "a", 1, 100).await.is_err());
    redis.start_again();
    let failure = try_take(&schedule, "a", 1, 100).await.unwrap_err();
    assert!(matches!(failure, RedisCallError::Unconnected), "{failure:?}");
    schedule.connect().await.unwrap();
    assert!(is_incomplete(&schedule, "a").await);
}

/// It could have lost the last second or the last hour, depending on its configuration.
#[tokio::test]
async fn a_server_that_comes_back_with_its_data_is_not_complete_either() {
    let redis = Redis::start_with(Options { durable: true, ..Options::default() });
    let schedule = with_tasks(&redis).await;
    redis.kill();
    redis.start_again();
    schedule.connect().await.unwrap();
    assert_eq!(redis.call(&["ZCARD", &due_of("a")]), "2");
    assert!(is_incomplete(&schedule, "a").await);
    fill(&schedule).await;
    assert_eq!(take(&schedule, "a", 5, 100).await.tasks.len(), 2);
}

#[tokio::test]
async fn a_filling_that_was_disturbed_does_not_count() {
    let redis = Redis::start();
    let schedule = connected_schedule(&redis.url()).await;
    let (all, builder) = (Partition::all().collect::<Vec<_>>(), Builder::new());
    let of_a = [Partition::of(&lane("a"))];

    schedule.begin(&all, &builder).await;
    add(&schedule, [task("a", 1, 1)]).await;
    redis.call(&["FLUSHALL"]);
    add(&schedule, [task("a", 2, 2)]).await;
    assert!(!schedule.finish(&of_a, &builder).await.remove(0).unwrap(), "flushed on the way");

    schedule.begin(&all, &builder).await;
    redis.call(&["DEL", &due_of("a")]);
    add(&schedule, [task("a", 2, 2)]).await;
    assert!(!schedule.finish(&of_a, &builder).await.remove(0).unwrap(), "a lane was evicted on the way");

    schedule.begin(&all, &builder).await;
    let second = Builder::new();
    schedule.begin(&all, &second).await;
    assert!(!schedule.finish(&of_a, &builder).await.remove(0).unwrap(), "another rebuild began after it");
    assert!(schedule.finish(&of_a, &second).await.remove(0).unwrap());
    assert!(schedule.is_complete(&of_a).await.remove(0).unwrap());

    for answer in schedule.forget(&of_a).await {
        answer.unwrap();
    }
    assert!(!schedule.is_complete(&of_a).await.remove(0).unwrap());
}

#[tokio::test]
async fn a_server_without_the_scripts_is_sent_them_again() {
    let redis = Redis::start();
    let schedule = with_tasks(&redis).await;
    assert_eq!(redis.call(&["SCRIPT", "FLUSH"]), "OK");
    assert_eq!(take(&schedule, "a", 1, 100).await.tasks, [task("a", 1, 1)]);
    redis.call(&["SCRIPT", "FLUSH"]);
    add(&schedule, [task("a", 9, 9)]).await;
    assert_eq!(take(&schedule, "a", 9, 100).await.tasks, [task("a", 2, 2), task("a", 9, 9)]);
    assert!(redis.call(&["INFO", "commandstats"]).contains("cmdstat_evalsha"));
}

#[tokio::test]
async fn a_server_that_stands_still_delays_no_call() {
    let redis = Redis::start();
    let schedule = with_tasks(&redis).await;
    redis.pause();
    let begin = Instant::now();
    let failure = try_take(&schedule, "a", 1, 100).await.unwrap_err();
    assert!(matches!(failure, RedisCallError::TimedOut(_)), "{failure:?}");
    assert!(begin.elapsed() >= Duration::from_millis(500));
    for _ in 0..1_000 {
        // Without a connection the call fails at once.
        let failure = try_take(&schedule, "a", 1, 100).await.unwrap_err();
        assert!(matches!(failure, RedisCallError::Unconnected), "{failure:?}");
    }
    redis.resume();
    schedule.connect().await.unwrap();
    // The take whose answer was not awaited may have happened, but nothing more.
    let left = take(&schedule, "a", 5, 100).await.tasks;
    assert!(left.ends_with(&[task("a", 2, 2)]), "{left:?}");
}
