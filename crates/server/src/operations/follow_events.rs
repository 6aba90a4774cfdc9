//! Follows what happens on this node.

use crate::app::App;
use crate::caller::Caller;
use crate::live_events::{EventFilter, EventReader, StartAt};
use crate::operation_error::OperationError;

/// Which events to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// The events that are wanted.
    pub filter: EventFilter,
    /// Where to start.
    pub start: StartAt,
    /// Whether to go on with events that are yet to come.
    pub follows: bool,
}

/// Opens a reader of the events of the caller's tenant. It takes one of a bounded number of places until it is dropped.
pub fn follow_events(app: &App, caller: &Caller, query: EventQuery) -> Result<EventReader, OperationError> {
    EventReader::open(&app.live_events, caller.tenant.clone(), query.filter, query.start, query.follows)
}
