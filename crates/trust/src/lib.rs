//! Whom to trust over TLS: the system's authorities, and those that a setting names. Everything that makes connections asks
//! here, so that a name in one setting is trusted everywhere.
//!
//! Not here: how a connection is made, and any way to turn the checks off.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Why authorities cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("could not read the certificates in {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// What is in a file is of no use.
    #[error("could not use the certificates in {}: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// Authorities that are trusted.
#[derive(Debug, Clone, Default)]
pub struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// Nobody.
    pub fn none() -> Self {
        Authorities::default()
    }

    /// Those of the system that can be used: systems carry old ones that nothing can.
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

    /// These and those of PEM files besides.
    pub fn and(mut self, files: &[PathBuf]) -> Result<Self, Error> {
        for path in files {
            self.certificates.extend(read(path)?);
        }
        Ok(self)
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    /// What TLS is spoken with.
    pub fn client(&self) -> Result<ClientConfig, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.certificates.iter().cloned());
        // The provider is named, so that another crate's choice of a process-wide default does not change ours.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }

    /// All of them as PEM, for clients that take it so.
    pub fn to_pem(&self) -> String {
        self.certificates.iter().map(|certificate| pem(certificate)).collect()
    }
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let invalid = |problem: String| Error::Invalid { path: path.to_owned(), problem };
    let text = std::fs::read(path).map_err(|cause| Error::Unreadable { path: path.to_owned(), cause })?;
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
        usable(&certificate).map_err(|error| invalid(error.to_string()))?;
        certificates.push(certificate);
    }
    if certificates.is_empty() {
        return Err(invalid("there is no PEM certificate in it".into()));
    }
    Ok(certificates)
}

fn usable(certificate: &CertificateDer<'static>) -> Result<(), rustls::Error> {
    RootCertStore::empty().add(certificate.clone())
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

    use super::*;

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
