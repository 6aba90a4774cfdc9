//! The method to send: any token, as given.

use super::faults::Faults;

const FIELD: &str = "method";
const LONGEST: usize = 64;

/// The method that was given, or `POST`.
pub(crate) fn check<'a>(given: Option<&'a str>, faults: &mut Faults) -> &'a str {
    let method = given.unwrap_or("POST");
    if method.is_empty() || !method.bytes().all(is_token) {
        faults.add(FIELD, "must be a method such as POST: letters, digits and !#$%&'*+-.^_`|~");
    } else if method.len() > LONGEST {
        faults.add(FIELD, format!("must be at most {LONGEST} characters, got {}", method.len()));
    } else if method == "CONNECT" {
        faults.add(FIELD, "must not be CONNECT: it opens a tunnel and delivers nothing");
    }
    method
}

/// Whether a byte may stand in a token (RFC 9110, section 5.6.2): a method or a header's name.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_token_but_connect_is_a_method() {
        for (given, faulty) in [
            (None, false),
            (Some("GET"), false),
            (Some("M-SEARCH"), false),
            (Some("purge"), false),
            (Some(""), true),
            (Some("GE T"), true),
            (Some("GÉT"), true),
            (Some("CONNECT"), true),
        ] {
            let mut faults = Faults::default();
            assert_eq!(check(given, &mut faults), given.unwrap_or("POST"));
            assert_eq!(!faults.is_empty(), faulty, "{given:?}");
        }
    }
}
