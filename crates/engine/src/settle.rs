//! Writing an attempt's end down, and what follows from it in memory.

use std::time::Duration;

use redrive_core::{Reason, Status};
use redrive_store::{Claimed, Error, Next, Settled, Settlement};

use crate::shared::Shared;

/// The wait before a settlement that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Settles an attempt of this process; if that cannot be done while the lease lasts, it is left to the rescuer.
pub(crate) async fn settle_or_leave(shared: &Shared, claimed: &Claimed, settlement: Settlement) {
    if let Err(error) = settle(shared, claimed, settlement).await {
        tracing::error!(task = %claimed.task.id, %error, "settling failed until the lease ran out");
    }
}

/// Settles, however long the store takes to recover, as long as the lease lasts. Tells whoever waits, and notes when the
/// next attempt is due. A lease that somebody else holds by now is not an error: the task is in good hands.
pub(crate) async fn settle(shared: &Shared, claimed: &Claimed, settlement: Settlement) -> Result<(), Error> {
    loop {
        match shared.store.settle(vec![settlement.clone()]).await {
            Ok(settled) => {
                match settled.first() {
                    Some(Settled::Done(status)) => follow_up(shared, claimed, *status, &settlement),
                    Some(Settled::LeaseLost) | None => {
                        tracing::warn!(task = %claimed.task.id, lane = %claimed.task.lane, "lease lost before the settle");
                    }
                }
                return Ok(());
            }
            Err(error) if shared.clock.now() < claimed.lease.until => {
                tracing::warn!(task = %claimed.task.id, %error, "settling failed, trying again");
                shared.clock.sleep(RETRY_AFTER).await;
            }
            Err(error) => return Err(error),
        }
    }
}

fn follow_up(shared: &Shared, claimed: &Claimed, status: Status, settlement: &Settlement) {
    let task = &claimed.task;
    if let (Status::Pending, Next::RetryAt { at, .. }) = (status, &settlement.next) {
        shared.lanes.note_due(&task.lane, *at);
    }
    if status.is_dead_letter() {
        shared.count_dead_letter();
        // The alert of rule R-8: whoever watches the log for this event learns of every dead letter.
        tracing::error!(
            alert = "dead-letter",
            correlation_id = %task.id,
            tenant = %task.lane.tenant,
            dependency = %task.lane.dependency,
            status = status.as_str(),
            reason = reason(&settlement.next).map(Reason::as_str),
            attempt = settlement.attempt.as_ref().map(|attempt| attempt.number),
            max_attempts = task.max_attempts,
            idempotency_key = %task.idempotency_key,
            "dead letter"
        );
    }
    if status.is_ended() {
        shared.waiters.ended(task.id);
    }
}

fn reason(next: &Next) -> Option<Reason> {
    match next {
        Next::End { reason, .. } => *reason,
        Next::RetryAt { .. } => None,
    }
}
