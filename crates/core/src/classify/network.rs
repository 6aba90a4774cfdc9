//! Errors without an answer: the dependency could not be reached, did not answer in full, or nothing could be sent to
//! it.

use std::time::Duration;

use super::{Cause, Verdict};
use crate::attempt::ErrorType;

/// The most attempts of one run that may fail because the dependency's name could not be resolved. Other failures
/// between them do not count, and do not start the count again.
pub const DNS_ATTEMPTS: u32 = 2;
/// The pause of a task whose stored body cannot be read: object storage that is out of reach takes a while to recover.
pub const BODY_PAUSE: Duration = Duration::from_secs(15);
/// The pause of a task that this process did not send: the send was withdrawn, or sockets or memory ran short. Both
/// pass quickly.
pub const LOCAL_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn verdict(kind: ErrorType) -> Verdict {
    match kind {
        ErrorType::ConnectionRefused
        | ErrorType::ConnectionReset
        | ErrorType::ConnectTimeout
        | ErrorType::ConnectFailed
        | ErrorType::ReadTimeout
        | ErrorType::TlsHandshakeTimeout
        | ErrorType::TlsHandshake => RETRY,
        // A broken transfer, for example through a proxy that is being restarted. R-4's "serialization error" is
        // InvalidRequest: what cannot be serialised on this side.
        ErrorType::MalformedAnswer => RETRY,
        // The outcome is unknown; the idempotency key makes another attempt safe.
        ErrorType::Interrupted => RETRY,
        // The dependency has received the beginning of the request.
        ErrorType::BodyIncomplete => RETRY,
        ErrorType::Dns => Verdict::Retry { after: None, cause: Cause::Dns },
        // A possible attack on the connection: a retry would expose the request to it again.
        ErrorType::TlsCertificate => Verdict::Never,
        // The accepted body is lost, and nothing else may be sent in its place.
        ErrorType::BodyMissing | ErrorType::BodyDamaged => Verdict::BodyLost,
        ErrorType::BodyUnavailable => Verdict::NotSent { pause: BODY_PAUSE },
        ErrorType::NotSent => Verdict::NotSent { pause: LOCAL_PAUSE },
        // What cannot be built or serialised now cannot be later.
        ErrorType::InvalidRequest => Verdict::Never,
        // A status is classified with its answer. Without one, nothing justifies a retry.
        ErrorType::HttpStatus => Verdict::Never,
    }
}

const RETRY: Verdict = Verdict::Retry { after: None, cause: Cause::Failure };
