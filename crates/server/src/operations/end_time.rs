//! The end of something that a caller sets for a time.

use std::time::Duration;

use redrive_core::Timestamp;

use crate::operation_error::OperationError;

/// The longest time that something may be set for.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// The end that a document gives with `forMs` or `untilMs`; `None` if it gives neither.
pub(super) fn check(
    for_ms: Option<u64>,
    until_ms: Option<u64>,
    now: Timestamp,
) -> Result<Option<Timestamp>, OperationError> {
    let latest = now.after(LONGEST);
    match (until_ms.map(Timestamp::from_millis), for_ms) {
        (Some(_), Some(_)) => Err(OperationError::invalid("forMs", "must not be given together with untilMs")),
        (Some(until), None) if until <= now => Err(OperationError::invalid("untilMs", "must be in the future")),
        (Some(until), None) if until > latest => {
            Err(OperationError::invalid("untilMs", "must be at most 30 days ahead"))
        }
        (Some(until), None) => Ok(Some(until)),
        (None, Some(millis)) if !(1..=LONGEST.as_millis()).contains(&u128::from(millis)) => {
            Err(OperationError::invalid("forMs", format!("must be from 1 to {} (30 days)", LONGEST.as_millis())))
        }
        (None, for_ms) => Ok(for_ms.map(|millis| now.after(Duration::from_millis(millis)))),
    }
}
