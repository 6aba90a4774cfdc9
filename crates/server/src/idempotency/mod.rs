//! What the operations on idempotency records share: settings, counters, and callers that wait for a record.
//!
//! Not here: what a call does to a record (`redrive_core::idempotency`), where records are kept (`redrive-store`).

mod settings;
mod totals;
mod waiters;

pub use settings::{OperationSettings, Settings};
pub use totals::{Totals, TotalsSnapshot};
pub(crate) use waiters::Waiter;
pub use waiters::Waiters;
