//! The kinds of events: their names, their meanings and their fields. The table in `docs/events.md` is made from this.

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A new task was stored.
    Accepted,
    /// An attempt ended.
    Attempt,
    /// A task waits for its next attempt.
    RetryScheduled,
    /// A task ended.
    Ended,
    /// A task became a dead letter.
    DeadLetter,
    /// An expired lease was taken over.
    LeaseTakenOver,
    /// A circuit breaker opened.
    BreakerOpened,
    /// A circuit breaker closed.
    BreakerClosed,
    /// A dependency seems to be gone for good.
    DependencyGone,
    /// A dependency was paused because it seems to be gone.
    Paused,
    /// An alert began to fire or is over.
    Alert,
}

impl Kind {
    /// Every kind, in the order of the reference.
    pub const ALL: [Kind; 11] = [
        Kind::Accepted,
        Kind::Attempt,
        Kind::RetryScheduled,
        Kind::Ended,
        Kind::DeadLetter,
        Kind::LeaseTakenOver,
        Kind::BreakerOpened,
        Kind::BreakerClosed,
        Kind::DependencyGone,
        Kind::Paused,
        Kind::Alert,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Accepted => "accepted",
            Kind::Attempt => "attempt",
            Kind::RetryScheduled => "retry-scheduled",
            Kind::Ended => "ended",
            Kind::DeadLetter => "dead-letter",
            Kind::LeaseTakenOver => "lease-taken-over",
            Kind::BreakerOpened => "breaker-opened",
            Kind::BreakerClosed => "breaker-closed",
            Kind::DependencyGone => "dependency-gone",
            Kind::Paused => "paused",
            Kind::Alert => "alert",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// What it says, in a sentence.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Kind::Accepted => "A new task was stored.",
            Kind::Attempt => {
                "An attempt ended, or this node took one over whose outcome is unknown (`unknown`). `attemptInRun` counts \
                 within the run, `attemptNumber` all attempts of the task."
            }
            Kind::RetryScheduled => "A task waits for its next attempt.",
            Kind::Ended => "A task ended, for whatever reason. Each end is told once.",
            Kind::DeadLetter => {
                "The task of the `ended` event before it is a dead letter: it ended FAILED or EXHAUSTED."
            }
            Kind::LeaseTakenOver => {
                "The lease of an attempt expired, because its process died or was silent for too long, and this node took \
                 the task over. Its `attempt` event follows."
            }
            Kind::BreakerOpened => "The circuit breaker of a dependency opened.",
            Kind::BreakerClosed => "The circuit breaker of a dependency closed.",
            Kind::DependencyGone => {
                "A dependency seems to be gone for good: it answered 410, or no attempt has succeeded for 24 hours. Told \
                 again at most once an hour, or once a day."
            }
            Kind::Paused => {
                "A dependency was paused because it seems to be gone and the task's policy says `pauseOnGone`."
            }
            Kind::Alert => {
                "An alert began to fire (`change` is `fired`) or is over (`resolved`), as `GET /alerts` lists it. `dependency` is \
                 `null` if the alert is about the service, and the name of a sink if that takes no notifications."
            }
        }
    }

    /// The fields that it has beside the common ones.
    pub(crate) const fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Accepted => &["dueAt"],
            Kind::Attempt => &[
                "attemptNumber",
                "attemptInRun",
                "maxAttempts",
                "run",
                "outcome",
                "errorType",
                "responseStatus",
                "durationMs",
                "backoffMs",
            ],
            Kind::RetryScheduled => &["dueAt"],
            Kind::Ended | Kind::DeadLetter => &["status", "statusReason", "attemptNumber", "attemptInRun", "run"],
            Kind::LeaseTakenOver => &["attemptNumber", "attemptInRun", "run"],
            Kind::BreakerOpened => &["reason", "until"],
            Kind::BreakerClosed | Kind::Paused => &[],
            Kind::DependencyGone => &["reason", "since"],
            Kind::Alert => &["change", "rule", "severity", "value", "why"],
        }
    }
}

/// The table of all kinds in Markdown, as `docs/events.md` has it.
pub fn reference() -> String {
    let row = |kind: Kind| {
        let fields: Vec<String> = kind.fields().iter().map(|field| format!("`{field}`")).collect();
        format!("| `{}` | {} | {} |\n", kind.as_str(), fields.join(", "), kind.meaning())
    };
    let rows: String = Kind::ALL.into_iter().map(row).collect();
    format!("| kind | its fields | meaning |\n| --- | --- | --- |\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_kind() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::from_name("Attempt"), None);
    }

    /// `REDRIVE_BLESS=1` writes the table again.
    #[test]
    fn the_document_has_this_table() {
        const BEGIN: &str = "<!-- generated: the kinds -->\n";
        const END: &str = "<!-- end -->";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
        let document = std::fs::read_to_string(path).unwrap();
        let (before, rest) = document.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let expected = format!("{before}{BEGIN}\n{}\n{END}{after}", reference());
        if std::env::var_os("REDRIVE_BLESS").is_some() {
            std::fs::write(path, &expected).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
    }
}
