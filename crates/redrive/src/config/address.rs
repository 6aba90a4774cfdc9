//! The address of a server, which may hold a password: what is shown of it never does.

use std::fmt;

/// An address as it was given.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

const HIDDEN: &str = "***";

impl Address {
    /// Takes it as it is.
    pub fn new(text: impl Into<String>) -> Self {
        Address(text.into())
    }

    /// All of it, for whoever connects.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

/// Without its password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", masked(&self.0))
    }
}

/// A text that may be an address, without the password that may be in it.
pub(super) fn masked(text: &str) -> String {
    mask_query(&mask_userinfo(text))
}

/// `scheme://user:password@host`: up to the last `@` before the path, because people forget to encode theirs.
fn mask_userinfo(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
    let Some((user, _)) = authority.rsplit_once('@').and_then(|(info, _)| info.split_once(':')) else {
        return text.to_owned();
    };
    let behind = &rest[authority.rfind('@').unwrap_or(0)..];
    format!("{scheme}://{user}:{HIDDEN}{behind}")
}

/// `password=…` as a parameter, or as one of PostgreSQL's `key=value` pairs.
fn mask_query(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("password=") {
        let value = at + "password=".len();
        shown.push_str(&rest[..value]);
        shown.push_str(HIDDEN);
        rest = &rest[value..];
        let quoted = rest.strip_prefix('\'').and_then(|inner| inner.find('\'')).map(|end| end + 2);
        rest = &rest[quoted.unwrap_or_else(|| rest.find(['&', ' ']).unwrap_or(rest.len()))..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (given, shown) in [
            ("postgres://redrive:s3cret@db:5432/redrive", "postgres://redrive:***@db:5432/redrive"),
            (
                "postgres://redrive:p@ss:w@db/redrive?sslmode=require",
                "postgres://redrive:***@db/redrive?sslmode=require",
            ),
            ("postgres://redrive@db/redrive", "postgres://redrive@db/redrive"),
            ("postgres://db/redrive?user=a&password=b&x=1", "postgres://db/redrive?user=a&password=***&x=1"),
            ("host=db password='a b' user=c", "host=db password=*** user=c"),
            ("redis://:pw@r1:6379/0", "redis://:***@r1:6379/0"),
            ("sqlite", "sqlite"),
        ] {
            assert_eq!(masked(given), shown);
            assert_eq!(Address::new(given).to_string(), shown);
            assert!(!format!("{:?}", Address::new(given)).contains("s3cret"));
        }
    }
}
