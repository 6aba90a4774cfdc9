//! DNS servers and search list: from the system's files, or as given.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hickory_resolver::Hosts;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf;

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// How long a server has to answer before it is asked again. How often that happens is up to the connect timeout.
const TRY_TIMEOUT: Duration = Duration::from_secs(1);

/// The most questions at once on one TCP connection to a server. Each belongs to an attempt, which has its own limits.
const MAX_QUESTIONS: usize = u16::MAX as usize;

/// Where the configuration comes from.
pub(super) enum Source {
    /// These servers, and the system's hosts file.
    Servers(Vec<SocketAddr>),
    /// The system's configuration.
    System {
        /// The hosts file.
        hosts: PathBuf,
        /// The file that the configuration is in, to see when it changes.
        resolv_conf: PathBuf,
        /// Reads it.
        read: fn(&Path) -> Result<(ResolverConfig, ResolverOpts), NetError>,
    },
}

/// What names are looked up by.
pub(super) struct Configuration {
    /// Names that need no server.
    pub(super) hosts: Hosts,
    /// The servers.
    pub(super) servers: Vec<NameServerConfig>,
    /// What names are completed with.
    pub(super) search: Vec<Name>,
    /// How the servers are asked.
    pub(super) options: ResolverOpts,
}

/// The state of the files at a moment: they are read again when it changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp(Vec<Option<(SystemTime, u64)>>);

impl Source {
    /// The system's configuration.
    pub(super) fn system() -> Self {
        // Not every system keeps it in that file, so the path is left to the reader.
        let read = |_: &Path| system_conf::read_system_conf();
        Source::System { hosts: HOSTS.into(), resolv_conf: RESOLV_CONF.into(), read }
    }

    /// The configuration of these files.
    #[cfg(test)]
    pub(super) fn files(hosts: PathBuf, resolv_conf: PathBuf) -> Self {
        let read = |path: &Path| system_conf::parse_resolv_conf(fs::read(path)?);
        Source::System { hosts, resolv_conf, read }
    }

    /// The state of its files now.
    pub(super) fn stamp(&self) -> Stamp {
        let state = |path: &Path| {
            let file = fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        };
        match self {
            Source::Servers(_) => Stamp(vec![state(HOSTS.as_ref())]),
            Source::System { hosts, resolv_conf, .. } => Stamp(vec![state(hosts), state(resolv_conf)]),
        }
    }
}

impl Configuration {
    /// Reads it. A file that is missing or invalid is logged and not used.
    pub(super) fn read(source: &Source) -> Self {
        let (hosts, config, options) = match source {
            Source::Servers(servers) => {
                let servers = servers.iter().copied().map(server).collect();
                let config = ResolverConfig::from_name_servers(servers);
                (read_hosts(HOSTS.as_ref()), config, ResolverOpts::default())
            }
            Source::System { hosts, resolv_conf, read } => {
                let (config, options) = read(resolv_conf).unwrap_or_else(|error| {
                    tracing::warn!(
                        file = %resolv_conf.display(),
                        %error,
                        "cannot read the system's DNS configuration; asking a DNS server on this machine (or set --dns-server)"
                    );
                    // What resolv.conf(5) says about a file without servers.
                    let local = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
                    (ResolverConfig::from_name_servers(vec![local]), ResolverOpts::default())
                });
                (read_hosts(hosts), config, options)
            }
        };
        let (domain, search, servers) = config.into_parts();
        let search = if search.is_empty() { domain.into_iter().collect() } else { search };
        Configuration { hosts, servers, search, options: adapted(options) }
    }
}

/// `options` with our own bounds.
fn adapted(mut options: ResolverOpts) -> ResolverOpts {
    options.timeout = TRY_TIMEOUT;
    // Whether to ask again depends on the failure, and is decided in `lookup`.
    options.attempts = 0;
    // It would keep failures too; see `cache`.
    options.cache_size = 0;
    options.max_active_requests = MAX_QUESTIONS;
    // Names of the hosts file are found before any server is asked, also if only one family is there.
    options.use_hosts_file = ResolveHosts::Never;
    options
}

fn server(address: SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

fn read_hosts(path: &Path) -> Hosts {
    let mut hosts = Hosts::default();
    let read = fs::File::open(path).and_then(|file| hosts.read_hosts_conf(file));
    match read {
        Ok(()) => {}
        // Containers without one are common.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(file = %path.display(), %error, "cannot read the hosts file"),
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_are_those_of_the_file_or_else_one_on_this_machine() {
        // resolv.conf, servers, search list
        for (file, servers, search) in [
            (Some("nameserver 10.0.0.1\nnameserver ::2\nsearch a.test b.test\n"), vec!["10.0.0.1", "::2"], 2),
            (Some("nameserver 10.0.0.1\ndomain a.test\noptions ndots:5\n"), vec!["10.0.0.1"], 1),
            (Some("search a.test\n"), vec!["127.0.0.1"], 0),
            (Some("nonsense\n"), vec!["127.0.0.1"], 0),
            (None, vec!["127.0.0.1"], 0),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = |name| directory.path().join(name);
            if let Some(text) = file {
                fs::write(path("resolv.conf"), text).unwrap();
            }
            let read = Configuration::read(&Source::files(path("hosts"), path("resolv.conf")));
            let found: Vec<_> = read.servers.iter().map(|server| server.ip.to_string()).collect();
            assert_eq!(
                (found, read.search.len()),
                (servers.iter().map(ToString::to_string).collect(), search),
                "{file:?}"
            );
        }
    }

    #[test]
    fn given_servers_have_their_ports_and_no_search_list() {
        let given = ["10.0.0.1:53", "[::2]:5353"].map(|address| address.parse().unwrap());
        let read = Configuration::read(&Source::Servers(given.to_vec()));
        let ports = |server: &NameServerConfig| server.connections.iter().map(|config| config.port).collect::<Vec<_>>();
        assert_eq!(read.servers.iter().map(ports).collect::<Vec<_>>(), [[53, 53], [5353, 5353]]);
        assert!(read.search.is_empty());
    }
}
