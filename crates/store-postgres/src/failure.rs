//! Why a server could not be connected to, in words that say what to do about it.
//!
//! The driver's error is reduced to a [`Cause`]; [`explain`] is the decision, without the driver. The advice names the
//! options of the address that it is about: `sslmode` and `sslrootcert`.

use std::fmt;

use rustls::CertificateError;
use tokio_postgres::error::{DbError, SqlState};

use crate::postgres_error::describe_error;
use crate::trust::{Mode, TlsOptions};

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    problem: String,
    advice: Option<String>,
    /// Whether trying again is useless until the address, the server's settings or its roles are changed.
    pub is_lasting: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        self.advice.as_ref().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

/// What decides about the advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The certificate is not signed by a trusted authority.
    UnknownAuthority,
    /// The certificate is one of an authority: typically self-signed.
    AuthorityAsServer,
    /// The certificate is for other names.
    OtherName { expected: String, presented: Vec<String> },
    /// The certificate, or one that signed it, has expired.
    Expired,
    /// The certificate, or one that signed it, is not valid yet.
    NotValidYet,
    /// The certificate cannot be used for another reason.
    BadCertificate(String),
    /// The server does not offer TLS.
    NoTls,
    /// The address has an IP address in `hostaddr` and no name for the certificate.
    NoName,
    /// The server has no TLS version or cipher that Redrive has.
    NoCommonTls(String),
    /// The server demands a client certificate.
    ClientCertificate(String),
    /// TLS failed in another way.
    Handshake(String),
    /// No line of the server's `pg_hba.conf` is for this role, database and address.
    NoEntry(String),
    /// The server demands a password and the address has none.
    NoPassword,
    /// The server demands a way to authenticate that Redrive does not have.
    Authentication(String),
    /// The server did not accept user and password.
    WrongPassword(String),
    /// There is no such database.
    NoDatabase(String),
    /// The role lacks the right to connect.
    NoRight(String),
    /// The server refused the role in another way.
    Refused(String),
    /// Nothing that answers in PostgreSQL's protocol is there.
    OtherProtocol(String),
    /// The server could not be reached.
    Unreachable(String),
    /// Something else.
    Other(String),
}

