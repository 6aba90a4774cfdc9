//! Whom to trust, and how TLS is spoken. There is no way to turn the checks off.

use std::path::Path;
use std::sync::Arc;

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
    let invalid = |problem: String| Error::InvalidCa { path: path.to_owned(), problem };
    let pem = std::fs::read(path).map_err(|source| Error::UnreadableCa { path: path.to_owned(), source })?;
    let mut added = 0;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
        roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
        added += 1;
    }
    if added == 0 {
        return Err(invalid("there is no PEM certificate in it".into()));
    }
    Ok(())
}
