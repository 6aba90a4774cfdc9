//! Words in several spellings: `retry_metadata`, `Retry-Metadata` and `retryMetadata` are one word.

/// Makes a closed vocabulary: an enum that is read from any spelling of its words, the first of which is its name. What
/// is none of them is refused, with all names.
macro_rules! vocabulary {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $first:literal $(| $other:literal)*;)+ }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            const NAMES: &[&str] = &[$($first),+];

            /// Its name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $first,)+
                }
            }

            fn read(text: &str) -> Option<Self> {
                let plain = $crate::rules::word::plain(text);
                let is = |word: &str| $crate::rules::word::plain(word) == plain;
                $(if is($first) $(|| is($other))* {
                    return Some($name::$variant);
                })+
                None
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $name::read(&text).ok_or_else(|| serde::de::Error::unknown_variant(&text, Self::NAMES))
            }
        }
    };
}

pub(super) use vocabulary;

/// A word in one spelling: letters and digits only, all small.
pub(super) fn plain(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The parts of a name, all small: `http.request.bodySize` is http, request, body, size; `TLSCertificate` is tls,
/// certificate.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut part = String::new();
    let chars: Vec<char> = name.chars().collect();
    for (at, c) in chars.iter().copied().enumerate() {
        if !c.is_alphanumeric() {
            parts.extend((!part.is_empty()).then(|| std::mem::take(&mut part)));
            continue;
        }
        let before_small = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        let after_small = at > 0 && (chars[at - 1].is_lowercase() || chars[at - 1].is_ascii_digit());
        let begins = c.is_uppercase() && !part.is_empty() && (after_small || before_small);
        if begins {
            parts.push(std::mem::take(&mut part));
        }
        part.extend(c.to_lowercase());
    }
    parts.extend((!part.is_empty()).then_some(part));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_parts_however_it_is_written() {
        for (name, expected) in [
            ("http.request.bodySize", vec!["http", "request", "body", "size"]),
            ("TLSCertificateError", vec!["tls", "certificate", "error"]),
            ("access_token", vec!["access", "token"]),
            ("x-api-key", vec!["x", "api", "key"]),
            ("INVALID_ARGUMENT", vec!["invalid", "argument"]),
            ("requestID", vec!["request", "id"]),
            ("sha256Sum", vec!["sha256", "sum"]),
            ("", vec![]),
            ("--", vec![]),
        ] {
            assert_eq!(parts(name), expected, "{name}");
        }
    }
}
