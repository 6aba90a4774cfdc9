//! What alerts are about.

/// Something that an alert is raised for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// Tasks became dead letters. The value counts those of the rule's window.
    DeadLetter,
    /// Dead letters become more. The value counts those of the rule's window.
    DeadLetterGrowth,
    /// The share of tasks that were retried.
    RetryRate,
    /// The share of tasks that became dead letters.
    DeadLetterRate,
    /// The mean number of attempts of the tasks that were delivered.
    AttemptsToSuccess,
    /// The number of tasks that are retried and were accepted more than 24 hours ago.
    LongInRetry,
    /// The share of the retried tasks that were delivered by their second attempt.
    SecondAttemptSuccess,
    /// A circuit breaker is not closed.
    BreakerOpen,
    /// A dependency showed a certificate that cannot be trusted. The value counts attempts of the rule's window.
    CertificateError,
    /// A dependency is paused.
    DependencyPaused,
    /// Retries of a dependency wait because its retry budget is spent.
    BudgetExhausted,
    /// A dependency seems to be gone for good.
    DependencyGone,
    /// Rows of the store that this version cannot read.
    RowsSetAside,
    /// Dead letters that the cleaner will remove within a day.
    DeadLettersExpiring,
    /// A sink does not receive what it is sent.
    SinkFailing,
    /// The store fails.
    StoreUnavailable,
    /// The time is uncertain, so nothing is claimed.
    TimeUncertain,
    /// A part of the service failed, such as a loop of the engine, and the process exits.
    PartFailed,
}

/// How urgent an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know.
    Info,
    /// To be looked at during the day.
    Warning,
    /// To be looked at now.
    Critical,
}

impl Signal {
    /// Every signal.
    pub const ALL: [Signal; 18] = [
        Signal::DeadLetter,
        Signal::DeadLetterGrowth,
        Signal::RetryRate,
        Signal::DeadLetterRate,
        Signal::AttemptsToSuccess,
        Signal::LongInRetry,
        Signal::SecondAttemptSuccess,
        Signal::BreakerOpen,
        Signal::CertificateError,
        Signal::DependencyPaused,
        Signal::BudgetExhausted,
        Signal::DependencyGone,
        Signal::RowsSetAside,
        Signal::DeadLettersExpiring,
        Signal::SinkFailing,
        Signal::StoreUnavailable,
        Signal::TimeUncertain,
        Signal::PartFailed,
    ];

    /// The name of its rule.
    pub const fn as_str(self) -> &'static str {
        match self {
            Signal::DeadLetter => "dead-letter",
            Signal::DeadLetterGrowth => "dead-letter-growth",
            Signal::RetryRate => "retry-rate",
            Signal::DeadLetterRate => "dead-letter-rate",
            Signal::AttemptsToSuccess => "attempts-to-success",
            Signal::LongInRetry => "long-in-retry",
            Signal::SecondAttemptSuccess => "second-attempt-success",
            Signal::BreakerOpen => "breaker-open",
            Signal::CertificateError => "certificate-error",
            Signal::DependencyPaused => "dependency-paused",
            Signal::BudgetExhausted => "budget-exhausted",
            Signal::DependencyGone => "dependency-gone",
            Signal::RowsSetAside => "rows-set-aside",
            Signal::DeadLettersExpiring => "dead-letters-expiring",
            Signal::SinkFailing => "sink-failing",
            Signal::StoreUnavailable => "store-unavailable",
            Signal::TimeUncertain => "time-uncertain",
            Signal::PartFailed => "part-failed",
        }
    }

    /// The signal with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Signal::ALL.into_iter().find(|signal| signal.as_str() == name)
    }

    /// The name of its alert in a monitoring system: `RedriveDeadLetter`.
    pub fn alert_name(self) -> String {
        let words = self.as_str().split('-');
        let capitalised = words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]);
        std::iter::once("Redrive".to_owned()).chain(capitalised).collect()
    }

    /// Whether its notifications are sent directly: the store or the engine, by which others are delivered, may be what fails.
    pub const fn is_direct(self) -> bool {
        matches!(self, Signal::StoreUnavailable | Signal::TimeUncertain | Signal::PartFailed)
    }

    /// Whether the value covers a time, the window of the rule; other values are those of the moment.
    pub const fn has_window(self) -> bool {
        matches!(
            self,
            Signal::DeadLetter
                | Signal::DeadLetterGrowth
                | Signal::RetryRate
                | Signal::DeadLetterRate
                | Signal::AttemptsToSuccess
                | Signal::SecondAttemptSuccess
                | Signal::CertificateError
                | Signal::SinkFailing
        )
    }

    /// Whether low values are bad.
    pub const fn is_bad_when_low(self) -> bool {
        matches!(self, Signal::SecondAttemptSuccess)
    }

    /// Whether its notifications wait for no others: an operator has to know at once.
    pub const fn is_urgent(self) -> bool {
        matches!(self, Signal::CertificateError) || self.is_direct()
    }

    /// Whether all nodes over one store read the same value, so that one of them tells the sinks. Of other signals each node
    /// reads its own part.
    pub const fn is_shared(self) -> bool {
        matches!(
            self,
            Signal::LongInRetry
                | Signal::BreakerOpen
                | Signal::DependencyPaused
                | Signal::RowsSetAside
                | Signal::DeadLettersExpiring
        )
    }

    /// Whether sinks are never told: a notification about a sink would be one more that it does not receive.
    pub const fn is_local(self) -> bool {
        matches!(self, Signal::SinkFailing)
    }
}

impl Severity {
    /// Every severity.
    pub const ALL: [Severity; 3] = [Severity::Info, Severity::Warning, Severity::Critical];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }

    /// The severity with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Severity::ALL.into_iter().find(|severity| severity.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_what_they_name() {
        for signal in Signal::ALL {
            assert_eq!(Signal::from_name(signal.as_str()), Some(signal));
        }
        for severity in Severity::ALL {
            assert_eq!(Severity::from_name(severity.as_str()), Some(severity));
        }
        assert_eq!(Signal::DeadLettersExpiring.alert_name(), "RedriveDeadLettersExpiring");
    }
}
