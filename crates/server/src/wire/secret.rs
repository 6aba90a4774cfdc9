//! Masks secrets: the values of headers and of URL parameters with secret names, and the user and password in a URL.
//! They are stored and sent as given, and never shown.
//!
//! A name is secret if a part of it is in [`PARTS`], if a word of it is in [`WORDS`], or if it is a parameter that is
//! in
//! [`PARAMETERS`]; case does not matter. [`Secrets::and`] adds parts. When in doubt a value is
//! masked.

use std::borrow::Cow;

use crate::percent;

/// Replaces a secret.
pub const MASK: &str = "***";

/// Parts of names that make the whole name secret.
pub(crate) const PARTS: [&str; 18] = [
    "assertion",
    "auth",
    "bearer",
    "cookie",
    "credential",
    "csrf",
    "dpop",
    "hmac",
    "jwt",
    "key",
    "pass",
    "pwd",
    "secret",
    "session",
    "signature",
    "token",
    "totp",
    "xsrf",
];
/// Words that make a name secret as a whole word: `X-Pin` and `userPin`, but not `Shipping`.
pub(crate) const WORDS: [&str; 7] = ["mac", "otp", "pin", "sas", "sid", "sig", "ticket"];
/// Whole names of URL parameters.
pub(crate) const PARAMETERS: [&str; 1] = ["code"];
/// Names that are not secret although they contain such a part.
const HARMLESS: [&str; 2] = ["author", "www-authenticate"];

/// Where the value of a parameter in a URL ends, also if the URL stands in a text.
const VALUE_ENDS: [char; 7] = ['&', '#', ' ', '\t', '"', '<', '>'];

/// The letters that the names in [`PARTS`] begin with, one bit each.
const FIRST_LETTERS: u32 = {
    let (mut letters, mut at) = (0, 0);
    while at < PARTS.len() {
        letters |= bit(PARTS[at].as_bytes()[0]);
        at += 1;
    }
    letters
};

/// Decides which names are secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    more: Vec<String>,
}

impl Secrets {
    /// The names that are always secret, and those that contain one of these parts.
    pub fn and(parts: impl IntoIterator<Item = String>) -> Self {
        Secrets { more: parts.into_iter().collect() }
    }

    /// Whether the header or parameter `name` carries a secret.
    pub fn is_secret(&self, name: &str) -> bool {
        if self.more.iter().any(|part| contains(name, part)) {
            return true;
        }
        let is_harmless = HARMLESS.iter().any(|harmless| name.eq_ignore_ascii_case(harmless));
        !is_harmless && (has_part(name) || has_word(name))
    }

    /// A URL, or a text with URLs in it, without the user and password and without the values of secret parameters.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        // Most texts have nothing to mask, and every answer about a task has some.
        if !text.bytes().any(|byte| matches!(byte, b'@' | b'?' | b'&' | b';' | b'#')) {
            return Cow::Borrowed(text);
        }
        match mask_users(text) {
            Cow::Borrowed(text) => self.mask_parameters(text),
            Cow::Owned(text) => Cow::Owned(self.mask_parameters(&text).into_owned()),
        }
    }

    /// `?name=value`, `&name=value`, `;name=value` and `#name=value`.
    fn mask_parameters<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(['?', '&', ';', '#']).map(|at| at + 1) {
            let name = rest[start..].trim_start();
            let length = name.find(['=', '?', '&', ';', '#', '/', ' ', '"', '<', '>']).unwrap_or(name.len());
            let end = rest.len() - name.len() + length;
            let is_parameter = rest[end..].starts_with('=');
            let hidden = is_parameter && self.is_secret_parameter(&name[..length]);
            let upto = if is_parameter { end + 1 } else { end };
            shown.push_str(&rest[..upto]);
            rest = &rest[upto..];
            if hidden {
                shown.push_str(MASK);
                rest = &rest[rest.find(VALUE_ENDS).unwrap_or(rest.len())..];
            }
        }
        if shown.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(shown + rest) }
    }

    fn is_secret_parameter(&self, name: &str) -> bool {
        let decoded = match name.contains(['%', '+']) {
            true => percent::decode(name, true).map(Cow::Owned),
            false => Some(Cow::Borrowed(name)),
        };
        // A name that cannot be decoded is treated as secret.
        let Some(name) = decoded else { return true };
        self.is_secret(&name) || PARAMETERS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
    }
}

/// The bit of a letter, in either case; none if it is no letter.
const fn bit(letter: u8) -> u32 {
    match letter.to_ascii_lowercase() {
        letter @ b'a'..=b'z' => 1 << (letter - b'a'),
        _ => 0,
    }
}

/// Whether a part of `name` is in [`PARTS`]. Every answer about a task asks this of each header.
fn has_part(name: &str) -> bool {
    let bytes = name.as_bytes();
    let begins_with = |at: usize, part: &str| {
        let start = bytes.get(at..at + part.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(part.as_bytes()))
    };
    bytes.iter().enumerate().filter(|(_, letter)| bit(**letter) & FIRST_LETTERS != 0).any(|(at, letter)| {
        let first = letter.to_ascii_lowercase();
        PARTS.iter().any(|part| part.as_bytes()[0] == first && begins_with(at, part))
    })
}

