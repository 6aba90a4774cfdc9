//! Percent-encoding, as paths and queries use it.

/// The text behind `encoded`; `None` if it is not well formed or not UTF-8. In a query, `+` is a space.
pub(crate) fn decode(encoded: &str, in_query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            }
            b'+' if in_query => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
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
            ("%zz", true, None),
            ("%ff", true, None),
        ] {
            assert_eq!(decode(encoded, in_query).as_deref(), expected, "{encoded}");
        }
    }
}
