//! Telling people of dead letters (injected): what must have happened before an alert counts as raised.

use std::future::Future;
use std::pin::Pin;

/// Waits for alerts to be told of.
pub type Relaying<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Tells people of dead letters. It hears of them by [`Event::DeadLetter`](crate::events::Event::DeadLetter), as a sink.
pub trait AlertRelay: Send + Sync + 'static {
    /// Ends once every dead letter of which there was an event before this call is sure to be told of, whatever crashes. Only
    /// then are the notes of these alerts removed from the store. With `is_stopping` nothing more is waited for than is needed
    /// for that.
    fn relayed(&self, is_stopping: bool) -> Relaying<'_>;
}
