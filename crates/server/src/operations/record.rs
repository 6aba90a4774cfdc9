//! What the operations on idempotency records and events have in common.

use redrive_core::idempotency::{Change, Changed, Epoch, ExecutionId, Owner, Previous, Record, RecordKey, Reserved};
use redrive_core::{IdempotencyKey, OperationName, Timestamp};
use redrive_engine::bodies::BodyError;
use redrive_store::{Error, RecordChanged, Reservation};

use super::submit_task::missing_answer;
use crate::app::App;
use crate::caller::Caller;
use crate::intake::{self, reservation};
use crate::operation_error::OperationError;

/// How often a large body is stored if it is deleted again before the record refers to it.
const KEEP_TRIES: usize = 2;

/// A reservation that was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedRecord {
    /// The execution that owns the record.
    pub execution: ExecutionId,
    /// Its fencing number.
    pub epoch: Epoch,
    /// When another execution may take over.
    pub lease_until: Timestamp,
    /// The execution before it, if its outcome is unknown.
    pub previous: Option<Previous>,
}

/// The answer to a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReservedOutcome {
    /// The caller executes the operation.
    Granted(GrantedRecord),
    /// The operation has ended: its result.
    Ended(Box<Record>),
}

/// The key of a record that callers may change.
pub(super) fn key(
    caller: &Caller,
    operation: OperationName,
    key: &IdempotencyKey,
) -> Result<RecordKey, OperationError> {
    reservation::key(&caller.tenant, operation, key)
}

/// Refuses what depends on leases and expiry while the time is uncertain: a lease would be set wrong, or a record that exists
/// would count as expired.
pub(super) fn check_time(app: &App) -> Result<(), OperationError> {
    match app.engine.clock_state().is_certain {
        true => Ok(()),
        false => Err(OperationError::TimeUncertain),
    }
}

/// Asks the store to decide reservations in one commit.
async fn reserve(app: &App, reservations: Vec<Reservation>) -> Result<Vec<Result<Reserved, Error>>, OperationError> {
    let advice: Vec<&str> = reservations.iter().map(advice).collect();
    let answers = app.engine.store().records().reserve(reservations, app.engine.now()).await;
    let answers = answers.map_err(|error| in_doubt(error, advice.first().copied().unwrap_or_default()))?;
    // A store may report a lost commit for the whole or for each reservation of it.
    let each = answers.into_iter().zip(advice);
    Ok(each.map(|(answer, advice)| answer.map_err(|error| in_doubt(error, advice))).collect())
}

/// What a caller can do when it does not know whether its reservation was stored.
fn advice(reservation: &Reservation) -> &'static str {
    match reservation.ask.is_complete {
        true => {
            "repeating the call with the same executionId is safe, without one the event may be answered as a duplicate \
             although it was not processed"
        }
        false => "repeating the call with the same executionId is safe, otherwise its lease has to end first",
    }
}

/// Decides reservations that were checked, in one commit. The results come in their order, those that were refused
/// included.
pub(super) async fn reserve_each(
    app: &App,
    checked: Vec<Result<Reservation, OperationError>>,
) -> Result<Vec<Result<ReservedOutcome, OperationError>>, OperationError> {
    let reservations: Vec<Reservation> = checked.iter().flatten().cloned().collect();
    let mut answers = match reservations.is_empty() {
        true => Vec::new(),
        false => reserve(app, reservations).await?,
    }
    .into_iter();
    let mut results = Vec::with_capacity(checked.len());
    for item in checked {
        results.push(match item {
            Err(failure) => Err(failure),
            Ok(reservation) => match answers.next().ok_or_else(missing_answer)? {
                Ok(answer) => outcome(app, &reservation, answer),
                Err(error) => Err(error.into()),
            },
        });
    }
    Ok(results)
}

