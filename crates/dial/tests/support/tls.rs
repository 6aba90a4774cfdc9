//! Certificates, good and bad, and servers that show them.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// An authority that is not trusted until it is configured.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// How good a certificate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// For `localhost`, and valid.
    Good,
    /// For another name.
    OtherName,
    /// Valid until some years ago.
    Expired,
    /// For `localhost`, self-signed.
    SelfSigned,
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    /// Its own certificate, which those who trust it need.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Accepts connections with a certificate of this quality, and offers these protocols.
    pub fn acceptor(&self, quality: Quality, protocols: &[&str]) -> TlsAcceptor {
        let (certificate, key) = self.certificate(quality);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    fn certificate(&self, quality: Quality) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let name = if quality == Quality::OtherName { "elsewhere.test" } else { "localhost" };
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if quality == Quality::Expired {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = match quality {
            Quality::SelfSigned => params.self_signed(&key).unwrap(),
            _ => params.signed_by(&key, &self.issuer).unwrap(),
        };
        (certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()).into())
    }
}

impl Default for Authority {
    fn default() -> Self {
        Authority::new()
    }
}
