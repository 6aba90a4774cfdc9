//! One file per operation of the contract, each with the SQL that it runs.
//!
//! An operation that runs for many tasks per second is one statement for a whole batch. An operation that a person
//! starts now and then is a transaction of small statements, with its decisions made in Rust.

pub(crate) mod alerts;
pub(crate) mod analyze;
pub(crate) mod attempts;
pub(crate) mod backlogs;
pub(crate) mod blob_storage_id;
pub(crate) mod blobs;
pub(crate) mod bring_forward;
pub(crate) mod by_key;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod claim;
pub(crate) mod clean;
pub(crate) mod counts;
pub(crate) mod end_overdue;
pub(crate) mod expired_leases;
pub(crate) mod find;
pub(crate) mod lane_controls;
pub(crate) mod lane_pages;
pub(crate) mod list;
pub(crate) mod newest_task;
pub(crate) mod nodes;
pub(crate) mod pending_lanes;
pub(crate) mod policies;
pub(crate) mod records;
pub(crate) mod replay;
pub(crate) mod set_aside;
pub(crate) mod settle;
pub(crate) mod shared_guards;
pub(crate) mod submit;
pub(crate) mod suppress;
pub(crate) mod time;
pub(crate) mod unnotified_tasks;
pub(crate) mod waiting;
