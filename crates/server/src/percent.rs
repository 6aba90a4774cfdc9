//! Strict percent-decoding of paths and queries.
//!
//! `percent-encoding` does the decoding. It leaves malformed sequences as they are, and so does `form_urlencoded`; here
//! they are refused, so that a typo in a filter does not silently match nothing.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The decoded text; `None` if a percent sign is not followed by two hexadecimal digits, or if the result is not UTF-8.
/// In a query, `+` is a space.
pub(crate) fn decode(encoded: &str, in_query: bool) -> Option<String> {
    let is_sequence =
        |rest: &str| matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    if !encoded.split('%').skip(1).all(is_sequence) {
        return None;
    }
    let encoded = if in_query { Cow::Owned(encoded.replace('+', " ")) } else { Cow::Borrowed(encoded) };
    percent_decode_str(&encoded).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_what_is_broken_is_refused() {
        for (encoded, in_query, expected) in [
            ("a%20b+c", true, Some("a b c")),
            ("a%20b+c", false, Some("a b+c")),
            ("%C3%a9", true, Some("é")),
            ("", true, Some("")),
            ("%", true, None),
            ("%2", true, None),
            ("%%41", true, None),
            ("%2é", true, None),
            ("%41%", true, None),
            ("%zz", true, None),
            ("%ff", true, None),
        ] {
            assert_eq!(decode(encoded, in_query).as_deref(), expected, "{encoded}");
        }
    }
}
