//! The idempotency key: from the document, from the header, or from both if they are equal.

use redrive_core::IdempotencyKey;

use super::faults::Faults;
use crate::operation_error::OperationError;

/// The header that may carry the key instead of the document.
pub(crate) const HEADER: &str = "Idempotency-Key";

/// The key that was given; `None` if there was none.
pub(crate) fn agree(
    document: Option<&str>,
    beside: Option<&str>,
    faults: &mut Faults,
) -> Result<Option<IdempotencyKey>, OperationError> {
    let (field, key) = match (document, beside) {
        (Some(document), Some(beside)) if document != beside => return Err(OperationError::KeysDiffer),
        (Some(key), _) => ("idempotencyKey", key),
        (None, Some(key)) => (HEADER, key),
        (None, None) => return Ok(None),
    };
    Ok(faults.keep(field, IdempotencyKey::try_new(key)))
}
