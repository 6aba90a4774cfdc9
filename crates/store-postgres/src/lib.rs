//! The PostgreSQL store: several processes share one database, and any of them may die at any time.
//!
//! | file | content |
//! | --- | --- |
//! | `schema/` | the tables and their migrations |
//! | `ops/` | one file per operation of the contract, each with the SQL that it runs |
//! | `codec/` | conversion between rows and domain types |
//! | `connect`, `address_options`, `trust`, `connection`, `pool` | connections, TLS options and trusted authorities, the planner's settings |
//! | `failure` | why a server could not be connected to, and what to do about it |
//! | `batch` | batching: whatever is queued goes into the next transaction |
//! | `fence` | stops a process whose program is too old for the schema |
//! | `floors` | where scans of the queue's indexes start, past dead rows that could not be removed |
//! | `news/` | LISTEN and NOTIFY: waking other processes, and detection of lost notifications |
//! | `pool_sizes` | the division of the connections |
//! | `take_back` | takes back rows that were set aside and can be read now |
//! | `upkeep` | merges the rows of counts and updates the planner's statistics |
//!
//! Every write is committed before it is answered. `synchronous_commit` is the database's setting: leave it on. A call
//! that fails changed nothing, with one exception: when the connection is lost before the answer to a commit, the
//! outcome is unknown. A submit then looks its keys up and finds out. For a settlement or a claim, the caller finds out
//! by the token, or when the lease expires.
//!
//! Not here: any decision about retrying, any clock. Times come from the callers, which take them from the database
//! (`Shared::time`).

#![forbid(unsafe_code)]

mod address_options;
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
mod postgres_error;
mod records;
mod schema;
mod shared;
mod store;
mod take_back;
mod trust;
mod upkeep;

pub use open::{OpenError, migrate};
pub use options::Options;
pub use pool_sizes::FEWEST_CONNECTIONS;
pub use postgres_error::describe_error;
pub use schema::State as SchemaState;
pub use store::PostgresStore;
