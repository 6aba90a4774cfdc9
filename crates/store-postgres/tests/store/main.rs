//! The store against a real PostgreSQL: the facts that hold for every store, and what only a shared one can meet.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod conformance;
mod damaged;
mod failover;
mod faults;
mod floors;
mod hanging;
mod long_transactions;
mod missed;
mod outbox;
mod pooled;
mod races;
mod reads;
mod schema;
mod several;
mod support;
mod tls;
