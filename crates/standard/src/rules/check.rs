//! The catalogue of checks, each with its rule, the gate that stops it and why it matters.
//!
//! Gates follow the standard's enforcement table. Checks that the table does not name follow the same pattern: a
//! mistake in the code or the policy blocks the merge, something missing in production blocks the deploy, and a SHOULD
//! is advice.

use super::rule::Rule;

/// What a finding blocks, the mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gate {
    /// Nothing is blocked: the standard says SHOULD.
    Advice,
    /// The Integration Architecture Board must approve it.
    Approval,
    /// Deployment is blocked.
    Deploy,
    /// The merge is blocked.
    Merge,
}

impl Gate {
    /// Every gate, the mildest first.
    pub const ALL: [Gate; 4] = [Gate::Advice, Gate::Approval, Gate::Deploy, Gate::Merge];

    /// Its name for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Gate::Advice => "advice",
            Gate::Approval => "approval",
            Gate::Deploy => "deploy",
            Gate::Merge => "merge",
        }
    }

    /// What it does, for people.
    pub const fn action(self) -> &'static str {
        match self {
            Gate::Advice => "advice",
            Gate::Approval => "needs approval",
            Gate::Deploy => "blocks deploy",
            Gate::Merge => "blocks merge",
        }
    }

    /// The gate with this name.
    pub fn from_name(name: &str) -> Option<Gate> {
        Gate::ALL.into_iter().find(|gate| gate.as_str() == name)
    }
}

/// One check of the standard.
#[derive(Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, stable.
    pub id: &'static str,
    /// The rule that it belongs to.
    pub rule: Rule,
    /// What a finding of it blocks.
    pub gate: Gate,
    /// The mistake that it finds, in a few words.
    pub title: &'static str,
    /// Why it matters, in a sentence.
    pub why: &'static str,
}

impl Check {
    /// The check with this name.
    pub fn named(id: &str) -> Option<&'static Check> {
        Check::ALL.iter().copied().find(|check| check.id == id)
    }
}

