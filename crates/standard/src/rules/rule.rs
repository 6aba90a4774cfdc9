//! The ten rules of the standard, with what it takes to explain each.

use std::fmt;

/// A rule of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Exponential backoff with full jitter.
    R1,
    /// Maximum retry count.
    R2,
    /// Total retry duration.
    R3,
    /// What is retried and what is not.
    R4,
    /// Retry-After.
    R5,
    /// Idempotency.
    R6,
    /// Retry budget.
    R7,
    /// Dead letters.
    R8,
    /// Security.
    R9,
    /// Observability.
    R10,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Rule; 10] =
        [Rule::R1, Rule::R2, Rule::R3, Rule::R4, Rule::R5, Rule::R6, Rule::R7, Rule::R8, Rule::R9, Rule::R10];

    /// Its number, such as `R-7`.
    pub const fn id(self) -> &'static str {
        match self {
            Rule::R1 => "R-1",
            Rule::R2 => "R-2",
            Rule::R3 => "R-3",
            Rule::R4 => "R-4",
            Rule::R5 => "R-5",
            Rule::R6 => "R-6",
            Rule::R7 => "R-7",
            Rule::R8 => "R-8",
            Rule::R9 => "R-9",
            Rule::R10 => "R-10",
        }
    }

    /// The rule with this number: `R-7`, and also `r7` and `7`.
    pub fn from_id(text: &str) -> Option<Rule> {
        let number = text.strip_prefix(['R', 'r']).map_or(text, |rest| rest.strip_prefix('-').unwrap_or(rest));
        Rule::ALL.into_iter().find(|rule| &rule.id()[2..] == number)
    }

    /// Its title.
    pub const fn title(self) -> &'static str {
        self.text().title
    }

    /// What it asks for, a line each, with MUST and SHOULD as the standard uses them.
    pub const fn asks(self) -> &'static [&'static str] {
        self.text().asks
    }

    /// Why, in a few sentences.
    pub const fn why(self) -> &'static str {
        self.text().why
    }

    /// An example that keeps it, in TOML.
    pub const fn good(self) -> &'static str {
        self.text().good
    }

    /// An example that breaks it, in TOML.
    pub const fn bad(self) -> &'static str {
        self.text().bad
    }

    const fn text(self) -> &'static Text {
        match self {
            Rule::R1 => &BACKOFF,
            Rule::R2 => &RETRIES,
            Rule::R3 => &DURATION,
            Rule::R4 => &CLASSIFICATION,
            Rule::R5 => &RETRY_AFTER,
            Rule::R6 => &IDEMPOTENCY,
            Rule::R7 => &BUDGET,
            Rule::R8 => &DEAD_LETTERS,
            Rule::R9 => &SECURITY,
            Rule::R10 => &OBSERVABILITY,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

struct Text {
    title: &'static str,
    asks: &'static [&'static str],
    why: &'static str,
    good: &'static str,
    bad: &'static str,
}

static BACKOFF: Text = Text {
    title: "Exponential backoff with full jitter",
    asks: &[
        "Retries MUST wait for a random time between zero and a ceiling that doubles from retry to retry.",
        "The first ceiling MUST default to 1 s, the longest to 30 s.",
        "Decorrelated jitter MAY be used instead.",
        "Equal jitter and fixed intervals MUST NOT be used.",
    ],
    why: "When a dependency fails, all of its clients fail at the same moment. If they all wait for the same time they \
        all come back at the same moment, too, and bring it down again. A random wait spreads them out; a growing one \
        gives the dependency more room the longer it is in trouble. Full jitter spreads them the furthest and costs the \
        fewest calls in all: `redrive simulate --scenario occ` shows it.",
    good: r#"[policies.payments]
context = "sync"                 # exponential, full jitter, 1 s to 30 s"#,
    bad: r#"[policies.payments]
context = "sync"
backoff = "fixed"                # all clients again after one second"#,
};

static RETRIES: Text = Text {
    title: "Maximum retry count",
    asks: &[
        "Retries MUST have a maximum number.",
        "Synchronous API calls: 3 by default, 1 to 5 allowed. gRPC unary calls and batch job items: the same.",
        "Async event processing: 5 by default, 1 to 10 allowed.",
        "Webhook delivery: 5 by default, 3 to 8 allowed.",
        "More than that needs the approval of the Integration Architecture Board.",
    ],
    why: "Each retry is one more call to a dependency that is in trouble. Three layers that each retry five times make \
        216 calls out of one. What did not succeed after five tries rarely does after twenty. (`maxAttempts` \
        counts the first send as well, so it is one more than the number of retries.)",
    good: r#"[policies.import]
context = "event"
maxAttempts = 11                 # the first send and ten retries"#,
    bad: r#"[policies.import]
context = "event"
maxAttempts = 16                 # 15 retries; with the board's approval:
# approval = { by = "Integration Architecture Board", until = "2027-06-30", maxAttempts = 16, reason = "partner restarts nightly" }"#,
};

