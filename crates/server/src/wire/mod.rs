//! The JSON documents of requests and answers, independent of HTTP.
//!
//! Documents of requests borrow from the bytes that were read and refuse unknown fields. Documents of answers borrow
//! from the domain's values. Both have JSON schemas, for `/openapi.json`.
//!
//! Not here: whether values are valid (`crate::intake`), status codes (`crate::rest`).

mod alert;
mod attempt;
mod batch;
mod cursor;
mod dependency;
pub(crate) mod excerpt;
mod finding;
mod headers;
mod health;
mod health_report;
mod inbox;
mod labels;
mod live_event;
mod moment;
mod node;
mod object;
mod parse;
mod policy;
mod problem;
mod record;
mod record_input;
mod record_stats;
pub mod schema;
mod secret;
mod stored;
mod submission;
mod task;
mod text;

pub use alert::{ShownAlert, ShownAlertList, ShownSilence, ShownSink, ShownSinkTest, SilenceInput};
pub use attempt::{AttemptList, ShownAttempt};
pub use batch::{BatchAnswer, BatchResult};
pub use cursor::{AttemptNumber, Cursor};
pub use dependency::{DependencyList, DependencyState, LimitsInput, OpenInput, PauseInput, ShownDependency};
pub use finding::{ShownFinding, ShownPermission};
pub use headers::{ExactHeaders, HeaderFields, ShownHeaders};
pub use health::Health;
pub use health_report::{DependencyHealth, ShownFigure, ShownHealthReport};
pub use inbox::{DuplicateEvent, EventBatch, EventBatchAnswer, EventInput, EventResult, NewEvent, ShownEvent};
pub use live_event::{ShownGap, ShownLiveEvent};
pub use moment::{Moment, NotAMoment};
pub use node::{NodeList, ShownNode};
pub use parse::{Malformed, parse};
pub use policy::{PolicyHistory, PolicyInput, PolicyList, ShownPolicy};
pub use problem::{FieldFault, Problem};
pub use record::{
    PreviousExecution, RecordList, ReplayedRecord, ReplayedResponse, ReserveBatchAnswer, ReserveBatchResult,
    ReservedRecord, ShownBody, ShownRecord, ShownRecordResponse,
};
pub use record_input::{
    CompleteInput, FailInput, OwnerInput, RenewInput, RequestInput, ReserveBatch, ReserveInput, ReserveItem,
    ResponseInput,
};
pub use record_stats::{InboxList, InboxStats, InboxTotals, OperationStats, RecordStats, RecordTotals};
pub use secret::{MASK, Secrets};
pub(crate) use secret::{PARAMETERS, PARTS, WORDS};
pub use stored::StoredBody;
pub use submission::{Batch, Submission};
pub use task::{Response, ShownError, StatusCounts, Task, TaskList};
pub use text::Text;
