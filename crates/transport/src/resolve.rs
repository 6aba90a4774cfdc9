//! Names to addresses, by the system's resolver.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use redrive_core::ErrorType;
use redrive_engine::transport::SendError;
use tokio::sync::Semaphore;

use crate::failure;
use crate::origin::Origin;

/// The most look-ups at once. The system's resolver blocks a thread and cannot be stopped, not even when the send that
/// asked has given up; a resolver that hangs must not take all of the process's threads.
const MAX_LOOKUPS: usize = 64;

/// The most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Resolves names.
pub(crate) struct Resolver {
    lookups: Arc<Semaphore>,
}

impl Resolver {
    /// The system's resolver.
    pub(crate) fn system() -> Self {
        Resolver { lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }

    /// Where `origin` is; at least one address.
    pub(crate) async fn resolve(&self, origin: &Origin) -> Result<Vec<SocketAddr>, SendError> {
        if let Ok(address) = origin.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, origin.port)]);
        }
        let failed = |problem: &str| {
            failure::of(
                ErrorType::Dns,
                format!("could not resolve {:?} to connect to {origin}: {problem}", origin.host),
            )
        };
        let place = self.lookups.clone().acquire_owned().await.map_err(|_| failed("the resolver is closed"))?;
        let name = (origin.host.clone(), origin.port);
        let lookup = tokio::task::spawn_blocking(move || {
            // Held until the look-up is over, whether or not anybody still waits for it.
            let _place = place;
            name.to_socket_addrs().map(|found| found.take(MAX_ADDRESSES).collect::<Vec<_>>())
        });
        match lookup.await {
            Ok(Ok(addresses)) if addresses.is_empty() => Err(failed("it has no address")),
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(failed(&error.to_string())),
            Err(_) => Err(failed("the look-up was cut off")),
        }
    }
}
