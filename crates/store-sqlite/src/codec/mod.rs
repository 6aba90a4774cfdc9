//! Conversion between rows and domain types.

mod answer;
mod attempt;
mod body;
mod request;
mod scalar;
mod task;

pub(crate) use answer::{EncodedAnswer, answer};
pub(crate) use attempt::attempt;
pub(crate) use body::{Encoded as EncodedBody, body, parsed as body_ref};
pub(crate) use request::{EncodedRequest, request, request_columns};
pub(crate) use scalar::{micros, millis, sequence, status, status_code, time, timestamp, whole_millis};
pub(crate) use task::{TASK_COLUMN_COUNT, TaskRow, task_columns};