macro_rules! checks {
    ($($constant:ident = $rule:ident $gate:ident $id:literal $title:literal: $why:literal;)*) => {
        $(pub(super) static $constant: Check =
            Check { id: $id, rule: Rule::$rule, gate: Gate::$gate, title: $title, why: $why };)*

        impl Check {
            /// Every check, by rule.
            pub const ALL: &[&'static Check] = &[$(&$constant),*];
        }
    };
}

checks! {
    FIXED_INTERVAL = R1 Merge "fixed-interval" "the same wait before every retry":
        "Clients that failed together come back together, as often as they did, and keep the dependency down.";
    LINEAR_BACKOFF = R1 Merge "linear-backoff" "waits that grow by addition":
        "A linear wait backs off too slowly: a dependency that stays down is called nearly as often as before.";
    MISSING_JITTER = R1 Merge "missing-jitter" "waits that are the same for all clients":
        "Without jitter all clients that failed at one moment retry at one moment, again and again.";
    EQUAL_JITTER = R1 Merge "equal-jitter" "equal jitter":
        "Half of the wait is the same for all clients, so the retries come in clusters after it.";
    PROPORTIONAL_JITTER = R1 Merge "proportional-jitter" "a little jitter around an exponential wait":
        "Most of the wait is the same for all clients, so the retries come in waves instead of evenly.";
    SCHEDULE_ELSEWHERE = R1 Merge "schedule-outside-webhooks" "a schedule where no schedule was promised":
        "A schedule is a promise to the receiver of a webhook; elsewhere exponential backoff with full jitter spreads the load better.";
    LITTLE_JITTER = R1 Merge "little-jitter" "a schedule with next to no jitter":
        "A few per cent of jitter leave a burst of events a burst, only later.";
    RETRIES_OUT_OF_RANGE = R2 Approval "retries-out-of-range" "more or fewer retries than the context allows":
        "Each retry adds load to a dependency that is in trouble; too few retries fail in a short outage.";
    NEVER_RETRIES = R2 Advice "never-retries" "a policy that makes no retry":
        "A failure that would have passed in a second becomes a failed request; where that is meant, no retry policy is needed.";
    DURATION_OVER_CAP = R3 Merge "duration-over-cap" "retries that go on for too long":
        "The caller has stopped waiting for the answer, and a retry that late mostly does harm.";
    ATTEMPT_TIMEOUT = R3 Merge "attempt-timeout-too-long" "an attempt that may take all of the time":
        "One attempt that hangs uses up the time of all the retries that should have saved it.";
    ATTEMPTS_TOO_LATE = R3 Advice "attempts-too-late" "attempts that come after the time is up":
        "The number of attempts promises more than the time leaves room for: the last ones are never made.";
    SCHEDULE_NOT_INCREASING = R3 Advice "schedule-not-increasing" "a webhook's waits that do not grow":
        "A receiver that is still down needs more time each time, not the same or less.";
    RETRIES_NON_RETRYABLE = R4 Merge "retries-non-retryable" "a retry of what cannot get better":
        "The same request gets the same refusal: the retries cost the dependency work, hide a bug and delay the error.";
    LEAVES_OUT_RETRYABLE = R4 Merge "leaves-out-retryable" "no retry of what mostly passes":
        "A failure that would have passed in a second becomes a failed request that a person has to deal with.";
    DNS_ATTEMPTS = R4 Merge "dns-attempts" "more than two tries of a name that does not resolve":
        "A name that does not resolve twice is usually wrong, and resolvers are shared by all clients.";
    UNLISTED_STATUS = R4 Advice "unlisted-status" "a retry of a status that the standard does not name":
        "Failures that the standard does not name as temporary are rarely fixed by sending the request again.";
    IGNORES_RETRY_AFTER = R5 Merge "ignores-retry-after" "a Retry-After that is not waited for":
        "Clients that ignore a dependency's request for time get blocked, or keep it down.";
    UNKEYED_WRITES = R6 Merge "unkeyed-writes" "POST or PATCH retried without an idempotency key":
        "A timeout does not mean that nothing happened: without a key the retry is a second charge or a second order.";
    KEY_PER_ATTEMPT = R6 Merge "key-per-attempt" "a new idempotency key for each attempt":
        "A key that changes tells the server that each retry is new, which is the same as having none.";
    KEY_NOT_UUID = R6 Merge "key-not-uuid" "an idempotency key that is no random UUID":
        "Keys that are counted, hashed or made by hand collide one day, and then one customer gets another's answer.";
    KEY_TOO_LONG = R6 Merge "key-too-long" "an idempotency key of more than 64 characters":
        "Servers cut off or refuse longer keys, and keys that were cut off collide.";
    KEY_RETENTION = R6 Deploy "key-retention" "idempotency keys that are kept for less than 24 hours":
        "A retry that comes after its key was forgotten is done a second time.";
    DUPLICATES_UNANSWERED = R6 Deploy "duplicates-unanswered" "duplicates that do not get the first answer":
        "A client whose first answer got lost never learns what became of its request.";
    MISSING_DEDUPE = R6 Deploy "missing-dedupe" "an event consumer without a deduplication store":
        "Events are delivered at least once: a consumer that does not look processes some of them twice.";
    DEDUPE_RETENTION = R6 Deploy "dedupe-retention" "event ids that are kept for less than 7 days":
        "An event that is replayed from a dead-letter queue next week is processed again.";
    DEDUPE_KEY = R6 Deploy "dedupe-key" "events that are told apart by something else than their id":
        "Two events with the same content are two events, and one event sent twice is one.";
    MISSING_BUDGET = R7 Deploy "missing-budget" "no retry budget":
        "Without a budget a thousand requests a second with half of them failing become two and a half thousand.";
    BUDGET_OVER_LIMIT = R7 Deploy "budget-over-limit" "a retry budget of more than 20 %":
        "A dependency in trouble gets that much more load at the moment when it can least bear it.";
    BUDGET_WINDOW = R7 Deploy "budget-window" "a retry budget over another window than 30 seconds":
        "A longer window saves up retries for one burst; a shorter one forgets the burst before it is over.";
    BUDGET_SHARED = R7 Deploy "budget-shared" "a retry budget that is not kept per dependency":
        "One dependency that is down uses up the retries of all the others.";
    BUDGET_NOT_ENFORCED = R7 Deploy "budget-not-enforced" "retries that go on when the budget is spent":
        "A budget that suppresses no retry does not protect the dependency, and callers wait for retries in vain.";
    BUDGET_WITHOUT_BREAKER = R7 Advice "budget-without-breaker" "a spent budget that opens no circuit breaker":
        "A budget that is spent says that the dependency is down; the first attempts keep hitting it all the same.";
    BUDGET_REFUNDS = R7 Advice "budget-refunds" "a retry budget that refunds retries which succeed":
        "While the dependency is healthy, more than a fifth of its requests may be retries: a backlog drains quickly, and R-7 holds to the letter only while it fails.";
    MISSING_DEAD_LETTERS = R8 Deploy "missing-dead-letter-queue" "no dead-letter queue for async work":
        "Messages that could not be delivered are lost without a trace.";
    DEAD_LETTERS_INCOMPLETE = R8 Deploy "dead-letters-incomplete" "dead letters that do not keep everything":
        "Without its payload, headers and history a dead letter can be neither understood nor sent again.";
    DEAD_LETTERS_SILENT = R8 Deploy "dead-letters-silent" "dead letters that raise no alert":
        "A queue that is not watched is a slow way of dropping messages.";
    DROPS_MESSAGES = R8 Merge "drops-messages" "messages that are dropped when their retries are used up":
        "A lost message, such as a customer's order, leaves nothing to find it by.";
    RETRIES_CERTIFICATE_ERRORS = R9 Merge "retries-certificate-errors" "a retry after a TLS certificate error":
        "An attacker may have intercepted the connection, and a retry sends them the request once more.";
    WEAKENS_AUTHENTICATION = R9 Merge "weakens-authentication" "a retry with weaker credentials":
        "An attacker who can make the first attempt fail could get around the authentication.";
    LOGS_SECRETS = R9 Merge "logs-secrets" "bodies, tokens or personal data in the log":
        "Logs are read, copied and kept by many more people and machines than the data itself may be.";
    MISSING_LOG_FIELDS = R10 Deploy "missing-log-fields" "retries that are logged without what identifies them":
        "Without these fields it cannot be told which request was retried, how often and why.";
    MISSING_METRICS = R10 Deploy "missing-metrics" "missing metrics":
        "A retry storm shows first in the metrics.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back_to_their_checks() {
        for check in Check::ALL {
            assert_eq!(Check::named(check.id), Some(*check));
            assert_eq!(Check::ALL.iter().filter(|other| other.id == check.id).count(), 1, "{}", check.id);
        }
        for gate in Gate::ALL {
            assert_eq!(Gate::from_name(gate.as_str()), Some(gate));
        }
    }

    #[test]
    fn every_rule_has_a_check_and_they_are_in_the_order_of_the_rules() {
        assert!(Check::ALL.windows(2).all(|pair| pair[0].rule <= pair[1].rule));
        for rule in Rule::ALL {
            assert!(Check::ALL.iter().any(|check| check.rule == rule), "{rule:?}");
        }
    }

    #[test]
    fn the_gates_are_those_of_the_enforcement_table() {
        for (check, gate) in [
            (&FIXED_INTERVAL, Gate::Merge),
            (&UNKEYED_WRITES, Gate::Merge),
            (&RETRIES_NON_RETRYABLE, Gate::Merge),
            (&MISSING_BUDGET, Gate::Deploy),
            (&RETRIES_OUT_OF_RANGE, Gate::Approval),
            (&MISSING_DEAD_LETTERS, Gate::Deploy),
        ] {
            assert_eq!(check.gate, gate, "{}", check.id);
        }
    }
}
