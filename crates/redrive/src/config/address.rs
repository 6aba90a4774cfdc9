//! The address of a server, which may hold a password: what is shown of it never does.

use std::fmt;

/// An address as it was given.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

pub(super) const HIDDEN: &str = "***";

/// What the address of a PostgreSQL looks like.
pub(crate) const POSTGRES: &str = "postgres://user:password@host:5432/database";

/// Whether this is the URL of a PostgreSQL.
pub(super) fn is_postgres(url: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme))
}

impl Address {
    /// An address that is not checked yet.
    pub fn new(text: impl Into<String>) -> Self {
        Address(text.into())
    }

    /// The whole address with its password, to connect with.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Whether it can be the address of a PostgreSQL, a URL or `key=value` pairs; or what would be right.
    pub(crate) fn check_postgres(&self) -> Result<(), String> {
        let Some((_, rest)) = self.0.split_once("://").filter(|_| is_postgres(&self.0)) else {
            let are_pairs = self.0.contains('=') && !self.0.contains("://");
            return if are_pairs { Ok(()) } else { Err(format!("must be {POSTGRES}")) };
        };
        // A question mark in a password comes before the `@`, and begins no options.
        let logged_in = rest.find('@').map_or(0, |at| at + 1);
        let (place, options) = rest[logged_in..].split_once('?').unwrap_or((&rest[logged_in..], ""));
        // The driver would take the rest of the password for a host.
        if place.contains('@') {
            return Err(
                "must have the special characters of its user and password percent-encoded (@ is %40, / is %2F, \
                        : is %3A, % is %25): there are two @ in it"
                    .into(),
            );
        }
        let names_host =
            options.split('&').any(|option| option.starts_with("host=") || option.starts_with("hostaddr="));
        if !names_host && (place.is_empty() || place.starts_with('/')) {
            return Err(format!("must name a host: {POSTGRES}"));
        }
        Ok(())
    }
}

/// Shows the address without its password.
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

/// `scheme://user:password@host`: up to the last `@` wherever it is, because people forget to encode theirs, and the
/// slashes and question marks in it. Better too little is shown than a piece of a password.
fn mask_userinfo(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let Some((info, behind)) = rest.rsplit_once('@') else { return text.to_owned() };
    let Some((user, _)) = info.split_once(':') else { return text.to_owned() };
    format!("{scheme}://{user}:{HIDDEN}@{behind}")
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
            ("postgres://redrive:p@s/s?w@db/redrive", "postgres://redrive:***@db/redrive"),
            ("postgres://redrive:p@ss/w@host", "postgres://redrive:***@host"),
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

    #[test]
    fn an_address_of_a_postgres_names_a_host_and_has_its_password_encoded() {
        for right in [
            "postgres://localhost",
            "postgres://u:p%40ss@a,b:5433/d?target_session_attrs=read-write",
            "postgresql://u:p?w/x@[::1]/d?application_name=a@b",
            "postgres:///d?host=/run/postgresql",
            "postgres://u@/d?x=y&host=/run/postgresql",
            "host=db user=u",
        ] {
            assert_eq!(Address::new(right).check_postgres(), Ok(()), "{right}");
        }
        for (wrong, told) in [
            ("postgres://", "must name a host"),
            ("postgres://u:p@/d", "must name a host"),
            ("postgres:///d", "must name a host"),
            ("postgres://u:p@ss/w@host/d", "percent-encoded (@ is %40"),
            ("postgres://u:p?w@s@host/d", "percent-encoded (@ is %40"),
            ("mysql://x", "must be postgres://user:password@host:5432/database"),
            ("shop", "must be postgres://user:password@host:5432/database"),
        ] {
            let found = Address::new(wrong).check_postgres().unwrap_err();
            assert!(found.contains(told), "{wrong}: {found}");
        }
    }
}
