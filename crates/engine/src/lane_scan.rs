//! Fills the lanes from the store.
//!
//! All of them at the start, and whenever something may have become due that this process does not know of. In between, on a
//! shared store, a page at a time, round and round: what slipped through everything else is found then. So the cost of a
//! process with nothing to do hangs on the size of a page, not on how many lanes wait. A page that shows due work that was
//! not known here is followed by the next one at once: there may be more of it than the others get done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive_core::{Class, Lane};
use redrive_store::{Error, LaneDue};

use crate::shared::{Phase, Shared};

/// The wait before the lanes are read again that the store would not show.
const PAUSE: Duration = Duration::from_millis(250);
/// For how long after the start all lanes are read: what the process before has sent may still be committed.
const YOUNG: Duration = Duration::from_secs(60);

/// Whether something may have become due without this process knowing: the next look is at all lanes.
#[derive(Debug, Default)]
pub(crate) struct MissedWork(AtomicBool);

impl MissedWork {
    /// A call failed: what it was to do may have been done.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

/// Where the next page begins; the first one if nothing is said.
type Place = Option<(Lane, Class)>;

/// Looks until the engine drains: at the start and whenever the lanes were lost; on a shared store for ever, at a slow pace.
pub(crate) async fn run(shared: Arc<Shared>) {
    let (mut place, mut is_whole) = (None, true);
    let begun = shared.clock.elapsed();
    loop {
        is_whole |= shared.clock.elapsed().saturating_sub(begun) < YOUNG;
        let outcome = look(&shared, &mut place, &mut is_whole).await;
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

/// Takes one look. `is_whole` says that it has to be at everything, and goes on to say so until such a look has worked.
async fn look(shared: &Shared, place: &mut Place, is_whole: &mut bool) -> Result<(), Error> {
    if let Some(peers) = shared.store.shared() {
        // Asked before the look: what is missed during it is found by the next one.
        *is_whole |= shared.missed_work.take();
        *is_whole |= match peers.may_have_missed(shared.clock.now()).await {
            Ok(has_missed) => has_missed,
            // Nothing is known, so everything is read.
            Err(error) => {
                shared.store_failed("asking what was missed", &error);
                true
            }
        };
    }
    if *is_whole {
        *place = None;
    }
    while look_at_page(shared, place).await? || *is_whole {
        if place.is_none() {
            break;
        }
    }
    *is_whole = false;
    Ok(())
}

/// Notes what a page shows, and moves on to the next one, or to the first behind the last. Says whether it showed due work
/// that was not known here.
async fn look_at_page(shared: &Shared, place: &mut Place) -> Result<bool, Error> {
    let step = shared.options.steps.rebuild;
    let lanes = shared.store.upkeep().pending_lanes(place.clone(), step).await?;
    let is_last = lanes.len() < step;
    *place = lanes.last().filter(|_| !is_last).map(|last| (last.lane.clone(), last.class));
    let now = shared.clock.now();
    let mut has_found = false;
    for LaneDue { lane, class, next_due } in lanes {
        if let Some(due) = next_due {
            has_found |= shared.lanes.note_due(&lane, class, due) && due <= now;
        }
    }
    Ok(has_found)
}

/// Sleeps, for ever if there is nothing to wake up for.
async fn sleep_for(shared: &Shared, wait: Option<Duration>) {
    match wait {
        Some(wait) => shared.clock.sleep(wait).await,
        None => std::future::pending().await,
    }
}
