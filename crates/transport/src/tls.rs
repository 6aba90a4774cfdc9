//! Whom to trust, and how TLS is spoken. There is no way to turn the checks off.

use std::sync::Arc;

use redrive_trust::Authorities;
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
    let system = match options.roots {
        Roots::System => Authorities::of_the_system(),
        Roots::ExtraOnly => Authorities::none(),
    };
    let trusted = system.and(&options.extra_ca)?;
    if trusted.is_empty() {
        return Ok(None);
    }
    let mut config = trusted.client()?;
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(Some(TlsConnector::from(Arc::new(config))))
}
