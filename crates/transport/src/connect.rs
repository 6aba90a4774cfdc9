//! Opening a connection: name, TCP, TLS, protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryFutureExt as _;
use redrive_core::ErrorType;
use redrive_engine::transport::SendError;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use crate::error::Error;
use crate::options::{Options, Plain};
use crate::origin::Origin;
use crate::resolve::Resolver;
use crate::{failure, http1, http2, shortage, tls};

/// Opens connections.
pub(crate) struct Connector {
    resolver: Resolver,
    tls: Option<TlsConnector>,
    plain: Plain,
}

/// A connection that was just opened.
pub(crate) enum Opened {
    /// For one send at a time.
    Http1(http1::Connection),
    /// To be shared.
    Http2(Arc<http2::Connection>),
}

/// What is being done to open a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// Looking up the name.
    Resolve,
    /// Connecting by TCP.
    Connect,
    /// Agreeing on TLS.
    Handshake,
}

impl Step {
    /// The failure of a connection to `origin` that was at this step when its time, `within`, ran out.
    pub(crate) fn timed_out(self, origin: &Origin, within: Duration) -> SendError {
        let (kind, attempted) = match self {
            Step::Resolve => (ErrorType::Dns, format!("could not resolve {:?} to connect to {origin}", origin.host)),
            Step::Connect => (ErrorType::ConnectTimeout, format!("could not connect to {origin}")),
            Step::Handshake => (ErrorType::TlsHandshakeTimeout, format!("could not agree on tls with {origin}")),
        };
        failure::of(kind, format!("{attempted} within {within:?}"))
    }
}

impl Connector {
    /// Opens connections as `options` say.
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        Ok(Connector {
            resolver: Resolver::new(&options.dns_servers)?,
            tls: tls::connector(options)?,
            plain: options.plain,
        })
    }

    /// Whether it may turn out, or is known, that `origin` speaks HTTP/2.
    pub(crate) fn may_share(&self, origin: &Origin) -> bool {
        origin.server_name.is_some() || self.plain == Plain::Http2
    }

    /// Connects to `origin` within this time, and tells `at` each step. A step that does not end in time is its own kind
    /// of failure.
    pub(crate) async fn open(
        &self,
        origin: &Origin,
        within: Duration,
        at: impl Fn(Step) + Send + Sync,
    ) -> Result<Opened, SendError> {
        let by = Instant::now() + within;
        let secure = match &origin.server_name {
            Some(name) => Some((name, self.tls()?)),
            None => None,
        };
        let late = |step: Step| move |_| step.timed_out(origin, within);
        at(Step::Resolve);
        let addresses = timeout_at(by, self.resolver.resolve(origin)).await.map_err(late(Step::Resolve))??;
        at(Step::Connect);
        let tcp = connect_any(origin, &addresses, by, within).await.inspect_err(|_| self.resolver.forget(origin))?;
        match secure {
            None => agreed(origin, by, within, tcp, self.plain == Plain::Http2).await,
            Some((name, connector)) => {
                at(Step::Handshake);
                let agreeing = connector.connect(name.clone(), tcp);
                let agreeing = agreeing.map_err(|error| failure::handshake(origin, &error));
                let stream = timeout_at(by, agreeing).await.map_err(late(Step::Handshake))??;
                let http2 = stream.get_ref().1.alpn_protocol() == Some(tls::HTTP2);
                agreed(origin, by, within, stream, http2).await
            }
        }
    }

    fn tls(&self) -> Result<&TlsConnector, SendError> {
        self.tls.as_ref().ok_or_else(|| {
            let message = "no certificate authority is trusted: install the system's root certificates \
                           (ca-certificates) or name files of authorities (extra_ca)";
            failure::of(ErrorType::TlsCertificate, message)
        })
    }
}

/// Tries the addresses in their order; each one gets its share of the time that is left, so that one that swallows
/// everything does not keep the others from being tried. If one could not be tried for want of something on this machine
/// and the others failed, nothing is known of the peer.
async fn connect_any(
    origin: &Origin,
    addresses: &[SocketAddr],
    by: Instant,
    within: Duration,
) -> Result<TcpStream, SendError> {
    let mut failed = Step::Connect.timed_out(origin, within);
    let mut short = None;
    for (tried, &address) in addresses.iter().enumerate() {
        let untried = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let share = by.saturating_duration_since(Instant::now()) / untried;
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).map_err(|error| failure::connect(origin, &error))?;
                return Ok(stream);
            }
            Ok(Err(error)) => match shortage::connecting(address, &error) {
                Some(shortage) => short = Some(failure::short(origin, shortage)),
                None => failed = failure::connect(origin, &error),
            },
            Err(_) => failed = Step::Connect.timed_out(origin, within),
        }
    }
    Err(short.unwrap_or(failed))
}

async fn agreed<I>(origin: &Origin, by: Instant, within: Duration, io: I, http2: bool) -> Result<Opened, SendError>
where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let opening = async {
        match http2 {
            false => http1::Connection::handshake(io).await.map(Opened::Http1),
            true => http2::Connection::handshake(io).await.map(Opened::Http2),
        }
    };
    match timeout_at(by, opening).await {
        Ok(opened) => opened.map_err(|error| failure::exchange(origin, &error)),
        Err(_) => Err(Step::Connect.timed_out(origin, within)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;
    use crate::target::Target;

    const PLENTY: Duration = Duration::from_secs(60);

    async fn connect_to(addresses: &[SocketAddr], within: Duration) -> Result<TcpStream, SendError> {
        let origin = Origin::parse(&Target::parse("http://a.test/")?)?;
        connect_any(&origin, addresses, Instant::now() + within, within).await
    }

    #[tokio::test]
    async fn addresses_are_tried_until_one_accepts() {
        let refusing = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let accepting = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = accepting.local_addr().unwrap();
        assert_eq!(connect_to(&[refusing, address], PLENTY).await.unwrap().peer_addr().unwrap(), address);
        let refused = connect_to(&[refusing, refusing], PLENTY).await.unwrap_err();
        assert_eq!(refused.kind, ErrorType::ConnectionRefused);
    }

    #[tokio::test]
    async fn an_address_that_swallows_everything_leaves_time_for_the_next() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let full = socket.listen(1).unwrap();
        let swallowing = full.local_addr().unwrap();
        let _queued = [TcpStream::connect(swallowing).await.unwrap(), TcpStream::connect(swallowing).await.unwrap()];
        let accepting = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = accepting.local_addr().unwrap();
        let within = Duration::from_millis(400);
        assert_eq!(connect_to(&[swallowing, address], within).await.unwrap().peer_addr().unwrap(), address);
    }
}
