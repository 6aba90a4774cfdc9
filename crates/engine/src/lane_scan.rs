//! Lane scan: fills the lanes from the store.
//!
//! It reads all lanes at the start, and whenever something may have become due without a notification to this process.
//! In between, on a shared store, it reads one page at a time, in a cycle, to find work that everything else missed. So
//! an idle process costs one page per look, however many lanes wait. A page with due work that was unknown here is
//! followed by the next one at once: there may be more of it than the other processes can handle.
//!
//! Before each look at a shared store it also reads what operators have set for lanes, perhaps through another process,
//! and finds breakers that another process has opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive_core::{Class, Lane};
use redrive_store::{Error, LaneDue};

use crate::engine_state::{EngineState, Phase};
use crate::guard_upkeep;

/// The wait before lanes are read again that the store failed to return.
const PAUSE: Duration = Duration::from_millis(250);
/// For how long after the start all lanes are read: calls of the previous process may still be committed.
const YOUNG: Duration = Duration::from_secs(60);

/// Whether something may have become due without a notification to this process: if so, the next look reads all lanes.
#[derive(Debug, Default)]
pub(crate) struct MissedWork(AtomicBool);

impl MissedWork {
    /// Notes that a call failed: it may have taken effect all the same.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

/// Where the next page begins; `None` is the first page.
type ScanCursor = Option<(Lane, Class)>;

/// Runs until the engine drains. Reads the lanes at the start and whenever the index was lost; on a shared store also
/// periodically, at a slow pace.
pub(crate) async fn run(shared: Arc<EngineState>) {
    let (mut cursor, mut is_whole) = (None, true);
    let begun = shared.clock.elapsed();
    loop {
        if !shared.store.is_exclusive() {
            guard_upkeep::reread_controls(&shared).await;
            guard_upkeep::find_open_breakers(&shared).await;
        }
        is_whole |= shared.clock.elapsed().saturating_sub(begun) < YOUNG;
        let outcome = look(&shared, &mut cursor, &mut is_whole).await;
        let again = match &outcome {
            Ok(()) => {
                shared.store_worked("reading the lanes");
                (!shared.store.is_exclusive()).then_some(shared.options.look_around_every)
            }
            Err(error) => {
                shared.store_failed("reading the lanes", error);
                Some(PAUSE)
            }
        };
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = shared.schedule_lost.notified() => is_whole = true,
            () = sleep_for(&shared, again) => {}
        }
    }
}

/// Takes one look. `is_whole` requests a look at all lanes; it stays set until such a look has succeeded.
async fn look(shared: &EngineState, cursor: &mut ScanCursor, is_whole: &mut bool) -> Result<(), Error> {
    if let Some(peers) = shared.store.shared() {
        // Read before the look: what is missed during it is found by the next one.
        *is_whole |= shared.missed_work.take();
        *is_whole |= match peers.may_have_missed(shared.clock.now()).await {
            Ok(has_missed) => has_missed,
            // Whether something was missed is unknown, so everything is read.
            Err(error) => {
                shared.store_failed("asking what was missed", &error);
                true
            }
        };
    }
    if *is_whole {
        *cursor = None;
    }
    while look_at_page(shared, cursor).await? || *is_whole {
        if cursor.is_none() {
            break;
        }
    }
    *is_whole = false;
    Ok(())
}

/// Notes the due times of one page, and moves on to the next one; after the last page to the first. Returns whether the
/// page had due work that was unknown here.
async fn look_at_page(shared: &EngineState, cursor: &mut ScanCursor) -> Result<bool, Error> {
    let step = shared.options.steps.rebuild;
    let lanes = shared.store.upkeep().pending_lanes(cursor.clone(), step).await?;
    let is_last = lanes.len() < step;
    *cursor = lanes.last().filter(|_| !is_last).map(|last| (last.lane.clone(), last.class));
    let now = shared.clock.now();
    let mut has_found = false;
    for LaneDue { lane, class, next_due } in lanes {
        if let Some(due) = next_due {
            has_found |= shared.lanes.note_due(&lane, class, due) && due <= now;
        }
    }
    Ok(has_found)
}

/// Sleeps for `wait`, or without end if it is `None`.
async fn sleep_for(shared: &EngineState, wait: Option<Duration>) {
    match wait {
        Some(wait) => shared.clock.sleep(wait).await,
        None => std::future::pending().await,
    }
}
