//! The addresses of a name: from the hosts file, or else from the servers.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::iter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use hickory_resolver::config::ResolverConfig;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, Resolver};
use tokio::time::{sleep, timeout};

use super::cache::Cache;
use super::configuration::Configuration;
use super::servers::{Servers, Shortages};

/// How long the addresses of one family wait for the other's. A server that does not answer questions for IPv6 must not
/// cost the whole connect timeout.
const OTHER_FAMILY: Duration = Duration::from_secs(1);

/// How often a question is asked again that was answered with an error.
const ERRORS_RETRIED: u32 = 1;

/// About how long after a question without an answer it is asked again; twice as long each time. Never at once: those
/// who ask for the same name share a result, which stays until the first of them has read it. A loop without a pause
/// would never let that one run.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// About the longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Looks names up.
pub(super) struct Lookup {
    hosts: Hosts,
    cache: Cache,
    servers: Resolver<Servers>,
    search: Vec<Name>,
    ndots: usize,
    /// Tells pauses apart that would otherwise end at one moment.
    spread: RandomState,
}

/// The addresses of one family, or of both.
#[derive(Debug, Default)]
struct Found {
    addresses: Vec<IpAddr>,
    /// How long they may be kept.
    ttl: Option<Duration>,
}

type Family = Result<Found, NetError>;

/// Why a name has no address.
#[derive(Debug)]
pub(super) enum Unresolved {
    /// It cannot be a name.
    Invalid,
    /// The servers know none.
    NoAddress,
    /// The servers could not be asked, or answered with an error.
    Failed(NetError),
}

impl Unresolved {
    /// Whether this is what a server said.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self, Unresolved::NoAddress | Unresolved::Failed(NetError::Dns(_)))
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unresolved::Invalid => f.write_str("it is not a valid name"),
            Unresolved::NoAddress => f.write_str("there is no such name, or it has no address"),
            Unresolved::Failed(NetError::NoConnections) => f.write_str("no DNS server can be reached"),
            Unresolved::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl Lookup {
    /// Looks names up as `configuration` says, and notes what this machine lacked for it.
    pub(super) fn new(configuration: Configuration, shortages: Shortages) -> Result<Self, NetError> {
        let Configuration { hosts, servers, search, options } = configuration;
        let ndots = options.ndots;
        let servers = ResolverConfig::from_name_servers(servers);
        let servers = Resolver::builder_with_config(servers, Servers::new(shortages)).with_options(options).build()?;
        Ok(Lookup { hosts, cache: Cache::default(), servers, search, ndots, spread: RandomState::new() })
    }

    /// The addresses of `host`, at least one.
    pub(super) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Unresolved> {
        let name = Name::from_ascii(host).map_err(|_| Unresolved::Invalid)?;
        if let Some(found) = self.in_hosts(&name) {
            return Ok(found);
        }
        if is_localhost(host) {
            return Ok(vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]);
        }
        if let Some(kept) = self.cache.get(host) {
            return Ok(kept);
        }
        let mut failed = Unresolved::NoAddress;
        for name in candidates(&name, &self.search, self.ndots) {
            match self.both_families(&name).await {
                Ok(Found { addresses, .. }) if addresses.is_empty() => {}
                Ok(Found { addresses, ttl }) => {
                    self.cache.put(host, addresses.clone(), ttl.unwrap_or_default());
                    return Ok(addresses);
                }
                Err(error) => failed = Unresolved::Failed(error),
            }
        }
        Err(failed)
    }

    /// Forgets what was found for `host`.
    pub(super) fn forget(&self, host: &str) {
        self.cache.forget(host);
    }

    fn in_hosts(&self, name: &Name) -> Option<Vec<IpAddr>> {
        let find = |family| {
            let found = self.hosts.lookup_static_host(&Query::query(name.clone(), family));
            found.map(|found| found.answers().iter().filter_map(|record| record.data.ip_addr()).collect())
        };
        let found = alternating(find(RecordType::AAAA).unwrap_or_default(), find(RecordType::A).unwrap_or_default());
        (!found.is_empty()).then_some(found)
    }

