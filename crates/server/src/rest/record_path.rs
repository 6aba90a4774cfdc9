//! The path of an idempotency record.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use redrive_core::idempotency::{Operation, RecordKey};

/// What stands for itself in a segment of a path (RFC 3986, unreserved).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where the record can be read; `None` for an event, which cannot be read by itself.
pub(crate) fn of(key: &RecordKey) -> Option<String> {
    let Operation::Named(operation) = &key.operation else { return None };
    let escaped = |text| utf8_percent_encode(text, UNRESERVED).to_string();
    Some(format!("/idempotency-records/{}/{}", escaped(operation.as_str()), escaped(key.name.as_str())))
}

#[cfg(test)]
mod tests {
    use redrive_core::{RecordName, TenantId};

    use super::*;

    #[test]
    fn a_key_is_one_segment_of_the_path() {
        let key = |operation: &str, name| RecordKey {
            tenant: TenantId::default_tenant(),
            operation: operation.parse().unwrap(),
            name: RecordName::try_new(name).unwrap(),
        };
        assert_eq!(of(&key("a:b", "c/d?%e")).as_deref(), Some("/idempotency-records/a%3Ab/c%2Fd%3F%25e"));
        assert_eq!(of(&key("inbox/billing", "e1")), None);
    }
}
