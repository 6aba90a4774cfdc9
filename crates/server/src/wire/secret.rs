//! What is never shown: the values of headers that carry secrets, and the password in a URL.

use std::borrow::Cow;

/// Stands in for a secret.
pub const MASK: &str = "***";

/// Parts of names that give a secret away, whatever else the name says. Hiding one header too many does less harm than
/// showing one too many.
const PARTS: [&str; 11] =
    ["auth", "bearer", "cookie", "credential", "jwt", "key", "pass", "secret", "session", "signature", "token"];
/// Names that only look like it.
const HARMLESS: [&str; 2] = ["author", "www-authenticate"];

/// Whether the header `name` carries a secret.
pub fn is_secret(name: &str) -> bool {
    let is_harmless = HARMLESS.iter().any(|harmless| name.eq_ignore_ascii_case(harmless));
    !is_harmless && PARTS.iter().any(|part| contains(name, part))
}

fn contains(name: &str, part: &str) -> bool {
    name.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// `url` with the password before its host hidden. A user without a password may be a token, and is hidden too.
pub fn mask_url(url: &str) -> Cow<'_, str> {
    let Some(start) = url.find("://").map(|at| at + 3) else { return Cow::Borrowed(url) };
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let Some(at) = url[start..end].rfind('@').map(|at| start + at) else { return Cow::Borrowed(url) };
    let masked = match url[start..at].split_once(':') {
        Some((user, _)) => format!("{}{user}:{MASK}{}", &url[..start], &url[at..]),
        None => format!("{}{MASK}{}", &url[..start], &url[at..]),
    };
    Cow::Owned(masked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_carry_secrets_are_known_in_any_case() {
        for name in ["Authorization", "COOKIE", "set-cookie", "X-Api-Key", "x-goog-apikey", "X-Hub-Signature-256"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["X-Auth-Token", "client_secret", "x-password", "Aws-Credentials", "Proxy-Authorization"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["X-Access-Key", "X-JWT", "X-Passphrase", "X-Session-Id", "Bearer", "X-Auth", "X-Subscription-Key"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["content-type", "accept", "x-request-id", "author", "etag", "retry-after", "date", ""] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn the_password_in_a_url_is_hidden() {
        for (url, shown) in [
            ("https://user:pa:ss@host/a?b=c@d", "https://user:***@host/a?b=c@d"),
            ("https://token@host:8080", "https://***@host:8080"),
            ("https://host/@x:y@z", "https://host/@x:y@z"),
            ("https://host?a@b", "https://host?a@b"),
            ("https://host/", "https://host/"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }
}
