//! Whom to trust when S3 is spoken over TLS: the system's authorities, and those that a setting names.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::failure::OpenError;

/// Every authority that is trusted.
pub(crate) fn roots(extra: &[PathBuf]) -> Result<RootCertStore, OpenError> {
    let mut roots = RootCertStore::empty();
    // Systems carry old certificates that nothing can use.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for path in extra {
        add_file(&mut roots, path)?;
    }
    Ok(roots)
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), OpenError> {
    let invalid = |problem: String| OpenError::Authorities { path: path.to_owned(), problem };
    let pem = std::fs::read(path).map_err(|error| invalid(error.to_string()))?;
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
