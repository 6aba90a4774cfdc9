//! The `Idempotency-Key` header: bare, or a quoted structured-field string. Both have the same value.

use http::HeaderMap;
use http::header::HeaderName;

use super::header_list;
use super::problem::Refusal;

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const NAME: &str = "Idempotency-Key";

/// The key that came as a header, if one did.
pub(crate) fn of(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let mut key = None;
    for value in headers.get_all(IDEMPOTENCY_KEY) {
        let text = value.to_str().map_err(|_| Refusal::parameter(NAME, "must be visible ASCII"))?;
        let text = text.trim_matches([' ', '\t']);
        let value = match text.starts_with('"') {
            true => header_list::unquote(text).ok_or_else(|| Refusal::parameter(NAME, "must end with a quote"))?,
            false => text.to_owned(),
        };
        if key.as_ref().is_some_and(|other| *other != value) {
            return Err(Refusal::parameter(NAME, "must not be given twice with different values"));
        }
        key = Some(value);
    }
    Ok(key)
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
            (&["abc", "\"abc\""], Ok(Some("abc"))),
            (&["abc", "abd"], Err(())),
            (&["\"abc"], Err(())),
            (&["\"abc\";a=1"], Err(())),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static(value));
            }
            let found = of(&headers);
            assert_eq!(found.as_ref().map(Option::as_deref).map_err(|_| ()), expected, "{values:?}");
        }
    }
}
