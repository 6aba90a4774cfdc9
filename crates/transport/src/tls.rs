//! Whom to trust, and how TLS is spoken. There is no way to turn the checks off.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::error::Error;
use crate::options::{Options, Roots};

/// The name of HTTP/2 in the negotiation.
pub(crate) const HTTP2: &[u8] = b"h2";
/// The name of HTTP/1.1 in the negotiation.
pub(crate) const HTTP1: &[u8] = b"http/1.1";

/// What secure connections are made with; nothing if no authority is trusted at all.
///
/// A machine without root certificates can still deliver to plain targets, so this is not an error yet.
pub(crate) fn connector(options: &Options) -> Result<Option<TlsConnector>, Error> {
    let mut roots = RootCertStore::empty();
    if options.roots == Roots::System {
        add_system(&mut roots);
    }
    for path in &options.extra_ca {
        add_file(&mut roots, path)?;
    }
    if roots.is_empty() {
        return Ok(None);
    }
    // The provider is named, so that another crate's choice of a process-wide default does not change ours.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(Some(TlsConnector::from(Arc::new(config))))
}

fn add_system(roots: &mut RootCertStore) {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "could not read some of the system's root certificates");
    }
    // Systems carry old certificates that nothing can use; only having none at all is worth a word.
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        tracing::warn!(ignored, "the system has no root certificates: https targets cannot be reached");
    }
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), Error> {
    for certificate in read_file(path)? {
        let invalid = |problem: rustls::Error| Error::InvalidCa { path: path.to_owned(), problem: problem.to_string() };
        roots.add(certificate).map_err(invalid)?;
    }
    Ok(())
}

fn read_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let invalid = |problem: String| Error::InvalidCa { path: path.to_owned(), problem };
    let pem = std::fs::read(path).map_err(|source| Error::UnreadableCa { path: path.to_owned(), source })?;
    let read = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let certificates = read.map_err(|error| invalid(error.to_string()))?;
    if certificates.is_empty() {
        return Err(invalid("there is no PEM certificate in it".into()));
    }
    Ok(certificates)
}

/// The system's authorities and those of these files, as PEM: for clients of other protocols that take it so.
pub fn trusted_pem(extra_ca: &[PathBuf]) -> Result<String, Error> {
    // Of the system's, those that cannot be used are left out: one of them would make such a client refuse them all.
    let is_usable = |certificate: &CertificateDer<'static>| RootCertStore::empty().add(certificate.clone()).is_ok();
    let mut trusted: Vec<_> = rustls_native_certs::load_native_certs().certs.into_iter().filter(is_usable).collect();
    for path in extra_ca {
        trusted.extend(read_file(path)?);
    }
    Ok(trusted.iter().map(|certificate| pem(certificate)).collect())
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_trusted_can_be_written_as_pem_and_read_again() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap().self_signed(&key).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, certificate.pem().as_bytes()).unwrap();
        let all = trusted_pem(&[file.path().to_owned()]).unwrap();
        let read: Vec<_> = CertificateDer::pem_slice_iter(all.as_bytes()).collect::<Result<_, _>>().unwrap();
        assert_eq!(read.last(), Some(certificate.der()));
    }
}
