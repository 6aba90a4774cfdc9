//! Real servers for tests: PostgreSQL, Redis (single, cluster, sentinel) and PgBouncer on free loopback ports, and a TCP
//! proxy that loses what it should carry.
//!
//! Each value is a server that is killed, paused and started again at will, and that is gone with all of its files when
//! the value is dropped, or when the process ends in any way, SIGKILL included. This is for tests: what cannot be set up
//! is a panic that says why.
//!
//! Not here: anything that ships, and anything that knows what Redrive is.

#![forbid(unsafe_code)]

mod home;
mod pgbouncer;
mod port;
/// A PostgreSQL server of one's own, and the one that tests share.
pub mod postgres;
mod process_tree;
mod program;
mod proxy;
/// A Redis server, a cluster of three and a master that a sentinel watches over.
pub mod redis;
mod server;
mod wait;

pub use pgbouncer::PgBouncer;
pub use port::free as free_port;
pub use postgres::{Database, Postgres, SHARED_POSTGRES, SharedPostgres};
pub use program::{Program, missing_programs};
pub use proxy::Proxy;
pub use redis::{Redis, RedisCluster, RedisSentinel};
pub use wait::wait_until;