fn contains(name: &str, part: &str) -> bool {
    name.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// Whether a word of `name` is in [`WORDS`]. Words end at what is no letter, and where a capital follows a small
/// letter.
fn has_word(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut start = 0;
    for at in 0..=bytes.len() {
        let ends = bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphabetic());
        let turns =
            at > start && at < bytes.len() && bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
        if ends || turns {
            if WORDS.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(&bytes[start..at])) {
                return true;
            }
            start = if ends { at + 1 } else { at };
        }
    }
    false
}

/// A text with the user and password of every URL in it hidden. A user alone may be a token, and is hidden too.
fn mask_users(text: &str) -> Cow<'_, str> {
    if !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("//").map(|at| at + 2) {
        let end = rest[start..].find(['/', '?', '#', ' ', '\t', '"', '<', '>']).map_or(rest.len(), |at| start + at);
        match rest[start..end].rfind('@') {
            Some(at) => {
                shown.push_str(&rest[..start]);
                shown.push_str(MASK);
                rest = &rest[start + at..];
            }
            None => {
                shown.push_str(&rest[..end]);
                rest = &rest[end..];
            }
        }
    }
    if shown.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(shown + rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_carry_secrets_are_known_in_any_case() {
        let secrets = Secrets::default();
        for name in [
            "Authorization",
            "COOKIE",
            "set-cookie",
            "X-Api-Key",
            "x-goog-apikey",
            "X-Hub-Signature-256",
            "X-Auth-Token",
            "client_secret",
            "x-password",
            "Aws-Credentials",
            "Proxy-Authorization",
            "X-Access-Key",
            "X-JWT",
            "X-Passphrase",
            "X-Session-Id",
            "Bearer",
            "X-Auth",
            "X-Subscription-Key",
            "DPoP",
            "X-Otp",
            "X-OTP-Code",
            "otp2",
            "X-Pin",
            "userPin",
            "X-Csrf-Token",
            "X-XSRF",
            "X-Hmac",
            "X-Hmac-Sha256",
            "sig",
            "X-Sig",
        ] {
            assert!(secrets.is_secret(name), "{name}");
        }
        for name in [
            "content-type",
            "accept",
            "x-request-id",
            "author",
            "etag",
            "retry-after",
            "date",
            "",
            "X-Shipping",
            "Ping",
            "X-Pinned",
            "x-sigma",
            "Side",
            "Machine",
        ] {
            assert!(!secrets.is_secret(name), "{name}");
        }
    }

    #[test]
    fn every_part_is_found_wherever_it_stands_and_in_any_case() {
        let around = |part: &str| {
            let shorter = part[..part.len() - 1].to_owned();
            [format!("X-{part}"), format!("my{part}s"), part.to_uppercase(), part.to_owned(), shorter]
        };
        let others = ["", "-", "\u{e9}key", "content-type", "accept", "x-request-id"].map(str::to_owned);
        for name in PARTS.iter().flat_map(|part| around(part)).chain(others) {
            assert_eq!(has_part(&name), PARTS.iter().any(|part| contains(&name, part)), "{name}");
        }
    }

    #[test]
    fn names_can_be_added() {
        let secrets = Secrets::and(["badge".to_owned()]);
        assert!(secrets.is_secret("X-Badge-Number") && secrets.is_secret("X-Api-Key"));
        assert!(!Secrets::default().is_secret("X-Badge-Number"));
        assert_eq!(secrets.mask("https://host/?badge=7&b=1"), "https://host/?badge=***&b=1");
    }

    #[test]
    fn users_passwords_and_secret_parameters_of_urls_are_hidden() {
        for (text, shown) in [
            ("https://user:pa:ss@host/a?b=c@d", "https://***@host/a?b=c@d"),
            ("https://token@host:8080", "https://***@host:8080"),
            ("https://token:@host:8080", "https://***@host:8080"),
            ("https://a@b@host/", "https://***@host/"),
            ("//user:pw@host/", "//***@host/"),
            ("https://host/@x:y@z", "https://host/@x:y@z"),
            ("https://host?a@b", "https://host?a@b"),
            ("https://host/", "https://host/"),
            ("https://host/?token=a,b;c=d&x=1", "https://host/?token=***&x=1"),
            ("https://host/?x=1&access_token=a==", "https://host/?x=1&access_token=***"),
            ("https://host/?x=1;api_key=a", "https://host/?x=1;api_key=***"),
            ("https://host/?api%5Fk%65y=a&y=2", "https://host/?api%5Fk%65y=***&y=2"),
            ("https://host/?%zz=a&y=2", "https://host/?%zz=***&y=2"),
            ("https://host/?X-Amz-Signature=a&sig=b&code=c", "https://host/?X-Amz-Signature=***&sig=***&code=***"),
            ("https://host/;jsessionid=a?b=c", "https://host/;jsessionid=***"),
            ("/back#access_token=a&state=b", "/back#access_token=***&state=b"),
            ("https://host/?zipcode=1&page=2&empty=&flag", "https://host/?zipcode=1&page=2&empty=&flag"),
            (
                "<https://u:p@a/?key=1>; rel=next, <http://u@b/?x=1>; rel=last",
                "<https://***@a/?key=***>; rel=next, <http://***@b/?x=1>; rel=last",
            ),
            ("0; url=https://a/?password=b", "0; url=https://a/?password=***"),
            ("text/html; charset=utf-8", "text/html; charset=utf-8"),
            ("", ""),
        ] {
            assert_eq!(Secrets::default().mask(text), shown, "{text}");
        }
    }
}
