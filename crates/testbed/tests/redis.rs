//! Redis: one server, a cluster, and a master with a sentinel.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use redrive_testbed::redis::Options;
use redrive_testbed::{Redis, RedisCluster, RedisSentinel, wait_until};

#[test]
fn a_durable_server_keeps_its_writes_over_a_kill_and_another_does_not() {
    for (durable, expected) in [(true, "1"), (false, "")] {
        let redis = Redis::start_with(Options { durable, settings: &[] });
        let (url, pid) = (redis.url(), redis.pid());
        redis.call(&["SET", "key", "1"]);
        redis.kill();
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        redis.start_again();
        assert_eq!(redis.url(), url);
        assert_eq!(redis.call(&["GET", "key"]), expected);
    }
}

#[test]
fn a_cluster_serves_every_slot_and_recovers_from_a_lost_node() {
    let cluster = RedisCluster::start();
    assert!(cluster.is_ok());
    // These three keys lie in slots of different nodes.
    let owners: Vec<String> = ["{a}", "{b}", "{c}"].iter().map(|key| owner(&cluster, key)).collect();
    assert_eq!(owners.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{owners:?}");
    cluster.nodes()[1].kill();
    cluster.nodes()[1].start_again();
    wait_until("the cluster is ok again", || cluster.is_ok());
}

/// The only node that takes a write of `key`.
fn owner(cluster: &RedisCluster, key: &str) -> String {
    let slot: usize = cluster.nodes()[0].call(&["CLUSTER", "KEYSLOT", key]).parse().unwrap();
    let node = &cluster.nodes()[slot * 3 / 16_384];
    assert_eq!(node.call(&["SET", key, "1"]), "OK");
    node.url()
}

#[test]
fn a_sentinel_makes_the_replica_the_master_when_the_master_is_killed() {
    let service = RedisSentinel::start();
    let old = service.master_url();
    let (master, replica) = (&service.servers()[0], &service.servers()[1]);
    assert_eq!(old, master.url());
    master.call(&["SET", "key", "1"]);
    wait_until("the replica has the write", || replica.call(&["GET", "key"]) == "1");

    service.kill_master();
    service.wait_for_failover_from(&old);
    assert_eq!(service.master_url(), replica.url());
    assert_eq!(replica.call(&["GET", "key"]), "1");
    assert_eq!(replica.call(&["SET", "key", "2"]), "OK");
}
