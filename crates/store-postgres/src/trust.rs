//! The TLS options of an address, and the trusted certificate authorities. Whatever the address asks for, a certificate
//! is verified in full, including its name: `verify-full`.
//!
//! `sslrootcert` and the stricter values of `sslmode` mean the same as in PostgreSQL's own programs. The driver
//! supports neither, so they are removed from the address before the driver parses it.

use std::path::{Path, PathBuf};

use redrive_dial::Authorities;

use crate::connect::ConnectError;

/// The value of `sslrootcert` for the system's authorities.
const SYSTEM: &str = "system";

/// What can be set about TLS.
const ABOUT_TLS: &str = "TLS is set with sslmode and sslrootcert";

/// Options of PostgreSQL's own programs that Redrive does not have, and what to do instead.
const NOT_SUPPORTED: [(&[&str], &str); 4] = [
    (
        &["sslcert", "sslkey", "sslpassword", "sslcertmode"],
        "Redrive has no client certificates; authenticate the role with a password",
    ),
    (&["sslcrl", "sslcrldir"], "Redrive reads no revocation lists; leave it out"),
    (&["passfile", "service", "servicefile"], "no such file is read; put the password into the address"),
    (
        &[
            "sslcompression",
            "sslsni",
            "requiressl",
            "ssl_min_protocol_version",
            "ssl_max_protocol_version",
            "gssencmode",
            "krbsrvname",
            "gsslib",
            "gssdelegation",
            "require_auth",
            "requirepeer",
            "client_encoding",
            "fallback_application_name",
            "replication",
        ],
        "leave it out",
    ),
];

/// `sslmode`: whether TLS is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// No TLS.
    Disable,
    /// TLS if the server offers it.
    #[default]
    Prefer,
    /// TLS, or the connection fails.
    Require,
    /// The same as `Require`.
    VerifyCa,
    /// The same as `Require`.
    VerifyFull,
}

impl Mode {
    const ALL: [Mode; 5] = [Mode::Disable, Mode::Prefer, Mode::Require, Mode::VerifyCa, Mode::VerifyFull];

    fn parse(text: &str) -> Result<Self, ConnectError> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| {
            ConnectError::Option("sslmode must be disable, prefer, require, verify-ca or verify-full".to_owned())
        })
    }

    /// The mode as an address has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Mode::Disable => "disable",
            Mode::Prefer => "prefer",
            Mode::Require => "require",
            Mode::VerifyCa => "verify-ca",
            Mode::VerifyFull => "verify-full",
        }
    }
}

/// The TLS options of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    /// `sslmode`.
    pub(crate) mode: Mode,
    /// `sslrootcert`: a file whose authorities are trusted instead of the system's.
    pub(crate) root_certificates: Option<PathBuf>,
}

impl TlsOptions {
    /// Takes the options out of an address; returns the rest of it.
    pub(crate) fn take_from(address: &str) -> Result<(Self, String), ConnectError> {
        // A URL has its options behind the first question mark after the password. Any other address is a list of pairs.
        let (place, options, between) = match address.split_once("://") {
            Some(_) => {
                let logged_in = address.find('@').unwrap_or_default();
                match address[logged_in..].find('?') {
                    Some(at) => {
                        let (place, options) = address.split_at(logged_in + at);
                        (Some(place), &options[1..], '&')
                    }
                    None => return Ok((TlsOptions::default(), address.to_owned())),
                }
            }
            None => (None, address, ' '),
        };
        let mut found = TlsOptions::default();
        let mut kept = Vec::new();
        for option in options.split(between) {
            match option.split_once('=') {
                Some(("sslrootcert", file)) => found.root_certificates = Some(PathBuf::from(decoded(file)?)),
                Some(("sslmode", mode)) => found.mode = Mode::parse(mode)?,
                Some((name, _)) => {
                    check_support(name)?;
                    kept.push(option);
                }
                None => kept.push(option),
            }
        }
        let kept = kept.join(&between.to_string());
        Ok((found, place.map_or(kept.clone(), |place| format!("{place}?{kept}"))))
    }

