//! The real binary, as a user meets it: started in a temporary directory, asked over its own command line, sending to
//! real HTTP targets. Nothing here sleeps to wait: printed lines, exits and arrivals are what is waited for.

#![allow(clippy::unwrap_used, reason = "in a test, what is not there is a failure")]

mod alertmanager;
mod alerts;
mod blob_storage;
mod callers;
mod canary;
mod clock;
mod completions;
mod config;
mod dependencies;
mod doctor;
mod events;
mod help;
mod https;
mod idempotency;
mod lint;
mod lists;
mod log;
mod man_pages;
mod metrics;
mod ops;
mod outbox;
mod policies;
mod postgres_tls;
mod record_kills;
mod report;
mod send;
mod servers;
mod shutdown;
mod simulate;
mod start;
mod stored;
mod tables;
mod target;
mod tasks;
mod traces;
mod watch;
mod world;