static DURATION: Text = Text {
    title: "Total retry duration",
    asks: &[
        "Retries MUST end after a total time, even if some are left.",
        "Synchronous calls MUST NOT go on for more than 30 s, events and webhooks for more than 24 h.",
        "Webhooks SHOULD be retried after increasing intervals: 1 s, 5 s, 30 s, 2 min, 15 min, 1 h, 4 h.",
        "After the last attempt the message MUST go to a dead-letter queue, and an alert MUST fire.",
    ],
    why: "A caller that has given up does not need the answer any more; retries after that only cost. And an attempt that \
        may take all of the time leaves none for the retries, so the timeout of one attempt must be smaller than the whole.",
    good: r#"[policies.quotes]
context = "sync"
totalBudgetMs = 10000
attemptTimeoutMs = 2000"#,
    bad: r#"[policies.quotes]
context = "sync"
totalBudgetMs = 120000           # no caller waits for two minutes"#,
};

static CLASSIFICATION: Text = Text {
    title: "What is retried and what is not",
    asks: &[
        "Failures MUST be classified before they are retried.",
        "MUST be retried: 408, 429, 500, 502, 503, 504; UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED; \
            connections refused or reset, socket timeouts, TLS handshake timeouts, and DNS failures (at most 2 attempts).",
        "MUST NOT be retried: 400, 401, 403, 404, 409, 422; INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, \
            UNAUTHENTICATED, UNIMPLEMENTED; TLS certificate errors, serialization errors, invalid configuration, revoked \
            tokens.",
    ],
    why: "A request that is wrong stays wrong: sending it again costs the dependency work and delays the discovery of the \
        mistake. A dependency that is overloaded or restarting mostly recovers, and then the retry succeeds.",
    good: r#"[policies.orders]
context = "event"                # the standard's table, unless it is changed"#,
    bad: r#"[policies.orders]
context = "event"
retryableStatusCodes = [404, 408, 429, 500, 502, 503, 504]"#,
};

static RETRY_AFTER: Text = Text {
    title: "Retry-After",
    asks: &[
        "The client MUST wait for at least as long as a Retry-After header says.",
        "It MUST take precedence over the computed wait where it is longer.",
        "Where it is longer than the time that is left, the client MUST fail at once.",
    ],
    why: "The dependency knows best when it can serve again. A client that comes back earlier is turned away once more, \
        or blocked.",
    good: r#"[[services]]
name = "shop"
context = "sync"

[[services.dependencies]]
name = "billing"
retryAfter = "honoured"
retryBudget = { ratio = 0.2, window = "30s", per = "dependency", opensBreaker = true }"#,
    bad: r#"[[services]]
name = "shop"
context = "sync"

[[services.dependencies]]
name = "billing"
retryAfter = "capped"            # retries after a few seconds in any case
retryBudget = { ratio = 0.2, window = "30s", per = "dependency", opensBreaker = true }"#,
};

static IDEMPOTENCY: Text = Text {
    title: "Idempotency",
    asks: &[
        "Retries MUST be safe. GET, HEAD, OPTIONS, PUT and DELETE are; POST and PATCH MUST carry an Idempotency-Key.",
        "The client MUST make a UUID v4 per logical operation and MUST use the same key for all of its attempts.",
        "Keys MUST be at most 64 characters long.",
        "Servers MUST keep keys for at least 24 hours and answer duplicates with the first answer.",
        "Event consumers MUST deduplicate by event id, over at least 7 days.",
    ],
    why: "A timeout says that no answer came, not that nothing happened. The only way to send it again without doing it twice \
        is to let the receiver recognise it.",
    good: r#"[[services]]
name = "shop"
context = "sync"

[[services.dependencies]]
name = "payments"
methods = ["POST"]
idempotency = { key = "uuid-v4", per = "operation", retention = "24h" }
retryBudget = { ratio = 0.2, window = "30s", per = "dependency", opensBreaker = true }"#,
    bad: r#"[[services]]
name = "shop"
context = "sync"

[[services.dependencies]]
name = "payments"
methods = ["POST"]               # and no idempotency: a second charge
retryBudget = { ratio = 0.2, window = "30s", per = "dependency", opensBreaker = true }"#,
};