/// Describes a cause, for an address with these options.
pub(crate) fn explain(cause: &Cause, options: &TlsOptions) -> Failure {
    let mode = options.mode.as_str();
    let lasting = |problem: String, advice: String| Failure { problem, advice: Some(advice), is_lasting: true };
    let passing = |problem: String, advice: String| Failure { problem, advice: Some(advice), is_lasting: false };
    match cause {
        Cause::UnknownAuthority => match options.root_file() {
            Some(file) => lasting(
                format!("the server's certificate is not signed by an authority in {} (sslrootcert)", file.display()),
                "name the file of the authority that signed it, or leave sslrootcert out to trust the system's authorities"
                    .to_owned(),
            ),
            None => lasting(
                "the server's certificate is not signed by a trusted authority".to_owned(),
                "name the PEM file of its authority with sslrootcert=FILE in the address or with --extra-ca FILE, or connect \
                 without TLS with sslmode=disable if the network is trusted"
                    .to_owned(),
            ),
        },
        Cause::AuthorityAsServer => lasting(
            "the server's certificate is that of an authority (CA:TRUE), as a self-signed one often is, and cannot be verified"
                .to_owned(),
            "give the server a certificate with CA:FALSE and its host name as subjectAltName, and name the file of what \
             signed it with sslrootcert=FILE in the address or with --extra-ca FILE; or connect without TLS with sslmode=disable \
             if the network is trusted"
                .to_owned(),
        ),
        Cause::OtherName { expected, presented } => lasting(
            match presented.as_slice() {
                [] => format!("the server's certificate is not for {expected}: it has no name in subjectAltName"),
                names => format!("the server's certificate is not for {expected}, but for {}", names.join(", ")),
            },
            "connect to a name that the certificate has, or give the server a certificate for this one; only \
             sslmode=disable, which is without TLS, does not verify the name"
                .to_owned(),
        ),
        Cause::Expired => passing(
            "the server's certificate, or one that signed it, has expired".to_owned(),
            "renew it at the server, and check this machine's clock".to_owned(),
        ),
        Cause::NotValidYet => passing(
            "the server's certificate, or one that signed it, is not valid yet".to_owned(),
            "check the clocks of this machine and of the one that made the certificate".to_owned(),
        ),
        Cause::BadCertificate(why) => lasting(
            format!("the server's certificate cannot be used: {why}"),
            "give the server another certificate, or connect without TLS with sslmode=disable if the network is trusted"
                .to_owned(),
        ),
        Cause::NoTls => lasting(
            format!("the server does not offer TLS, and sslmode={mode} demands it"),
            "turn TLS on at the server (ssl = on), or set sslmode=prefer or sslmode=disable if the network is trusted"
                .to_owned(),
        ),
        Cause::NoName => lasting(
            "the address has no host name to verify the server's certificate by".to_owned(),
            "set host to the name in the certificate beside hostaddr, or sslmode=disable if the network is trusted".to_owned(),
        ),
        Cause::NoCommonTls(why) => lasting(
            format!("the server and Redrive have no TLS version or cipher in common: {why}"),
            "allow TLS 1.2 or 1.3 at the server (ssl_max_protocol_version, ssl_ciphers), or set sslmode=disable if the \
             network is trusted"
                .to_owned(),
        ),
        Cause::ClientCertificate(told) => lasting(
            told.clone(),
            "Redrive has no client certificates (sslcert and sslkey): let the server's pg_hba.conf authenticate this role with \
             a password"
                .to_owned(),
        ),
        Cause::Handshake(why) => passing(
            format!("the TLS handshake failed: {why}"),
            "check that a PostgreSQL answers at this host and port".to_owned(),
        ),
        Cause::NoEntry(told) => lasting(
            told.clone(),
            match options.mode {
                Mode::Disable => "with sslmode=disable the connection is without TLS: if the server demands TLS, set \
                                  sslmode=verify-full; otherwise its pg_hba.conf must allow this role, database and address"
                    .to_owned(),
                _ => "the server's pg_hba.conf must allow this role, database and address; if it allows only connections \
                      without TLS, set sslmode=disable"
                    .to_owned(),
            },
        ),
        Cause::NoPassword => lasting(
            "the server demands a password, and the address has none".to_owned(),
            "put it into the address, percent-encoded; PGPASSWORD and ~/.pgpass are not read".to_owned(),
        ),
        Cause::Authentication(why) => lasting(
            format!("the server demands a way to authenticate that Redrive does not have: {why}"),
            "let the server's pg_hba.conf authenticate this role with a password (scram-sha-256)".to_owned(),
        ),
        Cause::WrongPassword(told) => lasting(
            told.clone(),
            "check user and password in the address; special characters must be percent-encoded (@ is %40, / is %2F)"
                .to_owned(),
        ),
        Cause::NoDatabase(told) => lasting(told.clone(), "create it, or name another database in the address".to_owned()),
        Cause::NoRight(told) => lasting(told.clone(), "grant the role CONNECT on the database".to_owned()),
        Cause::Refused(told) => Failure { problem: told.clone(), advice: None, is_lasting: true },
        Cause::OtherProtocol(why) => passing(
            format!("the server does not answer as PostgreSQL does: {why}"),
            "check that a PostgreSQL answers at this host and port".to_owned(),
        ),
        Cause::Unreachable(why) => passing(
            format!("could not connect: {why}"),
            "check that PostgreSQL runs, and host and port in the address".to_owned(),
        ),
        Cause::Other(told) => Failure { problem: told.clone(), advice: None, is_lasting: false },
    }
}

