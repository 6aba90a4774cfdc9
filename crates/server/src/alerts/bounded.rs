//! A limit on the time that alerts wait for something: what is slow must not delay what is urgent.

use std::time::Duration;

use crate::app::App;

/// What a call comes to, or `None` if it takes longer than `limit`. The call is dropped then.
pub(super) async fn within<T>(app: &App, limit: Duration, call: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        outcome = call => Some(outcome),
        () = app.engine.sleep(limit) => None,
    }
}