    async fn both_families(&self, name: &Name) -> Family {
        let (six, four) = (pin!(self.ask(name, RecordType::AAAA)), pin!(self.ask(name, RecordType::A)));
        let (six, four) = match select(six, four).await {
            Either::Left((six, four)) => {
                let four = other_family(&six, four).await;
                (six, four)
            }
            Either::Right((four, six)) => (other_family(&four, six).await, four),
        };
        match (six, four) {
            (Ok(six), Ok(four)) => Ok(Found {
                ttl: six.ttl.into_iter().chain(four.ttl).min(),
                addresses: alternating(six.addresses, four.addresses),
            }),
            (Ok(found), Err(_)) | (Err(_), Ok(found)) if !found.addresses.is_empty() => Ok(found),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    /// The addresses of one family. Asks until there is an answer: packets get lost, and how long to go on is up to the
    /// caller.
    async fn ask(&self, name: &Name, family: RecordType) -> Family {
        let mut errors = 0;
        for times in 0.. {
            match self.servers.lookup(name.clone(), family).await {
                Ok(found) => {
                    let records = || found.answers().iter();
                    let addresses = records().filter_map(|record| record.data.ip_addr()).collect();
                    let ttl = records().map(|record| Duration::from_secs(record.ttl.into())).min();
                    return Ok(Found { addresses, ttl });
                }
                Err(NetError::Dns(DnsError::NoRecordsFound(_))) => return Ok(Found::default()),
                Err(NetError::Timeout | NetError::Busy) => {}
                Err(error) if errors == ERRORS_RETRIED => return Err(error),
                Err(_) => errors += 1,
            }
            sleep(pause(times, self.spread.hash_one((name, family, times)))).await;
        }
        Err(NetError::Timeout)
    }
}

/// The pause after a question that had no answer for the `times`th time, counted from zero: by half shorter or longer,
/// as `random` says. A thousand names whose server is silent are not to be asked for at one moment, again and again.
fn pause(times: u32, random: u64) -> Duration {
    let about = ASK_AGAIN.saturating_mul(2_u32.saturating_pow(times)).min(LONGEST_PAUSE);
    about / 2 + about.mul_f64(random as f64 / u64::MAX as f64)
}

/// The addresses of the other family. If the first one has some, they are not waited for to the end.
async fn other_family(first: &Family, other: impl Future<Output = Family>) -> Family {
    match first {
        Ok(found) if !found.addresses.is_empty() => {
            timeout(OTHER_FAMILY, other).await.unwrap_or_else(|_| Ok(Found::default()))
        }
        _ => other.await,
    }
}

/// IPv6 before IPv4, in turn: whichever family this machine cannot use, the other one is tried soon.
fn alternating(six: Vec<IpAddr>, four: Vec<IpAddr>) -> Vec<IpAddr> {
    let (mut six, mut four) = (six.into_iter(), four.into_iter());
    let pairs = iter::from_fn(|| match (six.next(), four.next()) {
        (None, None) => None,
        pair => Some(pair),
    });
    pairs.flat_map(|(six, four)| six.into_iter().chain(four)).collect()
}

/// The names to ask for, in their order, by the rules of resolv.conf(5).
fn candidates(name: &Name, search: &[Name], ndots: usize) -> Vec<Name> {
    let whole = |mut name: Name| {
        name.set_fqdn(true);
        name
    };
    if name.is_fqdn() {
        return vec![name.clone()];
    }
    let completed = search.iter().filter_map(|domain| name.clone().append_domain(domain).ok());
    let mut names: Vec<_> = completed.map(whole).collect();
    let as_given_first = usize::from(name.num_labels()) > ndots;
    names.insert(if as_given_first { 0 } else { names.len() }, whole(name.clone()));
    names
}

/// RFC 6761: these names are this machine, and no server is asked for them.
fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_as_resolv_conf_says() {
        // name, ndots, candidates
        for (name, ndots, expected) in [
            ("db", 1, vec!["db.a.test.", "db.b.test.", "db."]),
            ("db.", 1, vec!["db."]),
            ("x.db", 1, vec!["x.db.", "x.db.a.test.", "x.db.b.test."]),
            ("x.db", 2, vec!["x.db.a.test.", "x.db.b.test.", "x.db."]),
            ("x.db.", 5, vec!["x.db."]),
        ] {
            let search = ["a.test", "b.test."].map(|name| Name::from_ascii(name).unwrap());
            let found = candidates(&Name::from_ascii(name).unwrap(), &search, ndots);
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{name} with ndots {ndots}");
        }
    }

    #[test]
    fn pauses_grow_and_are_spread() {
        let ms = Duration::from_millis;
        for (times, least, most) in
            [(0, 50, 150), (1, 100, 300), (4, 800, 2_400), (5, 1_000, 3_000), (99, 1_000, 3_000)]
        {
            assert_eq!((pause(times, 0), pause(times, u64::MAX)), (ms(least), ms(most)), "after {times} times");
        }
    }

    #[test]
    fn both_families_are_among_the_first_addresses() {
        let six: Vec<IpAddr> = (1..=3).map(|last| Ipv6Addr::from(last).into()).collect();
        let four: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into()];
        assert_eq!(alternating(six.clone(), four.clone()), [six[0], four[0], six[1], six[2]]);
        assert_eq!(alternating(Vec::new(), four.clone()), four);
    }
}