impl Cause {
    /// The cause of a driver's error.
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        if let Some(told) = error.as_db_error() {
            return Cause::of_refusal(told, describe_error(error));
        }
        let source = std::error::Error::source(error);
        let why = source.map_or_else(|| error.to_string(), ToString::to_string);
        let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
        let tls = io.and_then(std::io::Error::get_ref).and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(tls) = tls {
            return Cause::of_tls(tls);
        }
        // The driver's kinds are not public, but its texts are part of a pinned version, and each has a test.
        match (error.to_string().split(':').next().unwrap_or_default(), why.as_str()) {
            (_, "server does not support TLS") => Cause::NoTls,
            (_, "no hostname provided for TLS handshake") => Cause::NoName,
            (_, "password missing") => Cause::NoPassword,
            ("error performing TLS handshake", _) => Cause::Handshake(why),
            ("authentication error", _) => Cause::Authentication(why),
            ("unexpected message from server" | "error parsing response from server", _) => Cause::OtherProtocol(why),
            ("error connecting to server", _) => Cause::Unreachable(why),
            _ => Cause::Other(describe_error(error)),
        }
    }

    fn of_refusal(told: &DbError, described: String) -> Self {
        let code = told.code();
        if *code == SqlState::INVALID_PASSWORD {
            Cause::WrongPassword(described)
        } else if *code == SqlState::INVALID_CATALOG_NAME {
            Cause::NoDatabase(described)
        } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            Cause::NoRight(described)
        } else if *code != SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
            Cause::Other(described)
        } else if told.message().contains("pg_hba.conf") {
            // The name of the file is the same in all languages of the server.
            Cause::NoEntry(described)
        } else if told.message().contains("client certificate") {
            Cause::ClientCertificate(described)
        } else {
            Cause::Refused(described)
        }
    }

    fn of_tls(error: &rustls::Error) -> Self {
        use rustls::{AlertDescription as Alert, Error};
        match error {
            Error::InvalidCertificate(certificate) => Cause::of_certificate(certificate),
            Error::PeerIncompatible(_) => Cause::NoCommonTls(error.to_string()),
            Error::AlertReceived(Alert::ProtocolVersion | Alert::HandshakeFailure | Alert::InsufficientSecurity) => {
                Cause::NoCommonTls(error.to_string())
            }
            Error::AlertReceived(Alert::CertificateRequired) => {
                Cause::ClientCertificate("the server demands a client certificate".to_owned())
            }
            _ => Cause::Handshake(error.to_string()),
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            // A trusted authority of the same name with another key, such as the one before a renewal, is another authority.
            // So is one with another kind of key, such as a machine's own certificate for the name localhost.
            CertificateError::UnknownIssuer
            | CertificateError::BadSignature
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => Cause::UnknownAuthority,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Cause::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Cause::NotValidYet,
            CertificateError::NotValidForNameContext { expected, presented } => Cause::OtherName {
                expected: expected.to_str().into_owned(),
                presented: presented.iter().map(|name| plain_name(name)).collect(),
            },
            // What webpki says is wrapped, and its own type is not this crate's to name.
            CertificateError::Other(_) if error.to_string().contains("CaUsedAsEndEntity") => Cause::AuthorityAsServer,
            _ => Cause::BadCertificate(error.to_string()),
        }
    }
}