/// Decides one reservation. The answer is not counted yet.
pub(super) async fn reserve_one(app: &App, reservation: &Reservation) -> Result<Reserved, OperationError> {
    let answers = reserve(app, vec![reservation.clone()]).await?;
    Ok(answers.into_iter().next().ok_or_else(missing_answer)??)
}

/// An error of the store during a commit, with advice for the caller: the commit may have been made.
fn in_doubt(error: Error, advice: &str) -> Error {
    match error {
        Error::Unavailable(why) => {
            Error::Unavailable(format!("{why}; the record may have been changed all the same: {advice}"))
        }
        other => other,
    }
}

/// The result of a final answer to a reservation, which is counted.
pub(super) fn outcome(
    app: &App,
    reservation: &Reservation,
    answer: Reserved,
) -> Result<ReservedOutcome, OperationError> {
    app.totals.reserved(&reservation.key.operation, &answer);
    match answer {
        Reserved::Granted { epoch, lease_until, previous } => {
            let execution = reservation.ask.execution;
            Ok(ReservedOutcome::Granted(GrantedRecord { execution, epoch, lease_until, previous }))
        }
        Reserved::Ended(record) => Ok(ReservedOutcome::Ended(record)),
        Reserved::InProgress { lease_until, .. } => Err(OperationError::RecordInProgress {
            key: reservation.key.clone(),
            lease_until,
            retry_in: lease_until.since(app.engine.now()),
        }),
        Reserved::OtherRequest => Err(OperationError::RecordKeyReused),
    }
}

/// Makes a change by the owner of a record, and wakes the callers that wait for it. A large body in the change is stored
/// first.
pub(super) async fn change(app: &App, key: &RecordKey, owner: Owner, change: Change) -> Result<Record, OperationError> {
    check_time(app)?;
    for _ in 0..KEEP_TRIES {
        let mut change = change.clone();
        store_body(app, key, &mut change).await?;
        match decide(app, key, owner, change).await? {
            RecordChanged::Decided(Changed::Done(record)) => return Ok(*record),
            RecordChanged::Decided(Changed::Fenced) => return Err(OperationError::Fenced),
            RecordChanged::Decided(Changed::AlreadyEnded(state)) => return Err(OperationError::RecordEnded(state)),
            RecordChanged::Decided(Changed::Absent) => return Err(no_such_record(key)),
            RecordChanged::BodyGone => {}
        }
    }
    let why = "the body of the response was deleted again before the record referred to it; nothing was changed";
    Err(OperationError::Bodies(BodyError::Unavailable(why.into())))
}

async fn store_body(app: &App, key: &RecordKey, change: &mut Change) -> Result<(), OperationError> {
    let (Change::Complete(completion) | Change::FailFinal(completion)) = change else { return Ok(()) };
    match &mut completion.response {
        Some(response) => intake::store_large_body(app, &key.tenant, &mut response.body).await,
        None => Ok(()),
    }
}

async fn decide(app: &App, key: &RecordKey, owner: Owner, change: Change) -> Result<RecordChanged, OperationError> {
    // A renewed lease ends nothing: those who wait find it when the old one would have ended.
    let _wake = (!matches!(change, Change::Renew(_))).then(|| app.record_waiters.wake_on_drop(key));
    let records = app.engine.store().records();
    let changed = records.change_one(key.clone(), owner, change.clone(), app.engine.now()).await;
    let changed = changed.map_err(|error| in_doubt(error, "repeating the same call is safe"))?;
    app.totals.changed(&change, &changed);
    Ok(changed)
}

/// There is no record with this key.
pub(super) fn no_such_record(key: &RecordKey) -> OperationError {
    OperationError::NoSuchRecord(format!("{}/{}", key.operation, key.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_store_that_is_gone_leaves_a_change_in_doubt() {
        let told = in_doubt(Error::Unavailable("no answer".into()), "do it again").to_string();
        assert!(told.ends_with("no answer; the record may have been changed all the same: do it again"), "{told}");
        assert_eq!(in_doubt(Error::Closed, "x").to_string(), Error::Closed.to_string());
    }
}
