//! The steps to a connection: name, TCP, TLS.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::TryFutureExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use crate::endpoint::Endpoint;
use crate::error::{DialError, DialErrorKind, SetupError};
use crate::options::Options;
use crate::resolve::Resolver;
use crate::stream::Stream;
use crate::{shortage, tls};

/// Opens connections.
pub struct Dialer {
    resolver: Resolver,
    tls: Option<TlsConnector>,
}

/// A step to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Looking up the name.
    Resolve,
    /// Connecting by TCP.
    Connect,
    /// The TLS handshake.
    Handshake,
}

impl Step {
    /// The failure of a connection to `endpoint` that was at this step when its time, `within`, ran out.
    pub fn timed_out(self, endpoint: &Endpoint, within: Duration) -> DialError {
        let (kind, attempted) = match self {
            Step::Resolve => {
                (DialErrorKind::Dns, format!("could not resolve {:?} to connect to {endpoint}", endpoint.host()))
            }
            Step::Connect => (DialErrorKind::ConnectTimeout, format!("could not connect to {endpoint}")),
            Step::Handshake => {
                (DialErrorKind::TlsHandshakeTimeout, format!("could not complete the TLS handshake with {endpoint}"))
            }
        };
        DialError::new(kind, format!("{attempted} within {within:?}"))
    }
}

impl Dialer {
    /// Opens connections as `options` say. Reads the system's root certificates and the files that are named.
    pub fn new(options: &Options) -> Result<Self, SetupError> {
        Ok(Dialer { resolver: Resolver::new(&options.dns_servers)?, tls: tls::connector(options)? })
    }

    /// Connects to `endpoint` within this time, and reports each step to `at`. A step that does not end in time is its
    /// own kind of failure.
    pub async fn dial(
        &self,
        endpoint: &Endpoint,
        within: Duration,
        at: impl Fn(Step) + Send + Sync,
    ) -> Result<Stream, DialError> {
        let by = Instant::now() + within;
        let secure = match endpoint.server_name() {
            Some(name) => Some((name, self.tls()?)),
            None => None,
        };
        let late = |step: Step| move |_| step.timed_out(endpoint, within);
        at(Step::Resolve);
        let addresses = timeout_at(by, self.resolver.resolve(endpoint)).await.map_err(late(Step::Resolve))??;
        at(Step::Connect);
        let connected = connect_any(endpoint, &addresses, by, within).await;
        let tcp = connected.inspect_err(|_| self.resolver.forget(endpoint))?;
        let Some((name, connector)) = secure else { return Ok(Stream::Tcp(tcp)) };
        at(Step::Handshake);
        let handshake = connector.connect(name.clone(), tcp);
        let handshake = handshake.map_err(|error| DialError::handshake(endpoint, &error));
        let tls = timeout_at(by, handshake).await.map_err(late(Step::Handshake))??;
        Ok(Stream::Tls(Box::new(tls)))
    }

    fn tls(&self) -> Result<&TlsConnector, DialError> {
        self.tls.as_ref().ok_or_else(|| {
            let message = "no certificate authority is trusted: install the system's root certificates \
                           (ca-certificates) or name files of authorities (--extra-ca)";
            DialError::new(DialErrorKind::TlsCertificate, message)
        })
    }
}

/// Tries the addresses in their order. Each one gets an equal share of the remaining time, so that one that does not
/// answer leaves time for the others. If one could not be tried because of a shortage on this machine and the others
/// failed, the error is the shortage: it says nothing about the peer.
async fn connect_any(
    endpoint: &Endpoint,
    addresses: &[SocketAddr],
    by: Instant,
    within: Duration,
) -> Result<TcpStream, DialError> {
    let mut failed = Step::Connect.timed_out(endpoint, within);
    let mut short = None;
    for (tried, &address) in addresses.iter().enumerate() {
        let untried = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let share = by.saturating_duration_since(Instant::now()) / untried;
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).map_err(|error| DialError::connect(endpoint, &error))?;
                return Ok(stream);
            }
            Ok(Err(error)) => match shortage::connecting(address, &error) {
                Some(shortage) => short = Some(DialError::shortage(endpoint, shortage)),
                None => failed = DialError::connect(endpoint, &error),
            },
            Err(_) => failed = Step::Connect.timed_out(endpoint, within),
        }
    }
    Err(short.unwrap_or(failed))
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    const PLENTY: Duration = Duration::from_secs(60);

    async fn connect_to(addresses: &[SocketAddr], within: Duration) -> Result<TcpStream, DialError> {
        let endpoint = Endpoint::new("a.test", 80, false).unwrap();
        connect_any(&endpoint, addresses, Instant::now() + within, within).await
    }

    #[tokio::test]
    async fn addresses_are_tried_until_one_accepts() {
        let refusing = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let accepting = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = accepting.local_addr().unwrap();
        assert_eq!(connect_to(&[refusing, address], PLENTY).await.unwrap().peer_addr().unwrap(), address);
        let refused = connect_to(&[refusing, refusing], PLENTY).await.unwrap_err();
        assert_eq!(refused.kind, DialErrorKind::ConnectionRefused);
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
