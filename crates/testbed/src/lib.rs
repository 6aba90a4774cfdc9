//! Real servers for tests: PostgreSQL, Redis (single, cluster, sentinel) and PgBouncer on free loopback ports, a TCP
//! proxy that drops or delays data, and a real browser.
//!
//! Each value is a server that can be killed, paused and restarted. It is removed with all of its files when the value
//! is dropped, or when the process ends in any way, SIGKILL included. This is for tests: a failed setup panics with the
//! reason.
//!
//! Not here: anything that ships, and anything specific to Redrive.

#![forbid(unsafe_code)]

/// A browser that tests read pages with.
pub mod browser;
mod home;
mod pgbouncer;
mod port;
/// A private PostgreSQL server, and the one that tests share.
pub mod postgres;
mod process_tree;
mod program;
mod proxy;
/// A Redis server, a cluster of three, and a master with a sentinel.
pub mod redis;
mod server;
mod wait;

pub use browser::{Browser, ColorScheme};
pub use pgbouncer::PgBouncer;
pub use port::free as free_port;
pub use postgres::{Database, Postgres, SHARED_POSTGRES, SharedPostgres};
pub use process_tree::kill_tree;
pub use program::{Program, missing_programs};
pub use proxy::Proxy;
pub use redis::{Redis, RedisCluster, RedisSentinel};
pub use wait::wait_until;
