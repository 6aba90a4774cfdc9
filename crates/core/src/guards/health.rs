//! What the outcome of a call says about the health of its dependency, which differs from what it means for its task.
//!
//! A 404 ends a task, and shows that the dependency works. A 429 comes from a dependency that works and asks for fewer
//! requests: it counts among the failures of a window, but ten of them in a row do not mean that the dependency is
//! down.

use crate::attempt::ErrorType;

/// What one call says about its dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The dependency works: it answered, even if with a refusal.
    Well,
    /// The dependency works and is overloaded.
    Strained,
    /// The dependency does not work or cannot be reached: a hard failure.
    Failing,
}

impl Health {
    /// What an answer with this status says.
    pub const fn of_status(status: u16) -> Health {
        match status {
            408 | 429 => Health::Strained,
            500.. => Health::Failing,
            _ => Health::Well,
        }
    }

    /// What an attempt without an answer says; nothing if the dependency had no part in it.
    pub const fn of_error(kind: ErrorType) -> Option<Health> {
        match kind {
            ErrorType::ConnectionRefused
            | ErrorType::ConnectionReset
            | ErrorType::ConnectTimeout
            | ErrorType::ConnectFailed
            | ErrorType::ReadTimeout
            | ErrorType::Dns
            | ErrorType::TlsHandshakeTimeout
            | ErrorType::TlsCertificate
            | ErrorType::TlsHandshake
            | ErrorType::MalformedAnswer => Some(Health::Failing),
            // The status says more; without it, this much is known.
            ErrorType::HttpStatus => Some(Health::Failing),
            ErrorType::InvalidRequest
            | ErrorType::BodyMissing
            | ErrorType::BodyDamaged
            | ErrorType::BodyUnavailable
            | ErrorType::BodyIncomplete
            | ErrorType::NotSent
            | ErrorType::Interrupted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_that_says_no_is_well_and_one_that_asks_for_less_is_strained() {
        let cases = [
            (Health::Well, vec![200, 204, 301, 400, 401, 404, 409, 422, 451]),
            (Health::Strained, vec![408, 429]),
            (Health::Failing, vec![500, 502, 503, 504, 599]),
        ];
        for (health, statuses) in cases {
            for status in statuses {
                assert_eq!(Health::of_status(status), health, "{status}");
            }
        }
    }

    #[test]
    fn what_went_wrong_on_our_side_says_nothing_about_the_dependency() {
        let ours: Vec<_> = ErrorType::ALL.into_iter().filter(|kind| Health::of_error(*kind).is_none()).collect();
        let expected = [
            ErrorType::InvalidRequest,
            ErrorType::BodyMissing,
            ErrorType::BodyDamaged,
            ErrorType::BodyUnavailable,
            ErrorType::BodyIncomplete,
            ErrorType::NotSent,
            ErrorType::Interrupted,
        ];
        assert_eq!(ours, expected);
        assert_eq!(Health::of_error(ErrorType::ConnectionRefused), Some(Health::Failing));
    }
}
