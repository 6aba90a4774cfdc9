//! Opens HTTP connections: `redrive-dial` does name, TCP and TLS; HTTP/1.1 or HTTP/2 is started here.

use std::sync::Arc;
use std::time::Duration;

use redrive_dial::{Dialer, Step, Stream};
use redrive_engine::transport::SendError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};

use crate::error::Error;
use crate::options::{Options, PlainProtocol};
use crate::origin::Origin;
use crate::{failure, http1, http2};

/// The name of HTTP/2 in the TLS handshake (ALPN).
const HTTP2: &[u8] = b"h2";
/// The name of HTTP/1.1 in the TLS handshake (ALPN).
const HTTP1: &[u8] = b"http/1.1";

/// Opens HTTP connections.
pub(crate) struct Connector {
    dialer: Dialer,
    plain: PlainProtocol,
}

/// A connection that was just opened.
pub(crate) enum Opened {
    /// For one send at a time.
    Http1(http1::Connection),
    /// To be shared.
    Http2(Arc<http2::Connection>),
}

impl Connector {
    /// Opens connections as `options` say.
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let dialer = Dialer::new(&redrive_dial::Options {
            dns_servers: options.dns_servers.clone(),
            roots: options.roots,
            extra_ca: options.extra_ca.clone(),
            alpn: vec![HTTP2.to_vec(), HTTP1.to_vec()],
        })?;
        Ok(Connector { dialer, plain: options.plain })
    }

    /// Whether it may turn out, or is known, that `origin` speaks HTTP/2.
    pub(crate) fn may_share(&self, origin: &Origin) -> bool {
        origin.endpoint.is_secure() || self.plain == PlainProtocol::Http2
    }

    /// Connects to `origin` within this time, and reports each step to `at`. A step that does not end in time is its
    /// own kind of failure.
    pub(crate) async fn open(
        &self,
        origin: &Origin,
        within: Duration,
        at: impl Fn(Step) + Send + Sync,
    ) -> Result<Opened, SendError> {
        let by = Instant::now() + within;
        let stream = self.dialer.dial(&origin.endpoint, within, at).await.map_err(failure::dial)?;
        let http2 = stream.alpn() == Some(HTTP2);
        match stream {
            Stream::Tcp(tcp) => begin(origin, by, within, tcp, self.plain == PlainProtocol::Http2).await,
            Stream::Tls(tls) => begin(origin, by, within, *tls, http2).await,
        }
    }
}

/// Begins HTTP/1.1 or HTTP/2 on `io`.
async fn begin<I>(origin: &Origin, by: Instant, within: Duration, io: I, http2: bool) -> Result<Opened, SendError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let opening = async {
        match http2 {
            false => http1::Connection::handshake(io).await.map(Opened::Http1),
            true => http2::Connection::handshake(io).await.map(Opened::Http2),
        }
    };
    match timeout_at(by, opening).await {
        Ok(opened) => opened.map_err(|error| failure::exchange(origin, &error)),
        Err(_) => Err(failure::dial(Step::Connect.timed_out(&origin.endpoint, within))),
    }
}
