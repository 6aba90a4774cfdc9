//! The PostgreSQL store: several processes share one database, and any of them may die at any time.
//!
//! | file | its job |
//! | --- | --- |
//! | `schema/` | the tables, and bringing them up to date |
//! | `ops/` | one file per operation of the contract, each with the SQL that it runs |
//! | `codec/` | rows to domain types and back |
//! | `connect`, `trust`, `connection`, `pool` | connections, whom to trust, and what the planner is told |
//! | `batch` | whatever is queued goes into the next transaction |
//! | `fence` | stops a process whose program is too old for the schema |
//! | `floors` | where claims and looks along the queue start, past rows that died but could not be removed |
//! | `news/` | LISTEN and NOTIFY: waking other processes, and whether all of it was heard |
//! | `shares` | how the connections are shared out |
//! | `take_back` | brings back rows that were set aside and can be understood now |
//! | `upkeep` | keeps the counts small and the planner informed |
//!
//! Every write is committed before it is answered. `synchronous_commit` is the database's setting: leave it on. A call
//! that fails changed nothing, with one exception: when the connection is lost before the answer to a commit, the
//! outcome is unknown. A submit then looks its keys up and finds out. For a settlement or a claim, the caller finds out
//! by the token, or when the lease expires.
//!
//! Not here: any decision about retrying, any clock. Times come from the callers, which take them from the database
//! (`Shared::time`).

#![forbid(unsafe_code)]

mod batch;
mod codec;
pub mod connect;
mod connection;
mod contract;
mod failure;
mod fence;
mod floors;
mod news;
mod open;
mod ops;
mod options;
mod pool;
mod pool_sizes;
mod schema;
mod shared;
mod store;
mod take_back;
mod trust;
mod upkeep;

pub use failure::told;
pub use open::{OpenError, migrate};
pub use options::Options;
pub use pool_sizes::FEWEST_CONNECTIONS;
pub use schema::State as SchemaState;
pub use store::PostgresStore;
