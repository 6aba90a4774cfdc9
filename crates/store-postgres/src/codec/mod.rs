//! Conversion between rows and domain types.

mod answer;
mod attempt;
mod cells;
mod id;
mod record;
mod request;
mod scalar;
mod task;
mod text;

pub(crate) use answer::answer;
pub(crate) use attempt::{attempt, attempt_columns};
pub(crate) use cells::Cells;
pub(crate) use id::Uuid;
pub(crate) use record::{RecordArrays, record, record_columns, record_key};
pub(crate) use redrive_store::encoding::{EncodedRequest, json, micros, millis, status_code, whole_millis};
pub(crate) use request::{REQUEST_COLUMN_COUNT, labels, request, request_columns};
pub(crate) use scalar::{class_code, status};
pub(crate) use task::{LEASE_UNTIL_COLUMN, LIVE_TASK_COLUMN_COUNT, TOKEN_COLUMN, TaskRow, any_task, live_task};
pub(crate) use text::{escape, unescape};
