//! Conversion between rows and domain types.

mod answer;
mod attempt;
mod body;
mod record;
mod request;
mod scalar;
mod task;

pub(crate) use answer::{EncodedAnswer, answer};
pub(crate) use attempt::attempt;
pub(crate) use body::{Encoded as EncodedBody, body, parsed as body_ref};
pub(crate) use record::{RecordRow, record_column, record_columns, state_code};
pub(crate) use redrive_store::encoding::{EncodedRequest, micros, millis, status, whole_millis};
pub(crate) use request::{request, request_columns};
pub(crate) use scalar::{sequence, status_code, time, timestamp};
pub(crate) use task::{TASK_COLUMN_COUNT, TaskRow, task_columns};
