//! One file per command: its arguments, its examples, what it does.

pub(crate) mod alerts;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod dependencies;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod idempotency;
pub(crate) mod inbox;
pub(crate) mod lint;
mod listing;
pub(crate) mod man_pages;
pub(crate) mod migrate;
mod moment;
pub(crate) mod nodes;
pub(crate) mod outbox;
mod pairs;
pub(crate) mod policies;
pub(crate) mod report;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod simulate;
mod sources;
pub(crate) mod target;
pub(crate) mod tasks;

pub(crate) use connection::Connection;
pub(crate) use moment::parse_moment;
