//! A short-lived cache of addresses.
//!
//! Failures are not cached: a task may fail to resolve its name only twice, so each try asks again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The most names that are kept.
const MAX_NAMES: usize = 8_192;

/// The longest that addresses are cached, even if their TTL is longer: a dependency may move, and one query in this
/// time is cheap.
const LONGEST: Duration = Duration::from_secs(30);

/// Cached addresses, by host as it was written.
#[derive(Default)]
pub(super) struct Cache(Mutex<HashMap<Box<str>, Kept>>);

struct Kept {
    addresses: Vec<IpAddr>,
    until: Instant,
}

impl Cache {
    /// The addresses of `host`, if they are kept.
    pub(super) fn get(&self, host: &str) -> Option<Vec<IpAddr>> {
        let names = self.names();
        names.get(host).filter(|kept| kept.until > Instant::now()).map(|kept| kept.addresses.clone())
    }

    /// Keeps the addresses of `host` for `ttl`, within bounds.
    pub(super) fn put(&self, host: &str, addresses: Vec<IpAddr>, ttl: Duration) {
        let now = Instant::now();
        let mut names = self.names();
        if names.len() >= MAX_NAMES {
            names.retain(|_, kept| kept.until > now);
        }
        // So many names in so short a time: the next look-up of any of them is a question more.
        if names.len() >= MAX_NAMES {
            names.clear();
        }
        names.insert(host.into(), Kept { addresses, until: now + ttl.min(LONGEST) });
    }

    /// Forgets `host`.
    pub(super) fn forget(&self, host: &str) {
        self.names().remove(host);
    }

    fn names(&self) -> MutexGuard<'_, HashMap<Box<str>, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn addresses_are_kept_for_their_time_and_never_long() {
        let cache = Cache::default();
        for (host, ttl, kept) in [("none", 0, 0), ("short", 5, 5), ("long", 86_400, LONGEST.as_secs())] {
            cache.put(host, vec![HERE], Duration::from_secs(ttl));
            if kept > 0 {
                tokio::time::advance(Duration::from_secs(kept - 1)).await;
                assert_eq!(cache.get(host), Some(vec![HERE]), "{host}");
                tokio::time::advance(Duration::from_secs(1)).await;
            }
            assert_eq!(cache.get(host), None, "{host}");
        }
    }

    #[tokio::test]
    async fn the_number_of_names_is_bounded() {
        let cache = Cache::default();
        for number in 0..3 * MAX_NAMES {
            cache.put(&number.to_string(), vec![HERE], LONGEST);
            assert!(cache.names().len() <= MAX_NAMES);
        }
        assert_eq!(cache.get(&(3 * MAX_NAMES - 1).to_string()), Some(vec![HERE]));
    }
}
