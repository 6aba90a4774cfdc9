//! HTTP status codes: the policy's list, then the standard's table, then the class of the code.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Cause, Opinion, Verdict};

/// Too Many Requests: the dependency works and asks for fewer requests.
const OVERLOADED: u16 = 429;

/// A 2xx is a success; no list can make it anything else.
pub(super) fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// The opinion on a status that is not a success, the most specific layer first.
pub(super) fn opinion(list: Option<&BTreeSet<u16>>, status: u16) -> Opinion {
    listed(list, status).or_else(|| specific(status)).or_else(|| general(status))
}

/// The verdict on a status that is retried, from a dependency that asked for the wait `after`.
pub(super) const fn retried(status: u16, after: Option<Duration>) -> Verdict {
    match status {
        OVERLOADED => Verdict::Overloaded { after },
        _ => Verdict::Retry { after, cause: Cause::Failure },
    }
}

/// A policy with a list retries exactly these codes, so there is always an opinion.
fn listed(list: Option<&BTreeSet<u16>>, status: u16) -> Opinion {
    match list {
        None => Opinion::None,
        Some(codes) if codes.contains(&status) => Opinion::Retry,
        Some(_) => Opinion::Never,
    }
}

/// The codes that must be retried by the standard.
pub const RETRYABLE_STATUS: [u16; 6] = [408, 429, 500, 502, 503, 504];
/// The codes that must not be retried by the standard.
pub const NON_RETRYABLE_STATUS: [u16; 6] = [400, 401, 403, 404, 409, 422];

/// The codes that the standard names.
fn specific(status: u16) -> Opinion {
    match status {
        status if RETRYABLE_STATUS.contains(&status) => Opinion::Retry,
        status if NON_RETRYABLE_STATUS.contains(&status) => Opinion::Never,
        _ => Opinion::None,
    }
}

/// The class of any other code. Redirects are not followed: the target URL must be corrected.
fn general(status: u16) -> Opinion {
    match status {
        300..=499 => Opinion::Never,
        500..=599 => Opinion::Retry,
        _ => Opinion::None,
    }
}