    /// The trusted authorities: those of `sslrootcert`, or else the system's, and those of `extra`.
    pub(crate) fn authorities(&self, extra: &[PathBuf]) -> Result<Authorities, ConnectError> {
        let first = match &self.root_certificates {
            Some(path) if path != Path::new(SYSTEM) => {
                Authorities::none().and(std::slice::from_ref(path)).map_err(ConnectError::RootCertificates)?
            }
            _ => Authorities::of_the_system(),
        };
        Ok(first.and(extra)?)
    }

    /// The file of `sslrootcert`, if it names one.
    pub(crate) fn root_file(&self) -> Option<&Path> {
        self.root_certificates.as_deref().filter(|path| *path != Path::new(SYSTEM))
    }
}

/// An error for an option that PostgreSQL's programs have and Redrive does not. The driver rejects other unknown names.
fn check_support(name: &str) -> Result<(), ConnectError> {
    let lower = name.to_ascii_lowercase();
    if name != lower && ["sslmode", "sslrootcert"].contains(&lower.as_str()) {
        return Err(ConnectError::Option(format!("the option {name} must be written in lower case: {lower}")));
    }
    let found = NOT_SUPPORTED.iter().find(|(names, _)| names.contains(&name));
    found.map_or(Ok(()), |(_, instead)| {
        Err(ConnectError::Option(format!("the option {name} is not supported: {instead} ({ABOUT_TLS})")))
    })
}

/// Decodes a percent-encoded value of a URL.
fn decoded(value: &str) -> Result<String, ConnectError> {
    let wrong = || ConnectError::Option("sslrootcert must be percent-encoded".to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_does_not_know_is_taken_out_of_the_address() {
        // address, the rest of it, the mode, the file
        let cases = [
            ("postgres://a@b/c", "postgres://a@b/c", Mode::Prefer, None),
            ("postgres://a@b/c?sslmode=require", "postgres://a@b/c?", Mode::Require, None),
            ("postgres://a@b/c?sslmode=verify-full&x=y", "postgres://a@b/c?x=y", Mode::VerifyFull, None),
            (
                "postgres://a@b/c?x=y&sslrootcert=%2Fetc%2Fa%20b.pem",
                "postgres://a@b/c?x=y",
                Mode::Prefer,
                Some("/etc/a b.pem"),
            ),
            ("postgres://a:w?x=y&z@b/c?sslmode=disable", "postgres://a:w?x=y&z@b/c?", Mode::Disable, None),
            ("postgres://a:w?sslmode=no@b/c", "postgres://a:w?sslmode=no@b/c", Mode::Prefer, None),
            ("host=b sslmode=verify-ca user=a sslrootcert=ca.pem", "host=b user=a", Mode::VerifyCa, Some("ca.pem")),
        ];
        for (address, left, mode, file) in cases {
            let options = TlsOptions { mode, root_certificates: file.map(PathBuf::from) };
            assert_eq!(TlsOptions::take_from(address).unwrap(), (options, left.to_owned()), "{address}");
        }
    }

    #[test]
    fn an_option_that_redrive_does_not_have_is_refused_with_what_to_do_instead() {
        for (options, told) in [
            ("sslmode=allow", "sslmode must be disable, prefer, require, verify-ca or verify-full"),
            ("sslmode=verify_full", "sslmode must be disable, prefer, require, verify-ca or verify-full"),
            ("sslmode=", "sslmode must be disable, prefer, require, verify-ca or verify-full"),
            ("SSLMODE=require", "the option SSLMODE must be written in lower case: sslmode"),
            ("sslrootcert=%2", "sslrootcert must be percent-encoded"),
            ("sslmode=require&sslcert=/a", "the option sslcert is not supported: Redrive has no client certificates"),
            ("sslkey=/a", "the option sslkey is not supported: Redrive has no client certificates"),
            ("sslcrl=/a", "the option sslcrl is not supported: Redrive reads no revocation lists"),
            ("passfile=/a", "the option passfile is not supported: no such file is read; put the password"),
            ("gssencmode=disable", "the option gssencmode is not supported: leave it out (TLS is set with sslmode and"),
        ] {
            let refused = TlsOptions::take_from(&format!("postgres://a@b/c?{options}")).unwrap_err().to_string();
            assert!(refused.starts_with(told), "{options}: {refused}");
        }
    }
}
