//! The certificate authorities that are trusted over TLS: the system's, and those that a setting names.
//!
//! Everything that makes connections takes them from here, so that an authority named in one setting is trusted
//! everywhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{ClientConfig, RootCertStore};

/// Why a file of certificate authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The file cannot be read.
    #[error("could not read the certificates in {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// The file holds no certificate, or one that cannot be used.
    #[error("could not use the certificates in {}: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// The certificate authorities that are trusted.
#[derive(Debug, Clone, Default)]
pub struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// No authority is trusted.
    pub fn none() -> Self {
        Authorities::default()
    }

    /// The authorities that the system trusts. Old certificates that rustls cannot read are left out.
    pub fn of_the_system() -> Self {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "could not read some of the system's root certificates");
        }
        let certificates: Vec<_> = found.certs.into_iter().filter(|certificate| usable(certificate).is_ok()).collect();
        if certificates.is_empty() {
            tracing::warn!("the system has no root certificates: only what is named otherwise can be reached over TLS");
        }
        Authorities { certificates }
    }

    /// These authorities, and those in PEM files.
    pub fn and(mut self, files: &[PathBuf]) -> Result<Self, AuthorityError> {
        for path in files {
            self.certificates.extend(read(path)?);
        }
        Ok(self)
    }

    /// Whether no authority is trusted.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    /// The TLS settings of a client that trusts these authorities.
    pub fn client(&self) -> Result<ClientConfig, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.certificates.iter().cloned());
        // The provider is named, so that another crate's choice of a process-wide default does not change ours.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }

    /// All of them as PEM, for clients that take text.
    pub fn to_pem(&self) -> String {
        self.certificates.iter().map(|certificate| pem_text(certificate)).collect()
    }
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
    let invalid = |problem: String| AuthorityError::Invalid { path: path.to_owned(), problem };
    let text = std::fs::read(path).map_err(|cause| AuthorityError::Unreadable { path: path.to_owned(), cause })?;
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| invalid(pem_problem(error)))?;
        usable(&certificate).map_err(|error| invalid(error.to_string()))?;
        certificates.push(certificate);
    }
    if certificates.is_empty() {
        return Err(invalid(without_certificates(&text).into()));
    }
    Ok(certificates)
}

/// The words of the PEM reader are its own types.
fn pem_problem(error: pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "it is cut off: the line -----END CERTIFICATE----- is missing".into(),
        pem::Error::IllegalSectionStart { .. } => "a line that begins with -----BEGIN is not complete".into(),
        error => error.to_string(),
    }
}

/// What is wrong with a file in which no certificate was found.
fn without_certificates(text: &[u8]) -> &'static str {
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    if text.is_empty() {
        "it is empty"
    } else if text.first() == Some(&0x30) {
        "it is not PEM but probably DER; convert it with openssl x509 -inform der"
    } else if has(b"PRIVATE KEY-----") {
        "it has a private key and no certificate"
    } else {
        "there is no PEM certificate in it"
    }
}

fn usable(certificate: &CertificateDer<'static>) -> Result<(), rustls::Error> {
    RootCertStore::empty().add(certificate.clone())
}

fn pem_text(certificate: &CertificateDer<'_>) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused_with_the_reason() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (content, reason) in [
            ("", "it is empty"),
            ("some text\n", "there is no PEM certificate in it"),
            ("0\u{1}\u{2}", "it is not PEM but probably DER; convert it with openssl x509 -inform der"),
            (
                "-----BEGIN PRIVATE KEY-----\nMAo=\n-----END PRIVATE KEY-----\n",
                "it has a private key and no certificate",
            ),
            ("-----BEGIN CERTIFICATE-----\nMAo=\n", "it is cut off: the line -----END CERTIFICATE----- is missing"),
        ] {
            std::fs::write(file.path(), content).unwrap();
            let refused = Authorities::none().and(&[file.path().to_owned()]).unwrap_err().to_string();
            assert_eq!(refused, format!("could not use the certificates in {}: {reason}", file.path().display()));
        }
    }

    #[test]
    fn what_is_trusted_can_be_written_as_pem_and_read_again() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap().self_signed(&key).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), certificate.pem()).unwrap();
        let read_from = |path: &Path| Authorities::none().and(&[path.to_owned()]).unwrap();
        let trusted = read_from(file.path());
        assert_eq!(trusted.certificates, [certificate.der().clone()]);
        std::fs::write(file.path(), trusted.to_pem()).unwrap();
        assert_eq!(read_from(file.path()).certificates, trusted.certificates);
    }
}
