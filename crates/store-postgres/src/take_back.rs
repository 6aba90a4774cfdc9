//! Takes back rows that were set aside and that this program can read: at its start, and again every few seconds.
//!
//! While nodes are upgraded one after the other, an older program sets aside rows that a newer one wrote, maybe after
//! the newer one has started.

use std::sync::Arc;
use std::time::Duration;

use crate::floors::Floors;
use crate::news::News;
use crate::ops::set_aside::{RecordKey, Which, take_back};
use crate::pool::{Pool, call};

/// The most steps at a start; the remaining rows are looked at later.
const STEPS_AT_START: usize = 50;

/// Takes rows back at the start. The store opens even if some cannot be taken back.
pub(crate) async fn take_back_at_start(pool: &Pool) {
    let (mut taken_back, mut after) = (0, RecordKey::default());
    for _ in 0..STEPS_AT_START {
        let from = after.clone();
        match call!(*pool, |connection| take_back(connection, &from, Which::All)) {
            Ok((rows, next)) => {
                taken_back += rows;
                let Some(next) = next else { break };
                after = next;
            }
            Err(failure) => {
                tracing::warn!(%failure, "rows that were set aside could not be taken back");
                break;
            }
        }
    }
    if taken_back > 0 {
        tracing::info!(rows = taken_back, "took back rows that had been set aside");
    }
}

/// Takes rows back until it is dropped. Each step continues where the previous one ended.
pub(crate) async fn take_back_again_and_again(pool: Pool, every: Duration, news: Arc<News>, floors: Arc<Floors>) {
    let mut after = RecordKey::default();
    loop {
        tokio::time::sleep(every).await;
        let from = after.clone();
        let taken_back = call!(pool, |connection| take_back(connection, &from, Which::NotRefused));
        // A task that was taken back may be due for long. If the step failed, its outcome is unknown.
        if !matches!(taken_back, Ok((0, _))) {
            floors.forget_all();
            news.ear.missed();
        }
        match taken_back {
            Ok((rows, next)) => {
                if rows > 0 {
                    tracing::info!(rows, "took back rows that had been set aside");
                }
                after = next.unwrap_or_default();
            }
            Err(failure) => tracing::debug!(%failure, "taking back rows that were set aside"),
        }
    }
}
