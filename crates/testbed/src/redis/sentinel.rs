//! A Redis master and replica with a sentinel.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use super::{Options, Redis, call};
use crate::home::{Farewell, Home, StorageMedium};
use crate::server::{Plan, Server};
use crate::{program, wait_until};

/// The master's name in the sentinel.
const SERVICE: &str = "redrive";

/// A master, a replica, and one sentinel that promotes the replica when the master has been gone for 2 s.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: [Redis; 2],
    sentinel: Server,
}

impl RedisSentinel {
    /// Starts all three and waits until a failover could happen.
    pub fn start() -> Self {
        let no_wait = ("repl-diskless-sync-delay", "0");
        let master = Redis::start_with(Options { settings: &[no_wait], ..Options::default() });
        let replica_of = format!("127.0.0.1 {}", master.port());
        let settings = [no_wait, ("replicaof", replica_of.as_str())];
        let replica = Redis::start_with(Options { settings: &settings, ..Options::default() });
        wait_until("the replica follows its master", || {
            replica.call(&["INFO", "replication"]).contains("master_link_status:up")
        });
        let service = RedisSentinel { sentinel: start_sentinel(master.port()), servers: [master, replica] };
        wait_until("the sentinel has found the replica", || service.knows_replica());
        service
    }

    /// The URLs of the sentinels.
    pub fn sentinel_urls(&self) -> Vec<String> {
        vec![format!("redis://127.0.0.1:{}", self.sentinel.port())]
    }

    /// The master's name, for queries of the sentinel.
    pub fn service_name(&self) -> &str {
        SERVICE
    }

    /// The URL of the current master according to the sentinel.
    pub fn master_url(&self) -> String {
        url_of(self.master_port())
    }

    /// Both servers, in any role.
    pub fn servers(&self) -> &[Redis] {
        &self.servers
    }

    /// Kills the master (SIGKILL). The sentinel detects it by itself.
    pub fn kill_master(&self) {
        let port = self.master_port();
        self.servers.iter().filter(|server| server.port() == port).for_each(Redis::kill);
    }

    /// Waits until the sentinel reports another master, and that server has this role.
    pub fn wait_for_failover_from(&self, old_master_url: &str) {
        wait_until("the sentinel has failed over", || {
            // While it promotes a server the sentinel disconnects its clients, so there may be no answer.
            let Some(port) = self.named_master() else { return false };
            let role = call::call(port, &["ROLE"]).unwrap_or_default();
            url_of(port) != old_master_url && role.starts_with("master")
        });
    }

    fn master_port(&self) -> u16 {
        self.named_master().expect("a sentinel that names a master")
    }

    /// The current master's port according to the sentinel, if it answers.
    fn named_master(&self) -> Option<u16> {
        let said = call::call(self.sentinel.port(), &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]).ok()?;
        said.lines().nth(1)?.parse().ok()
    }

    fn knows_replica(&self) -> bool {
        let said = self.ask(&["SENTINEL", "REPLICAS", SERVICE]);
        // A flat list of names and values; a replica counts for a failover once it follows its master.
        let mut lines = said.lines().skip_while(|line| *line != "master-link-status");
        lines.nth(1) == Some("ok")
    }

    fn ask(&self, words: &[&str]) -> String {
        let outcome = call::call(self.sentinel.port(), words);
        outcome.unwrap_or_else(|error| panic!("{words:?} for the sentinel: {error}"))
    }
}

fn url_of(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

fn start_sentinel(master: u16) -> Server {
    let program = program::SENTINEL.path();
    let home = Home::new(StorageMedium::Disk, None, Farewell::Kill);
    let file = home.path().join("sentinel.conf");
    let command = move |port: u16| {
        let text = format!(
            "bind 127.0.0.1\n\
             port {port}\n\
             sentinel monitor {SERVICE} 127.0.0.1 {master} 1\n\
             sentinel down-after-milliseconds {SERVICE} 2000\n\
             sentinel failover-timeout {SERVICE} 5000\n"
        );
        fs::write(&file, text).expect("writing the sentinel's configuration");
        let mut command = Command::new(&program);
        command.arg(&file);
        command
    };
    let plan = Plan { name: "Redis Sentinel", command: Box::new(command), ready: "+monitor", farewell: Signal::KILL };
    Server::start(plan, home)
}
