//! The index on a cluster of three nodes: lanes are spread over them, and each works as on one server.

mod support;

use redrive_schedule_redis::{RedisCallError, Schedule, Take};
use redrive_testbed::RedisCluster;
use support::*;

fn address(cluster: &RedisCluster) -> String {
    let hosts: Vec<String> = cluster.urls().iter().map(|url| url.replace("redis://", "")).collect();
    format!("redis+cluster://{}", hosts.join(","))
}

fn names() -> Vec<String> {
    (0..40).map(|number| format!("https://dependency-{number}.example/{{{number}}}")).collect()
}

async fn with_tasks(cluster: &RedisCluster) -> Schedule {
    let schedule = complete_schedule(&address(cluster)).await;
    add(&schedule, names().iter().zip(1..).map(|(name, number)| task(name, number, number))).await;
    schedule
}

#[tokio::test]
async fn lanes_are_spread_over_all_nodes() {
    let cluster = RedisCluster::start();
    let schedule = with_tasks(&cluster).await;
    for node in cluster.nodes() {
        let keys = node.call(&["KEYS", "redrive:*:due:*"]);
        assert!(keys.lines().count() >= 5, "{keys}");
    }
    let names = names();
    let turns: Vec<_> = names.iter().map(|name| turn(name, 3)).collect();
    for ((name, number), taken) in names.iter().zip(1..).zip(schedule.take(&turns, at(1_000)).await) {
        let Ok(Take::Taken(taken)) = taken else { panic!("{name}: {taken:?}") };
        assert_eq!((taken.tasks, taken.next_due), (vec![task(name, number, number)], None));
    }
}

#[tokio::test]
async fn every_node_is_sent_the_scripts_that_it_does_not_have() {
    let cluster = RedisCluster::start();
    let schedule = with_tasks(&cluster).await;
    for node in cluster.nodes() {
        node.call(&["SCRIPT", "FLUSH"]);
    }
    for (name, number) in names().iter().zip(1..) {
        assert_eq!(take(&schedule, name, 3, 1_000).await.tasks, [task(name, number, number)]);
    }
}

/// With `cluster-require-full-coverage no` the other nodes and their lanes continue to work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_lost_takes_only_its_own_lanes_with_it() {
    let cluster = RedisCluster::start();
    for node in cluster.nodes() {
        node.call(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let schedule = with_tasks(&cluster).await;
    let lost = &cluster.nodes()[1];
    let keys = lost.call(&["KEYS", "redrive:*:due:*"]);
    let (on_lost, elsewhere): (Vec<String>, Vec<String>) =
        names().into_iter().partition(|name| keys.lines().any(|key| key == due_of(name)));
    assert!(!on_lost.is_empty() && !elsewhere.is_empty());

    lost.kill();
    for name in &elsewhere {
        assert_eq!(take(&schedule, name, 1, 0).await.tasks, [], "{name} is known");
    }
    for taken in schedule.take(&on_lost.iter().map(|name| turn(name, 1)).collect::<Vec<_>>(), at(1_000)).await {
        assert!(taken.is_err(), "{taken:?}");
    }

    lost.start_again();
    eventually("the cluster is whole again", || async { cluster.is_ok() }).await;
    // The node came back empty. Its lanes are incomplete, the others have everything.
    for name in &on_lost {
        let known = || async { matches!(try_take(&schedule, name, 1, 1_000).await, Ok(Take::Incomplete)) };
        eventually("the lane is known to be incomplete", known).await;
    }
    for name in &elsewhere {
        assert_eq!(take(&schedule, name, 2, 1_000).await.tasks.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn without_any_node_there_is_no_connection() {
    let cluster = RedisCluster::start();
    let schedule = Schedule::new(address(&cluster).parse().unwrap(), Default::default()).unwrap();
    cluster.nodes().iter().for_each(redrive_testbed::Redis::kill);
    assert!(schedule.connect().await.is_err());
    assert!(matches!(try_take(&schedule, "a", 1, 1).await, Err(RedisCallError::Unconnected)));
}