static BUDGET: Text = Text {
    title: "Retry budget",
    asks: &[
        "At most 20 % of all requests over a rolling 30-second window may be retries.",
        "When the budget is spent, retries MUST be suppressed and the original error returned.",
        "The budget MUST be kept per downstream dependency.",
        "A spent budget SHOULD open the circuit breaker.",
    ],
    why: "A maximum per request does not bound the whole: 1,000 requests a second of which half fail become 2,500 with \
        three retries each, at the very moment when the dependency can least bear it. With a budget they stay at 1,200. \
        `redrive simulate` shows the difference.",
    good: r#"[[services]]
name = "shop"
context = "sync"

[[services.dependencies]]
name = "search"
retryBudget = { ratio = 0.2, window = "30s", per = "dependency", opensBreaker = true }"#,
    bad: r#"[[services]]
name = "shop"
context = "sync"

[[services.dependencies]]
name = "search"
policy = "sync"                  # and no retryBudget"#,
};

static DEAD_LETTERS: Text = Text {
    title: "Dead-letter queue",
    asks: &[
        "Events, webhooks and queues: a message that has used up its retries MUST go to a dead-letter queue.",
        "Dead letters MUST keep the payload, the headers and the history of the retries.",
        "They MUST raise an alert.",
        "Messages MUST NOT be dropped in silence.",
    ],
    why: "Retrying for ever blocks the queue and hides the bug; dropping loses messages. A dead-letter queue keeps what a \
        person has to look at.",
    good: r#"[[services]]
name = "shop"
context = "webhook"

[[services.dependencies]]
name = "partners"
deadLetterQueue = { name = "hooks-dead", alert = true }
retryBudget = { ratio = 0.2, window = "30s", per = "dependency", opensBreaker = true }"#,
    bad: r#"[[services]]
name = "shop"
context = "webhook"

[[services.dependencies]]
name = "partners"
whenExhausted = "drop"
retryBudget = { ratio = 0.2, window = "30s", per = "dependency", opensBreaker = true }"#,
};

static SECURITY: Text = Text {
    title: "Security",
    asks: &[
        "Retries MUST use the original authentication; an expired token MUST be refreshed first. They MUST NOT fall back \
            to weaker credentials or to none.",
        "Logs of retries MUST NOT contain bodies, tokens or personal data.",
        "TLS certificate errors MUST NOT be retried and MUST be surfaced at once.",
        "The retry budget (R-7) is mandatory: it keeps many clients from becoming an attack.",
    ],
    why: "A certificate that cannot be trusted may mean that an attacker intercepts the connection: a retry sends them the \
        request once more. And an attacker who can make a first attempt fail must not get an easier second one.",
    good: r#"[[services]]
name = "shop"
context = "sync"
logging = { bodies = false }"#,
    bad: r#"[[services]]
name = "shop"
context = "sync"
logging = { bodies = true }      # passwords, cards and addresses in the log"#,
};

static OBSERVABILITY: Text = Text {
    title: "Observability",
    asks: &[
        "Every retry MUST be logged with correlation_id, dependency, attempt, max_attempts, backoff_ms, error_type and \
            idempotency_key.",
        "There MUST be metrics: retry_attempts_total, retry_exhausted_total, retry_backoff_duration_seconds, \
            retry_budget_utilization_ratio, dlq_messages_total.",
    ],
    why: "A rise in retries is often the first sign of a problem. Without these fields and metrics it is not seen, and \
        afterwards it cannot be told what happened.",
    good: r#"[[services]]
name = "shop"
context = "sync"
logging = { fields = [
  "correlation_id", "dependency", "attempt", "max_attempts", "backoff_ms", "error_type", "idempotency_key",
] }"#,
    bad: r#"[[services]]
name = "shop"
context = "sync"
logging = { fields = ["attempt"] }"#,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_known_by_its_number_in_several_spellings() {
        for rule in Rule::ALL {
            let number = &rule.id()[2..];
            for text in [rule.id().to_owned(), format!("r{number}"), format!("r-{number}"), number.to_owned()] {
                assert_eq!(Rule::from_id(&text), Some(rule), "{text}");
            }
        }
        for text in ["", "R", "R-", "R-0", "R-11", "R-01", "rule 1", "RR-7", "R--7", "-7"] {
            assert_eq!(Rule::from_id(text), None, "{text}");
        }
    }
}
