//! The TLS options of an address, and the trusted certificate authorities. Whatever the address asks for, a certificate
//! is verified in full, including its name: `verify-full`.
//!
//! `sslrootcert` and the stricter values of `sslmode` mean the same as in PostgreSQL's own programs. The driver
//! supports neither, so they are removed from the address before the driver parses it.

use std::path::{Path, PathBuf};

use redrive_dial::Authorities;
use tokio_postgres::config::SslMode;

use crate::address_options::AddressOptions;
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

    /// The driver's mode. The verification is not up to the driver.
    pub(crate) fn of_driver(self) -> SslMode {
        match self {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
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

/// What [`TakenOptions::take_from`] found in an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TakenOptions {
    mode: Option<Mode>,
    root_certificates: Option<PathBuf>,
}

impl TakenOptions {
    /// Takes the options that the driver does not have out of an address; returns the rest of it.
    pub(crate) fn take_from(address: &str) -> Result<(Self, String), ConnectError> {
        let found = AddressOptions::of(address)?;
        let mut taken = TakenOptions::default();
        let mut kept = Vec::new();
        for option in &found.options {
            match option.name.as_str() {
                "sslrootcert" => taken.root_certificates = Some(PathBuf::from(option.value()?)),
                "sslmode" => taken.mode = Some(Mode::parse(&option.value()?)?),
                name => {
                    check_support(name)?;
                    kept.push(option);
                }
            }
        }
        Ok((taken, found.with(&kept)))
    }

    /// The options of an address in whose rest the driver found this mode, which is its default if it found none.
    pub(crate) fn beside(self, of_driver: SslMode) -> TlsOptions {
        let mode = self.mode.unwrap_or(match of_driver {
            SslMode::Disable => Mode::Disable,
            SslMode::Prefer => Mode::Prefer,
            // The driver may get stricter modes.
            _ => Mode::Require,
        });
        TlsOptions { mode, root_certificates: self.root_certificates }
    }
}

impl TlsOptions {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_does_not_know_is_taken_out_of_the_address() {
        use Mode::*;
        // address, the rest of it, the mode, the file
        let cases = [
            ("postgres://a@b/c", "postgres://a@b/c", None, None),
            ("postgres://a@b/c?", "postgres://a@b/c", None, None),
            ("postgres://a@b/c?sslmode=require", "postgres://a@b/c", Some(Require), None),
            ("postgresql://a@b/c?sslmode=verify-full&x=y", "postgresql://a@b/c?x=y", Some(VerifyFull), None),
            ("postgres://b/c?%73sl%6dode=%72equire&x=%20", "postgres://b/c?x=%20", Some(Require), None),
            ("postgres://b?&sslmode=disable&sslmode=require&", "postgres://b", Some(Require), None),
            ("postgres://a@b/c?x=y&sslrootcert=%2Fa%20b.pem", "postgres://a@b/c?x=y", None, Some("/a b.pem")),
            ("postgres://a@b/c?ssl%72ootcert=a%27b.pem", "postgres://a@b/c", None, Some("a'b.pem")),
            ("postgres://a:w?x=y&z@b/c?sslmode=disable", "postgres://a:w?x=y&z@b/c", Some(Disable), None),
            ("postgres://a:w?sslmode=no@b/c", "postgres://a:w?sslmode=no@b/c", None, None),
            ("", "", None, None),
            ("host=b sslmode=verify-ca user=a sslrootcert=ca.pem", "host=b user=a", Some(VerifyCa), Some("ca.pem")),
            ("host=b sslmode = require", "host=b", Some(Require), None),
            ("\thost\t= b\nsslmode=\nrequire\r\nuser=a\n", "host\t= b user=a", Some(Require), None),
            ("host=b\u{a0}sslmode=require", "host=b", Some(Require), None),
            ("sslmode='require'host=b", "host=b", Some(Require), None),
            (r"sslmode='re\quire' host='b'", "host='b'", Some(Require), None),
            (r"sslmode=re\quire", "", Some(Require), None),
            (r"sslrootcert = '/a b/it\'s \\.pem' user=a", "user=a", None, Some(r"/a b/it's \.pem")),
            (r"sslrootcert=/a\ b.pem", "", None, Some("/a b.pem")),
            // A password that looks like something else.
            ("password=x://y sslmode=require", "password=x://y", Some(Require), None),
            ("password='a sslmode=require' host=b", "password='a sslmode=require' host=b", None, None),
            (r"password=a\ sslmode=no", r"password=a\ sslmode=no", None, None),
            (r"password='\' sslmode=no'", r"password='\' sslmode=no'", None, None),
        ];
        for (address, left, mode, file) in cases {
            let options = TakenOptions { mode, root_certificates: file.map(PathBuf::from) };
            assert_eq!(TakenOptions::take_from(address).unwrap(), (options, left.to_owned()), "{address:?}");
        }
    }

    #[test]
    fn the_mode_that_only_the_driver_found_is_kept() {
        // found here, found by the driver, used
        for (taken, of_driver, used) in [
            (None, SslMode::Disable, Mode::Disable),
            (None, SslMode::Prefer, Mode::Prefer),
            (None, SslMode::Require, Mode::Require),
            (Some(Mode::VerifyFull), SslMode::Prefer, Mode::VerifyFull),
            (Some(Mode::Disable), SslMode::Prefer, Mode::Disable),
        ] {
            let options = TakenOptions { mode: taken, root_certificates: None }.beside(of_driver);
            assert_eq!(options.mode, used, "{taken:?} {of_driver:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_without_showing_what_may_be_a_password() {
        for address in [
            " postgres://a:SECRET@b/c?sslmode=require",
            "POSTGRES://a:SECRET@b/c?sslmode=require",
            "postgres://b/c?sslmode",
            "postgres://b/c?sslmode =require",
            "postgres://b/c?ssl%6zode=require",
            "postgres://b/c?ssl%6",
            "postgres://b/c?%ff=SECRET",
            "postgres://b/c?=SECRET",
            "host=b password=SECRET sslmode",
            "host=b sslmode require",
            "host=b = sslmode=require",
            "host=b password='SECRET sslmode=require",
            r"host=b password='SECRET\' sslmode=require",
            "host=b sslmode=",
        ] {
            let refused = TakenOptions::take_from(address).unwrap_err().to_string();
            assert!(refused.starts_with("the address cannot be read: "), "{address:?}: {refused}");
            assert!(!refused.contains("SECRET"), "{refused}");
        }
    }

    #[test]
    fn an_option_that_redrive_does_not_have_is_refused_with_what_to_do_instead() {
        for (options, told) in [
            ("sslmode=allow", "sslmode must be disable, prefer, require, verify-ca or verify-full"),
            ("sslmode=verify_full", "sslmode must be disable, prefer, require, verify-ca or verify-full"),
            ("sslmode=", "sslmode must be disable, prefer, require, verify-ca or verify-full"),
            ("SSLMODE=require", "the option SSLMODE must be written in lower case: sslmode"),
            ("%53slMode=require", "the option SslMode must be written in lower case: sslmode"),
            ("sslmode=%", "sslmode must be percent-encoded"),
            ("sslrootcert=%2", "sslrootcert must be percent-encoded"),
            ("%73slcert=/a", "the option sslcert is not supported: Redrive has no client certificates"),
            ("sslmode=require&sslcert=/a", "the option sslcert is not supported: Redrive has no client certificates"),
            ("sslkey=/a", "the option sslkey is not supported: Redrive has no client certificates"),
            ("sslcrl=/a", "the option sslcrl is not supported: Redrive reads no revocation lists"),
            ("passfile=/a", "the option passfile is not supported: no such file is read; put the password"),
            ("gssencmode=disable", "the option gssencmode is not supported: leave it out (TLS is set with sslmode and"),
        ] {
            let refused = TakenOptions::take_from(&format!("postgres://a@b/c?{options}")).unwrap_err().to_string();
            assert!(refused.starts_with(told), "{options}: {refused}");
        }
        for pairs in ["host=b\tsslcert=/a", "host=b\nsslcert = /a", "sslcert='/a'host=b"] {
            let refused = TakenOptions::take_from(pairs).unwrap_err().to_string();
            assert!(refused.starts_with("the option sslcert is not supported"), "{pairs:?}: {refused}");
        }
    }
}
