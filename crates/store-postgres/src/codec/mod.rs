//! Conversion between rows and domain types.

mod answer;
mod attempt;
mod cells;
mod id;
mod request;
mod scalar;
mod task;
mod text;

pub(crate) use answer::answer;
pub(crate) use attempt::{attempt, attempt_columns};
pub(crate) use cells::Cells;
pub(crate) use id::Uuid;
pub(crate) use request::{EncodedRequest, REQUEST_COLUMN_COUNT, json, labels, request, request_columns};
pub(crate) use scalar::{class_code, micros, millis, status, status_code, whole_millis};
pub(crate) use task::{LEASE_UNTIL_COLUMN, LIVE_TASK_COLUMN_COUNT, TOKEN_COLUMN, TaskRow, any_task, live_task};
pub(crate) use text::{escape, unescape};