/// The name in `DnsName("db.internal")`, which is how rustls writes those of a certificate.
fn plain_name(written: &str) -> String {
    written.split('"').nth(1).unwrap_or(written).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(mode: Mode, file: Option<&str>) -> TlsOptions {
        TlsOptions { mode, root_certificates: file.map(Into::into) }
    }

    #[test]
    fn each_cause_is_told_with_what_to_do_and_with_whether_it_lasts() {
        let (none, file) = (options(Mode::Prefer, None), options(Mode::VerifyFull, Some("/ca.pem")));
        let system = options(Mode::VerifyFull, Some("system"));
        let (disable, require) = (options(Mode::Disable, None), options(Mode::Require, None));
        let told = || "it said so (SQLSTATE 1)".to_owned();
        let other_name = |names: &[&str]| Cause::OtherName {
            expected: "db".to_owned(),
            presented: names.iter().map(|&name| name.to_owned()).collect(),
        };
        const LASTS: bool = true;
        const PASSES: bool = false;
        // cause, options, parts of the text in their order, whether it lasts
        let cases: [(Cause, &TlsOptions, &[&str], bool); 25] = [
            (
                Cause::UnknownAuthority,
                &none,
                &["trusted authority; ", "sslrootcert=FILE", "--extra-ca", "sslmode=disable"],
                LASTS,
            ),
            (Cause::UnknownAuthority, &system, &["trusted authority; ", "sslrootcert=FILE"], LASTS),
            (Cause::UnknownAuthority, &file, &["not signed by an authority in /ca.pem (sslrootcert); "], LASTS),
            (
                Cause::AuthorityAsServer,
                &file,
                &["CA:TRUE", "; ", "CA:FALSE", "sslrootcert=FILE", "sslmode=disable"],
                LASTS,
            ),
            (other_name(&[]), &none, &["not for db: it has no name in subjectAltName; ", "sslmode=disable"], LASTS),
            (other_name(&["a", "b"]), &none, &["not for db, but for a, b; connect to a name"], LASTS),
            (Cause::Expired, &file, &["expired; renew it", "clock"], PASSES),
            (Cause::NotValidYet, &file, &["not valid yet; ", "clocks"], PASSES),
            (Cause::BadCertificate("BadEncoding".to_owned()), &none, &["BadEncoding; ", "sslmode=disable"], LASTS),
            (Cause::NoTls, &require, &["sslmode=require demands it; ", "ssl = on", "sslmode=prefer"], LASTS),
            (Cause::NoTls, &file, &["sslmode=verify-full demands it; "], LASTS),
            (Cause::NoName, &require, &["; set host", "hostaddr", "sslmode=disable"], LASTS),
            (Cause::NoCommonTls("why".to_owned()), &none, &["in common: why; ", "sslmode=disable"], LASTS),
            (Cause::ClientCertificate(told()), &file, &["SQLSTATE 1); Redrive has no client certificates"], LASTS),
            (Cause::Handshake("why".to_owned()), &none, &["the TLS handshake failed: why; check"], PASSES),
            (Cause::NoEntry(told()), &disable, &["SQLSTATE 1); with sslmode=disable", "sslmode=verify-full"], LASTS),
            (Cause::NoEntry(told()), &none, &["SQLSTATE 1); the server's pg_hba.conf", "sslmode=disable"], LASTS),
            (Cause::NoPassword, &none, &["the address has none; put it into the address"], LASTS),
            (Cause::Authentication("why".to_owned()), &none, &["why; ", "scram-sha-256"], LASTS),
            (Cause::WrongPassword(told()), &none, &["SQLSTATE 1); check user and password"], LASTS),
            (Cause::NoDatabase(told()), &none, &["SQLSTATE 1); create it"], LASTS),
            (Cause::NoRight(told()), &none, &["SQLSTATE 1); grant the role CONNECT"], LASTS),
            (Cause::Refused(told()), &none, &["it said so (SQLSTATE 1)"], LASTS),
            (Cause::OtherProtocol("why".to_owned()), &none, &["as PostgreSQL does: why; check"], PASSES),
            (
                Cause::Unreachable("why".to_owned()),
                &none,
                &["could not connect: why; check that PostgreSQL runs"],
                PASSES,
            ),
        ];
        for (cause, options, parts, is_lasting) in cases {
            let failure = explain(&cause, options);
            let text = failure.to_string();
            let mut rest = text.as_str();
            for part in parts {
                let at = rest.find(part).unwrap_or_else(|| panic!("{cause:?}: {part:?} is not in {text:?}"));
                rest = &rest[at + part.len()..];
            }
            assert_eq!(failure.is_lasting, is_lasting, "{cause:?}");
            assert!(!text.contains("error") && !text.ends_with('.'), "{text}");
        }
    }

    #[test]
    fn errors_of_certificates_have_their_causes() {
        use rustls::AlertDescription as Alert;
        let alert = |alert| rustls::Error::AlertReceived(alert);
        let named = CertificateError::NotValidForNameContext {
            expected: "db".try_into().unwrap(),
            presented: vec!["DnsName(\"a.b\")".to_owned(), "IpAddress(127.0.0.1)".to_owned()],
        };
        let other_name = Cause::OtherName {
            expected: "db".to_owned(),
            presented: vec!["a.b".to_owned(), "IpAddress(127.0.0.1)".to_owned()],
        };
        let client = Cause::ClientCertificate("the server demands a client certificate".to_owned());
        for (error, cause) in [
            (rustls::Error::from(CertificateError::UnknownIssuer), Cause::UnknownAuthority),
            (CertificateError::BadSignature.into(), Cause::UnknownAuthority),
            (
                CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                    signature_algorithm_id: vec![6],
                    public_key_algorithm_id: vec![7],
                }
                .into(),
                Cause::UnknownAuthority,
            ),
            (CertificateError::Expired.into(), Cause::Expired),
            (CertificateError::NotValidYet.into(), Cause::NotValidYet),
            (CertificateError::BadEncoding.into(), Cause::BadCertificate("BadEncoding".to_owned())),
            (named.into(), other_name),
            (alert(Alert::CertificateRequired), client),
            (alert(Alert::ProtocolVersion), Cause::NoCommonTls("received fatal alert: ProtocolVersion".to_owned())),
            (alert(Alert::InternalError), Cause::Handshake("received fatal alert: InternalError".to_owned())),
        ] {
            assert_eq!(Cause::of_tls(&error), cause, "{error}");
        }
    }
}
