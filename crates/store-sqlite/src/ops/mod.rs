//! One file per operation of the contract, each with the SQL that it runs.
//!
//! Operations that write take the [`Writer`](crate::writer::Writer) inside its open transaction; those that only read
//! take a [`Reader`](crate::readers::Reader).

pub(crate) mod alerts;
pub(crate) mod attempts;
pub(crate) mod backlog;
pub(crate) mod blobs;
pub(crate) mod bring_forward;
pub(crate) mod by_key;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod claim;
pub(crate) mod clean;
pub(crate) mod counts;
pub(crate) mod end_overdue;
pub(crate) mod exhaust;
pub(crate) mod expire_leases;
pub(crate) mod expired_leases;
pub(crate) mod find;
pub(crate) mod guard_states;
pub(crate) mod list;
pub(crate) mod meta;
pub(crate) mod newest_task;
pub(crate) mod pending_lanes;
pub(crate) mod policies;
pub(crate) mod records;
pub(crate) mod replay;
pub(crate) mod set_aside;
pub(crate) mod settle;
pub(crate) mod submit;
pub(crate) mod suppress;

#[cfg(test)]
mod plans;
