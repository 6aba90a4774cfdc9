//! What the tools that break the service share: submissions, the faulty target that records every arrival, the alerts
//! in a log and at their receiver, and the attempts that were counted and not sent.
//!
//! Not here: what is broken and when, and the rules that judge a history; each tool has its own.

mod alert;
mod arrival;
mod receiver;
mod submission;
mod target;
mod unsent;

pub use alert::{Alert, alerts};
pub use arrival::Arrival;
pub use receiver::AlertReceiver;
pub use submission::{DEPENDENCIES, RequestedTask, Submission};
pub use target::FaultyTarget;
pub use unsent::{UnsentAttempts, Verdict};
