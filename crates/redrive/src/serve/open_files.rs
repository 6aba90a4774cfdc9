//! The limit of open files: every connection is one, and most systems start a process with room for 1,024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Files that are neither a caller's connection nor a dependency's: the store, the log, the listener, the places kept for
/// health checks, and look-ups of names that take no longer than usual.
const OTHERS: usize = 256;

/// Raises the limit as far as the system allows without asking anybody, and warns if that is too little.
pub(super) fn raise_limit(config: &Config) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "raising the limit of open files");
    }
    let allowed = getrlimit(Resource::Nofile).current;
    tracing::debug!(before = limit.current, now = allowed, "raised the limit of open files");
    let connections = config.engine.max_in_flight + config.transport.max_idle;
    let needed = connections + config.api.max_connections + OTHERS;
    // No limit at all is no number.
    if let Some(allowed) = allowed
        && allowed < needed as u64
    {
        tracing::warn!(
            allowed,
            needed,
            "the limit of open files is low: under full load sends will be put off (ulimit -n, LimitNOFILE=)"
        );
    }
}
