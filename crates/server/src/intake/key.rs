//! The idempotency key: from the document, from the header, or from both if they are equal. Its rules are here, whichever
//! way it comes.

use redrive_core::IdempotencyKey;

use crate::operation_error::OperationError;

/// The header that may carry the key instead of the document.
pub(crate) const HEADER: &str = "Idempotency-Key";
/// The field of a submission that carries it.
const FIELD: &str = "idempotencyKey";

/// The key that was given; `None` if there was none.
pub(crate) fn agree(document: Option<&str>, beside: Option<&str>) -> Result<Option<IdempotencyKey>, OperationError> {
    match (document, beside) {
        (Some(document), Some(beside)) if document != beside => Err(OperationError::KeysDiffer),
        (Some(key), _) => check(FIELD, key).map(Some),
        (None, Some(key)) => check(HEADER, key).map(Some),
        (None, None) => Ok(None),
    }
}

/// The key that was given at `field`.
pub(crate) fn check(field: &str, key: &str) -> Result<IdempotencyKey, OperationError> {
    IdempotencyKey::try_new(key).map_err(|rule| invalid(field, rule.to_string()))
}

/// What was given at `field` is not a key, because it breaks this rule.
pub(crate) fn invalid(field: &str, rule: impl Into<String>) -> OperationError {
    OperationError::InvalidKey { field: field.into(), message: rule.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_breaks_a_rule_is_named_with_the_rule() {
        for (document, beside, expected) in [
            (Some(""), None, "idempotencyKey must not be empty"),
            (None, Some(""), "Idempotency-Key must not be empty"),
            (Some("a b"), None, "idempotencyKey must be visible ASCII characters, got ' '"),
            (Some("é"), None, "idempotencyKey must be visible ASCII characters, got 'é'"),
            (None, Some(&*"k".repeat(65)), "Idempotency-Key must be at most 64 characters, got 65"),
            (Some("a"), Some("b"), "the document's idempotencyKey and the Idempotency-Key header differ"),
        ] {
            assert_eq!(agree(document, beside).unwrap_err().to_string(), expected);
        }
        let longest = "k".repeat(64);
        for (document, beside) in [(Some(&*longest), None), (None, Some(&*longest)), (Some("a"), Some("a"))] {
            let key = agree(document, beside).unwrap().unwrap();
            assert_eq!(Some(key.as_str()), document.or(beside));
        }
        assert_eq!(agree(None, None).unwrap(), None);
    }
}
