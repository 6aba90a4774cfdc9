//! The PostgreSQL store against a real PostgreSQL: the conformance suite, and the cases that only a shared store has.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod commits;
mod conformance;
mod damaged;
mod failover;
mod faults;
mod fewer_rights;
mod floors;
mod hanging;
mod long_transactions;
mod missed;
mod outbox;
mod pooled;
mod races;
mod reads;
mod record_functions;
mod record_kills;
mod records;
mod schema;
mod several;
mod shared_guards;
mod support;
mod tls;
