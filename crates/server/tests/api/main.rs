//! The API from outside: a real server on a real socket, the real engine, the store that forgets, a scripted target.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "these tests live on the machine's clock and runtime")]

mod alert_faults;
mod alert_signals;
mod alerts;
mod batch;
mod browser;
mod connections;
mod dependencies;
mod docs;
mod events;
mod failure_cases;
mod gate;
mod health_report;
mod inboxes;
mod limits;
mod lists;
mod memory;
mod metrics;
mod openapi;
mod policies;
mod record_bodies;
mod record_lists;
mod record_owners;
mod record_settings;
mod record_waiting;
mod records;
mod refusals;
mod replay;
mod secrets;
mod service;
mod shutdown;
mod standard;
mod stored;
mod submit;
mod take_back;
mod tasks;
mod traces;
mod waiting;
mod wire_exact;
mod world;
