//! Collector: deletes stored bodies that no task refers to any more, and what uploads that broke off left behind.
//!
//! The store decides: no task can ever refer to a body that it has condemned, so the object may be deleted at any later
//! time (decision 0012).

use std::sync::Arc;
use std::time::Duration;

use redrive_store::Error;

use crate::bodies::Bodies;
use crate::engine_state::{EngineState, Phase};
use crate::events::Report;

/// The pause between two steps, so that callers come first.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs until the engine drains.
pub(crate) async fn run(shared: Arc<EngineState>, bodies: Arc<dyn Bodies>) {
    loop {
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = shared.clock.sleep(shared.options.clean_every) => {}
        }
        if !shared.clock.is_certain() {
            continue;
        }
        if let Err(error) = bodies.check().await {
            shared.events.report(Report::WrongBodyLocation(&error));
            continue;
        }
        match collect(&shared, &*bodies).await {
            Ok(0) => {}
            Ok(deleted) => shared.events.report(Report::BodiesDeleted(deleted)),
            Err(error) => shared.events.report(Report::CollectingFailed(&error)),
        }
        match bodies.delete_unfinished(shared.clock.now().before(shared.options.blob_grace)).await {
            Ok(0) => {}
            Ok(deleted) => shared.events.report(Report::UploadsDeleted(deleted)),
            Err(error) => shared.events.report(Report::UploadsNotDeleted(&error)),
        }
    }
}

/// Runs one whole pass. Returns how many bodies it deleted.
async fn collect(shared: &EngineState, bodies: &dyn Bodies) -> Result<usize, Error> {
    let adopted_before = shared.clock.now().before(shared.options.blob_grace);
    let (mut after, mut deleted) = (None, 0);
    while shared.phase() == Phase::Running {
        let step = shared.store.blobs().condemn(adopted_before, after, shared.options.steps.clean).await?;
        let mut gone = Vec::with_capacity(step.blobs.len());
        for blob in step.blobs {
            match bodies.delete(&blob).await {
                Ok(()) => gone.push(blob),
                // The body stays condemned, and the next pass finds it again.
                Err(error) => shared.events.report(Report::BodyNotDeleted(&error)),
            }
        }
        deleted += gone.len();
        if !gone.is_empty() {
            shared.store.blobs().forget(gone).await?;
        }
        after = step.next;
        if after.is_none() {
            break;
        }
        shared.clock.sleep(PAUSE).await;
    }
    Ok(deleted)
}
