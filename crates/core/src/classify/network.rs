//! Errors without an answer: a dependency that could not be reached, or did not finish what it said.

use super::Verdict;
use crate::attempt::ErrorType;
use crate::planted::{self, Bug};

/// A name that does not resolve twice in a row is more likely wrong than unlucky.
pub const DNS_ATTEMPTS: u32 = 2;

pub(super) fn verdict(kind: ErrorType) -> Verdict {
    match kind {
        ErrorType::ConnectionRefused
        | ErrorType::ConnectionReset
        | ErrorType::ConnectTimeout
        | ErrorType::ConnectFailed
        | ErrorType::ReadTimeout
        | ErrorType::TlsHandshakeTimeout
        | ErrorType::TlsHandshake => RETRY,
        // A proxy that is being restarted says such things, and recovers.
        ErrorType::MalformedAnswer => RETRY,
        // Nobody knows what became of the attempt; the idempotency key makes another one safe.
        ErrorType::Interrupted => RETRY,
        ErrorType::Dns if planted::is(Bug::NameTriedForEver) => RETRY,
        ErrorType::Dns => Verdict::Retry { after: None, max_attempts: Some(DNS_ATTEMPTS) },
        // Somebody may be in the middle: a retry would expose the request to them again.
        ErrorType::TlsCertificate => Verdict::Never,
        // What was accepted cannot be sent any more, and nothing else may be sent in its place.
        ErrorType::BodyMissing | ErrorType::BodyDamaged => Verdict::BodyLost,
        // Object storage has its bad days, too. That is no fault of the dependency's, and it has heard nothing of it.
        ErrorType::BodyUnavailable | ErrorType::NotSent => Verdict::NotSent,
        // Here it has heard the beginning.
        ErrorType::BodyIncomplete => RETRY,
        // It cannot be sent at all, today or tomorrow.
        ErrorType::InvalidRequest => Verdict::Never,
        // A status is classified as an answer; as a mere kind of error it says nothing that could justify a retry.
        ErrorType::HttpStatus => Verdict::Never,
    }
}

const RETRY: Verdict = Verdict::Retry { after: None, max_attempts: None };
