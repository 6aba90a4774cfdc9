//! The targets, one file for each.

pub(crate) mod answer;
pub(crate) mod batch;
pub(crate) mod cursor;
pub(crate) mod event_id;
pub(crate) mod headers;
pub(crate) mod json;
pub(crate) mod policy;
pub(crate) mod retry_after;
pub(crate) mod rows;
pub(crate) mod submission;
pub(crate) mod task_id_prefix;
pub(crate) mod trace_context;
