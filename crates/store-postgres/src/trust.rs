//! The trusted certificate authorities for TLS. Whatever the address asks for, a certificate is verified in full,
//! including its name: `verify-full`.
//!
//! `sslrootcert` and the stricter values of `sslmode` mean the same as in PostgreSQL's own programs. The driver
//! supports neither, so they are removed from the address before the driver parses it.

use std::path::{Path, PathBuf};

use redrive_dial::{Authorities, AuthorityError as Error};

use crate::connect::ConnectError;

/// The value of `sslrootcert` for the system's authorities.
const SYSTEM: &str = "system";

/// The TLS options of an address that the driver does not support.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The address without these options.
    pub(crate) address: String,
    /// Whether `sslmode` is `verify-ca` or `verify-full`: no connection is made without TLS.
    pub(crate) verifies: bool,
    /// `sslrootcert`: a file whose authorities are trusted instead of the system's.
    pub(crate) root_certificates: Option<PathBuf>,
}

impl Wanted {
    pub(crate) fn read(address: &str) -> Result<Self, ConnectError> {
        let mut wanted = Wanted::default();
        // A URL has its options behind the first question mark. Any other address is a list of pairs.
        let (place, options, between) = match address.split_once("://") {
            Some(_) => match address.split_once('?') {
                Some((place, options)) => (Some(place), options, '&'),
                None => return Ok(Wanted { address: address.to_owned(), ..wanted }),
            },
            None => (None, address, ' '),
        };
        let mut kept = Vec::new();
        for option in options.split(between) {
            match option.split_once('=') {
                Some(("sslrootcert", file)) => wanted.root_certificates = Some(PathBuf::from(decoded(file)?)),
                Some(("sslmode", "verify-ca" | "verify-full")) => wanted.verifies = true,
                Some(("sslmode", mode)) if !["disable", "prefer", "require"].contains(&mode) => {
                    let modes = ": sslmode must be disable, prefer, require, verify-ca or verify-full";
                    return Err(ConnectError::Address(modes.to_owned()));
                }
                _ => kept.push(option),
            }
        }
        let kept = kept.join(&between.to_string());
        wanted.address = place.map_or(kept.clone(), |place| format!("{place}?{kept}"));
        Ok(wanted)
    }
}

/// Decodes a percent-encoded value of a URL.
fn decoded(value: &str) -> Result<String, ConnectError> {
    let wrong = || ConnectError::Address(": sslrootcert is not percent-encoded as it should be".to_owned());
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or_else(wrong);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// The trusted authorities: those of `instead`, or else the system's, and those of `extra`.
pub(crate) fn authorities(instead: Option<&Path>, extra: &[PathBuf]) -> Result<Authorities, Error> {
    let first = match instead.filter(|path| path.as_os_str() != SYSTEM) {
        Some(path) => Authorities::none().and(&[path.to_owned()])?,
        None => Authorities::of_the_system(),
    };
    first.and(extra)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_does_not_know_is_taken_out_of_the_address() {
        // address, the rest of it, whether it verifies, the file
        let cases = [
            ("postgres://a@b/c", "postgres://a@b/c", false, None),
            ("postgres://a@b/c?sslmode=require", "postgres://a@b/c?sslmode=require", false, None),
            ("postgres://a@b/c?sslmode=verify-full&x=y", "postgres://a@b/c?x=y", true, None),
            (
                "postgres://a@b/c?x=y&sslrootcert=%2Fetc%2Fa%20b.pem",
                "postgres://a@b/c?x=y",
                false,
                Some("/etc/a b.pem"),
            ),
            ("host=b sslmode=verify-ca user=a sslrootcert=ca.pem", "host=b user=a", true, Some("ca.pem")),
        ];
        for (address, left, verifies, file) in cases {
            let wanted = Wanted { address: left.to_owned(), verifies, root_certificates: file.map(PathBuf::from) };
            assert_eq!(Wanted::read(address).unwrap(), wanted, "{address}");
        }
    }

    #[test]
    fn a_mode_that_does_not_exist_is_told_with_those_that_do() {
        let told = Wanted::read("postgres://a@b/c?sslmode=allow").unwrap_err().to_string();
        assert!(told.contains("must be disable, prefer, require, verify-ca or verify-full"), "{told}");
    }
}
