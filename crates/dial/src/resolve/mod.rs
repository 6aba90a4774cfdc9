//! Names to addresses.
//!
//! Look-ups hold no thread and have no limit of their own: each belongs to a connection that is being opened, and
//! callers limit those (the engine by its slots). Concurrent look-ups of the same name share one query.
//!
//! | file | its job |
//! | --- | --- |
//! | `configuration` | DNS servers and search list: from the system's files, or as given |
//! | `cache` | a short-lived cache of addresses |
//! | `lookup` | the addresses of a name: the hosts file, then the servers |
//! | `servers` | the connections to DNS servers |

mod cache;
mod configuration;
mod lookup;
mod servers;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::endpoint::Endpoint;
use crate::error::{DialError, DialErrorKind, SetupError};
use configuration::{Configuration, Source, Stamp};
use lookup::{Lookup, Unresolved};
use servers::Shortages;

/// The most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// How often the system's files are looked at for changes, at most.
const RELOAD_EVERY: Duration = Duration::from_secs(5);

/// Resolves names.
pub(crate) struct Resolver {
    source: Source,
    current: Mutex<Current>,
    shortages: Shortages,
}

struct Current {
    lookup: Arc<Lookup>,
    stamp: Stamp,
    looked_at: Option<Instant>,
}

impl Resolver {
    /// Asks these servers, or those of the system's configuration if there are none.
    pub(crate) fn new(servers: &[SocketAddr]) -> Result<Self, SetupError> {
        Resolver::from(if servers.is_empty() { Source::system() } else { Source::Servers(servers.to_vec()) })
    }

    fn from(source: Source) -> Result<Self, SetupError> {
        let shortages = Shortages::default();
        let stamp = source.stamp();
        let lookup = Lookup::new(Configuration::read(&source), shortages.clone());
        let lookup = Arc::new(lookup.map_err(|error| SetupError::Dns(error.into()))?);
        Ok(Resolver { source, current: Mutex::new(Current { lookup, stamp, looked_at: None }), shortages })
    }

    /// The addresses of `endpoint`, at least one.
    pub(crate) async fn resolve(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, DialError> {
        if let Ok(address) = endpoint.host().parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, endpoint.port())]);
        }
        let lookup = self.current();
        let before = self.shortages.count();
        match lookup.addresses(endpoint.host()).await {
            Ok(addresses) => {
                let addresses = addresses.into_iter().take(MAX_ADDRESSES);
                Ok(addresses.map(|address| SocketAddr::new(address, endpoint.port())).collect())
            }
            Err(error) => Err(self.failed(endpoint, &error, before)),
        }
    }

    /// Forgets the addresses of `endpoint`: it could not be reached there, and may have moved.
    pub(crate) fn forget(&self, endpoint: &Endpoint) {
        if endpoint.host().parse::<IpAddr>().is_err() {
            self.current().forget(endpoint.host());
        }
    }

    fn failed(&self, endpoint: &Endpoint, error: &Unresolved, shortages_before: u64) -> DialError {
        let attempted = format!("could not resolve {:?} to connect to {endpoint}", endpoint.host());
        // The resolver does not say why it could not ask a server. If this machine lacked something meanwhile, that is
        // why; an answer from a server is an answer all the same.
        match self.shortages.since(shortages_before).filter(|_| !error.is_answer()) {
            Some(shortage) => DialError::new(DialErrorKind::Shortage, format!("{attempted}: {shortage}")),
            None => DialError::new(DialErrorKind::Dns, format!("{attempted}: {error}")),
        }
    }

    /// What looks names up, by the configuration as it is now.
    fn current(&self) -> Arc<Lookup> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if current.looked_at.is_none_or(|at| now.duration_since(at) >= RELOAD_EVERY) {
            current.looked_at = Some(now);
            let stamp = self.source.stamp();
            if stamp != current.stamp {
                current.stamp = stamp;
                match Lookup::new(Configuration::read(&self.source), self.shortages.clone()) {
                    Ok(lookup) => current.lookup = Arc::new(lookup),
                    Err(error) => tracing::warn!(%error, "cannot use the changed DNS configuration"),
                }
            }
        }
        current.lookup.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Longer than anything takes that asks no server.
    const PATIENCE: Duration = Duration::from_secs(30);

    async fn resolve(resolver: &Resolver, host: &str) -> Result<Vec<String>, DialError> {
        let endpoint = Endpoint::new(host, 80, false).unwrap();
        let found = tokio::time::timeout(PATIENCE, resolver.resolve(&endpoint)).await.expect("a server was asked");
        Ok(found?.iter().map(ToString::to_string).collect())
    }

    /// Files of which no server can be asked: whatever resolves, resolves without one.
    fn without_servers(hosts: &str) -> (tempfile::TempDir, Resolver) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("hosts"), hosts).unwrap();
        let source = Source::files(directory.path().join("hosts"), directory.path().join("resolv.conf"));
        (directory, Resolver::from(source).unwrap())
    }

    #[tokio::test]
    async fn addresses_localhost_and_the_hosts_file_need_no_server() {
        let (_directory, resolver) = without_servers("10.0.0.1 one.test a_b\n10.0.0.2 both.test\n::2 both.test\n");
        for (host, found) in [
            ("127.0.0.9", vec!["127.0.0.9:80"]),
            ("[::9]", vec!["[::9]:80"]),
            ("localhost", vec!["[::1]:80", "127.0.0.1:80"]),
            ("LOCALHOST.", vec!["[::1]:80", "127.0.0.1:80"]),
            ("x.localhost", vec!["[::1]:80", "127.0.0.1:80"]),
            ("one.test", vec!["10.0.0.1:80"]),
            ("ONE.test.", vec!["10.0.0.1:80"]),
            ("a_b", vec!["10.0.0.1:80"]),
            ("both.test", vec!["[::2]:80", "10.0.0.2:80"]),
        ] {
            assert_eq!(resolve(&resolver, host).await.unwrap(), found, "{host}");
        }
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_one_is_a_dns_error() {
        let (_directory, resolver) = without_servers("");
        let long = format!("{}.test", "x".repeat(64));
        for host in [long.as_str(), "a..test"] {
            assert_eq!(resolve(&resolver, host).await.unwrap_err().kind, DialErrorKind::Dns, "{host}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_hosts_file_is_read_again() {
        let (directory, resolver) = without_servers("10.0.0.1 one.test\n");
        assert_eq!(resolve(&resolver, "one.test").await.unwrap(), ["10.0.0.1:80"]);
        fs::write(directory.path().join("hosts"), "10.0.0.1 other.test\n10.0.0.22 one.test\n").unwrap();
        tokio::time::advance(RELOAD_EVERY).await;
        assert_eq!(resolve(&resolver, "one.test").await.unwrap(), ["10.0.0.22:80"]);
    }
}
