//! Reserves an idempotency record: decides which of several callers executes the operation.

use std::future::{self, Future};
use std::time::Duration;

use redrive_core::idempotency::{RecordKey, Reserved};
use redrive_core::{IdempotencyKey, OperationName};
use redrive_store::Reservation;

use super::record::{self, ReservedOutcome};
use crate::app::App;
use crate::caller::Caller;
use crate::idempotency::Waiter;
use crate::intake::reservation;
use crate::operation_error::OperationError;
use crate::wire::ReserveInput;

/// How often a record in a store that other processes change is read while callers wait for it.
const POLL_EVERY: Duration = Duration::from_millis(250);

/// Reserves a record. An execution that is under way is a failure.
pub async fn reserve_record(
    app: &App,
    caller: &Caller,
    operation: OperationName,
    key: &IdempotencyKey,
    input: &ReserveInput<'_>,
) -> Result<ReservedOutcome, OperationError> {
    let reservation = check_reservation(app, caller, operation, key, input)?;
    reserve_and_wait(app, reservation, Duration::ZERO, future::pending()).await
}

/// Checks a reservation. What it returns has the hash of the request instead of the request, so that a caller that waits does
/// not hold its document meanwhile.
pub fn check_reservation(
    app: &App,
    caller: &Caller,
    operation: OperationName,
    key: &IdempotencyKey,
    input: &ReserveInput<'_>,
) -> Result<Reservation, OperationError> {
    record::check_time(app)?;
    reservation::check(app, &caller.tenant, operation, key, input)
}

/// Reserves a record. While another execution is under way, it waits: until that one ends or its lease does, and then decides
/// again; at most for `within` or the longest allowed wait, and until `interrupted` ends.
pub async fn reserve_and_wait(
    app: &App,
    reservation: Reservation,
    within: Duration,
    interrupted: impl Future<Output = ()>,
) -> Result<ReservedOutcome, OperationError> {
    let waiter = app.record_waiters.wait_for(&reservation.key);
    let mut time_is_up = app.engine.sleep(within.min(app.limits.longest_wait));
    let mut interrupted = std::pin::pin!(interrupted);
    let answer = loop {
        // Made before the decision: a change after it is not missed.
        let changed = waiter.changed();
        record::check_time(app)?;
        let answer = record::reserve_one(app, &reservation).await?;
        let Reserved::InProgress { lease_until, .. } = answer else { break answer };
        waiter.set_lease_until(lease_until);
        tokio::select! {
            biased;
            () = free(app, &reservation.key, &waiter, changed) => {}
            () = &mut time_is_up => break answer,
            () = &mut interrupted => break answer,
        }
    };
    record::outcome(app, &reservation, answer)
}

/// Ends when the record may be free: it was changed here, its lease is over, or the store says so.
async fn free(app: &App, key: &RecordKey, waiter: &Waiter<'_>, changed: impl Future<Output = ()>) {
    let mut changed = std::pin::pin!(changed);
    let mut polled = std::pin::pin!(poll(app, key, waiter));
    // A caller that polls may find that the lease was renewed.
    while waiter.lease_until() > app.engine.now() {
        tokio::select! {
            biased;
            () = &mut changed => return,
            () = app.engine.sleep(waiter.lease_until().since(app.engine.now())) => {}
            () = &mut polled => return,
        }
    }
}

/// Reads the record again and again, once it is this caller's turn, until it may be free. Does not end if no other process
/// changes the store.
async fn poll(app: &App, key: &RecordKey, waiter: &Waiter<'_>) {
    if app.engine.store().shared().is_none() {
        return future::pending().await;
    }
    let Ok(_turn) = waiter.turn_to_poll().await else { return };
    loop {
        app.engine.sleep(POLL_EVERY).await;
        let now = app.engine.now();
        match app.engine.store().records().read(key.clone(), now).await {
            Ok(Some(record)) if record.is_leased(now) => waiter.set_lease_until(record.lease_until),
            Ok(_) => return waiter.wake_all(),
            // This caller's next decision reports it. The others have the next turn, and do not all call a store that fails.
            Err(_) => return,
        }
    }
}
