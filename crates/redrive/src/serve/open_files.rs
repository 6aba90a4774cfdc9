//! The limit of open files: every connection is one, and most systems start a process with room for 1,024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system allows a process to do by itself. The configuration counts on it.
pub(super) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    tracing::debug!(before = limit.current, now = limit.maximum, "raised the limit of open files");
}
