//! The Redis with the nodes' schedule, behind a proxy for all nodes: emptied, killed, slowed down.

use std::net::SocketAddr;
use std::time::Duration;

use redrive_testbed::{Proxy, Redis};

/// A Redis server behind a proxy.
pub struct Schedule {
    redis: Redis,
    proxy: Proxy,
    is_down: bool,
}

impl Schedule {
    /// Starts an empty one.
    pub fn start() -> Self {
        let redis = Redis::start();
        let proxy = Proxy::start(SocketAddr::from(([127, 0, 0, 1], redis.port())));
        Schedule { redis, proxy, is_down: false }
    }

    /// The URL for nodes.
    pub fn url(&self) -> String {
        format!("redis://{}", self.proxy.address())
    }

    /// Empties it.
    pub fn flush(&self) {
        self.redis.call(&["FLUSHALL"]);
    }

    /// Kills it. It is empty when it is restarted.
    pub fn kill(&mut self) {
        self.redis.kill();
        self.is_down = true;
    }

    /// Delays each of its answers by this time.
    pub fn slow_down(&self, delay: Duration) {
        self.proxy.delay_answers(delay);
    }

    /// Restarts it if it is down, and removes the delay.
    pub fn mend(&mut self) {
        if self.is_down {
            self.redis.start_again();
            self.is_down = false;
        }
        self.proxy.restore();
    }
}
