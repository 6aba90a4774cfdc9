//! The TLS settings of a dialer. There is no way to turn certificate checks off.

use std::sync::Arc;

use tokio_rustls::TlsConnector;

use crate::authorities::Authorities;
use crate::error::SetupError;
use crate::options::{Options, Roots};

/// Does TLS handshakes as `options` say; nothing if no authority is trusted at all.
///
/// A machine without root certificates can still connect without TLS, so this is not an error yet.
pub(crate) fn connector(options: &Options) -> Result<Option<TlsConnector>, SetupError> {
    let system = match options.roots {
        Roots::System => Authorities::of_the_system(),
        Roots::ExtraOnly => Authorities::none(),
    };
    let trusted = system.and(&options.extra_ca)?;
    if trusted.is_empty() {
        return Ok(None);
    }
    let mut config = trusted.client()?;
    config.alpn_protocols.clone_from(&options.alpn);
    Ok(Some(TlsConnector::from(Arc::new(config))))
}
