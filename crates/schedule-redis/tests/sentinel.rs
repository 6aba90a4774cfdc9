//! The index on a primary that sentinels watch: after a failover the new primary is used, and its data counts as
//! incomplete.

mod support;

use redrive_schedule_redis::{RedisCallError, Schedule, Take};
use redrive_testbed::{RedisSentinel, wait_until};
use support::*;

fn address(service: &RedisSentinel) -> String {
    let hosts: Vec<String> = service.sentinel_urls().iter().map(|url| url.replace("redis://", "")).collect();
    // The first sentinel does not exist: the next one is used.
    format!("redis+sentinel://127.0.0.1:1,{}/{}", hosts.join(","), service.service_name())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_replica_is_found_and_is_not_complete() {
    let service = RedisSentinel::start();
    let schedule = complete_schedule(&address(&service)).await;
    add(&schedule, [task("a", 1, 1)]).await;
    let before = service.master_url();
    wait_until("the replica has the task", || {
        service.servers().iter().all(|server| server.call(&["ZCARD", &due_of("a")]) == "1")
    });

    service.kill_master();
    assert!(try_take(&schedule, "a", 1, 100).await.is_err());
    eventually("the new primary is found", || async { schedule.connect().await.is_ok() }).await;
    assert_ne!(service.master_url(), before);
    // The replica may have been behind, which cannot be known.
    assert_eq!(try_take(&schedule, "a", 1, 100).await.unwrap(), Take::Incomplete);
    fill(&schedule).await;
    assert_eq!(take(&schedule, "a", 1, 100).await.tasks, [task("a", 1, 1)]);
}

#[tokio::test]
async fn a_service_that_no_sentinel_knows_has_no_primary() {
    let service = RedisSentinel::start();
    let address = address(&service).replace(service.service_name(), "another");
    let schedule = Schedule::new(address.parse().unwrap(), Default::default()).unwrap();
    let failure = schedule.connect().await.unwrap_err();
    assert!(matches!(failure, RedisCallError::NoPrimary), "{failure:?}");
}
