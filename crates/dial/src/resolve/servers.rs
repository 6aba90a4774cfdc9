//! The connections to DNS servers: one socket per query, and a record of shortages on this machine.

use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hickory_resolver::config::{ConnectionConfig, ProtocolConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::{RuntimeProvider, TokioRuntimeProvider};
use hickory_resolver::net::udp::UdpClientStream;
use hickory_resolver::net::xfer::DnsExchange;
use hickory_resolver::{ConnectionProvider, PoolContext};

use crate::shortage::{self, Shortage};

/// How often a question goes out before its time is over. Each time takes another socket and port, and a look-up that
/// hangs should not hold more than it needs; after its time the question is asked again.
const DATAGRAMS: u8 = 1;

/// Connections to the servers.
#[derive(Clone)]
pub(super) struct Servers(Sockets);

impl Servers {
    /// Notes in `shortages` what this machine lacked.
    pub(super) fn new(shortages: Shortages) -> Self {
        Servers(Sockets { tokio: TokioRuntimeProvider::new(), shortages })
    }
}

impl ConnectionProvider for Servers {
    type Conn = DnsExchange<Sockets>;
    type FutureConn = Pin<Box<dyn Future<Output = Result<Self::Conn, NetError>> + Send>>;
    type RuntimeProvider = Sockets;

    fn new_connection(
        &self,
        ip: IpAddr,
        config: &ConnectionConfig,
        context: &PoolContext,
    ) -> Result<Self::FutureConn, NetError> {
        match config.protocol {
            ProtocolConfig::Udp => {
                let udp = UdpClientStream::builder(SocketAddr::new(ip, config.port), self.0.clone())
                    .with_timeout(Some(context.options.timeout))
                    .with_max_retries(DATAGRAMS);
                Ok(Box::pin(ready(Ok(udp.exchange()))))
            }
            _ => self.0.new_connection(ip, config, context),
        }
    }

    fn runtime_provider(&self) -> &Self::RuntimeProvider {
        &self.0
    }
}

/// Opens sockets.
#[derive(Clone)]
pub(super) struct Sockets {
    tokio: TokioRuntimeProvider,
    shortages: Shortages,
}

type Opening<S> = Pin<Box<dyn Future<Output = Result<S, io::Error>> + Send>>;

impl Sockets {
    fn noting<S: 'static>(&self, opening: Opening<S>) -> Opening<S> {
        let shortages = self.shortages.clone();
        Box::pin(async move { opening.await.inspect_err(|error| shortages.note(shortage::of(error))) })
    }
}

impl RuntimeProvider for Sockets {
    type Handle = <TokioRuntimeProvider as RuntimeProvider>::Handle;
    type Timer = <TokioRuntimeProvider as RuntimeProvider>::Timer;
    type Udp = <TokioRuntimeProvider as RuntimeProvider>::Udp;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> Self::Handle {
        self.tokio.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        local: Option<SocketAddr>,
        within: Option<Duration>,
    ) -> Opening<Self::Tcp> {
        self.noting(self.tokio.connect_tcp(server, local, within))
    }

    fn bind_udp(&self, local: SocketAddr, server: SocketAddr) -> Opening<Self::Udp> {
        self.noting(self.tokio.bind_udp(local, server))
    }
}

/// The shortages so far.
#[derive(Clone, Default)]
pub(super) struct Shortages(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    count: u64,
    last: Option<Shortage>,
}

impl Shortages {
    /// How often something was lacking so far.
    pub(super) fn count(&self) -> u64 {
        self.noted().count
    }

    /// What was lacking last, if anything was after there had been this many.
    pub(super) fn since(&self, count: u64) -> Option<Shortage> {
        let noted = self.noted();
        noted.last.filter(|_| noted.count > count)
    }

    fn note(&self, shortage: Option<Shortage>) {
        if shortage.is_some() {
            let mut noted = self.noted();
            noted.count += 1;
            noted.last = shortage;
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
