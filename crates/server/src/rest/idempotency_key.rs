//! The `Idempotency-Key` header: bare, or a quoted structured-field string. Both have the same value.
//!
//! Not here: the rules of the value (`intake::key`).

use http::HeaderMap;
use http::header::HeaderName;

use super::header_list;
use crate::intake::key::{HEADER, invalid};
use crate::operation_error::OperationError;

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The key that came as a header, if one did.
pub(crate) fn of(headers: &HeaderMap) -> Result<Option<String>, OperationError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(invalid(HEADER, "must be given only once"));
    }
    let text = value.to_str().map_err(|_| invalid(HEADER, "must be visible ASCII characters"))?;
    let text = text.trim_matches([' ', '\t']);
    match text.starts_with('"') {
        true => header_list::unquote(text).map(Some).ok_or_else(|| {
            invalid(
                HEADER,
                "must be one string that ends with a quote, and a quote or backslash within has a backslash before it",
            )
        }),
        false => Ok(Some(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_key_is_bare_or_quoted_and_given_once() {
        for (values, expected) in [
            (&[][..], Ok(None)),
            (&["abc"], Ok(Some("abc"))),
            (&["\"abc\""], Ok(Some("abc"))),
            (&["\"a\\\"c\""], Ok(Some("a\"c"))),
            (&["a\"c"], Ok(Some("a\"c"))),
            (&[""], Ok(Some(""))),
            (&["abc", "\"abc\""], Err(())),
            (&["abc", "abc"], Err(())),
            (&["abc", "abd"], Err(())),
            (&["\"abc"], Err(())),
            (&["\"abc\";a=1"], Err(())),
            (&["na\u{ef}ve"], Err(())),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            let found = of(&headers);
            assert_eq!(found.as_ref().map(Option::as_deref).map_err(|_| ()), expected, "{values:?}");
        }
    }
}
