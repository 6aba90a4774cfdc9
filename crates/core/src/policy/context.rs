//! Contexts: what kind of work a policy is for, and the defaults, ranges and caps that the standard gives it.
//!
//! A policy that names its context inherits from it: fields that it leaves out have the context's defaults. The context
//! also sets the limits that the policy is checked against (`redrive_standard::rules`): the number of retries and
//! their time.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What kind of work a policy is for. Each is a preset: a policy that only names its context is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Context {
    /// A call whose caller waits for the answer: 3 retries within 30 s.
    Sync,
    /// An event that is processed on its own: 5 retries within a day.
    Event,
    /// A webhook, after 1 s, 5 s, 30 s, 2 min, 15 min, 1 h, 4 h, give or take a fifth: 5 retries of at most 8, within a
    /// day.
    Webhook,
    /// A webhook whose receiver may be down for longer, after 30 s, 2 min, 10 min, 1 h, give or take a fifth: 4
    /// retries.
    WebhookPatient,
    /// An item of a batch job: 3 retries within a day.
    Batch,
    /// A unary gRPC call whose caller waits: 3 retries within 30 s.
    Grpc,
}

impl Context {
    /// Every context.
    pub const ALL: [Context; 6] =
        [Context::Sync, Context::Event, Context::Webhook, Context::WebhookPatient, Context::Batch, Context::Grpc];

    /// Its name in a policy.
    pub const fn as_str(self) -> &'static str {
        match self {
            Context::Sync => "sync",
            Context::Event => "event",
            Context::Webhook => "webhook",
            Context::WebhookPatient => "webhook-patient",
            Context::Batch => "batch",
            Context::Grpc => "grpc",
        }
    }

    /// The context with this name.
    pub fn from_name(name: &str) -> Option<Context> {
        Context::ALL.into_iter().find(|context| context.as_str() == name)
    }

    /// The kind of work, in words that fit after "for".
    pub const fn meaning(self) -> &'static str {
        match self {
            Context::Sync => "synchronous API calls",
            Context::Event => "async event processing",
            Context::Webhook | Context::WebhookPatient => "webhook delivery",
            Context::Batch => "batch job items",
            Context::Grpc => "gRPC unary calls",
        }
    }

    /// The default number of retries.
    pub const fn default_retries(self) -> u32 {
        match self {
            Context::Sync | Context::Batch | Context::Grpc => 3,
            Context::Event | Context::Webhook => 5,
            // One for each entry of its schedule.
            Context::WebhookPatient => 4,
        }
    }

    /// How many retries are allowed.
    pub const fn allowed_retries(self) -> RangeInclusive<u32> {
        match self {
            Context::Sync | Context::Batch | Context::Grpc => 1..=5,
            Context::Event => 1..=10,
            Context::Webhook | Context::WebhookPatient => 3..=8,
        }
    }

    /// How long all attempts together may take. The standard has two caps: a unary gRPC call has a caller who
    /// waits, as a synchronous one has; an item of a batch has not.
    pub const fn duration_cap(self) -> Duration {
        if self.is_waited_for() { Duration::from_secs(30) } else { Duration::from_secs(24 * 60 * 60) }
    }

    /// Whether a caller waits for the answer, so that an early error is better than a late answer.
    pub const fn is_waited_for(self) -> bool {
        matches!(self, Context::Sync | Context::Grpc)
    }

    /// Whether undelivered work must go to a dead-letter queue: events, webhooks, queues.
    pub const fn needs_dead_letters(self) -> bool {
        matches!(self, Context::Event | Context::Webhook | Context::WebhookPatient)
    }

    /// Whether it delivers webhooks, which follow a schedule that was promised to the receiver.
    pub const fn is_webhook(self) -> bool {
        matches!(self, Context::Webhook | Context::WebhookPatient)
    }

    /// The waits before its retries, where it follows a schedule: R-3's for webhooks, and a more patient one.
    pub(super) const fn schedule_ms(self) -> Option<&'static [u64]> {
        match self {
            Context::Webhook => Some(&[1_000, 5_000, 30_000, 120_000, 900_000, 3_600_000, 14_400_000]),
            Context::WebhookPatient => Some(&[30_000, 120_000, 600_000, 3_600_000]),
            _ => None,
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::Backoff;
    use crate::jitter::Jitter;
    use crate::policy::{Policy, Spec};

    fn preset(context: Context) -> Policy {
        Policy::resolve(&Spec { context: Some(context), ..Spec::default() }).unwrap()
    }

    fn schedule(seconds: &[u64]) -> Backoff {
        Backoff::Schedule { delays: seconds.iter().copied().map(Duration::from_secs).collect() }
    }

    #[test]
    fn every_name_leads_back_to_its_context() {
        for context in Context::ALL {
            assert_eq!(Context::from_name(context.as_str()), Some(context));
            assert_eq!(serde_json::to_value(context).unwrap(), context.as_str());
        }
        assert_eq!(Context::from_name("Sync"), None);
    }

    #[test]
    fn retries_ranges_and_caps_are_the_standards() {
        // context, retries by default, allowed, cap in s
        for (context, default, allowed, cap) in [
            (Context::Sync, 3, 1..=5, 30),
            (Context::Event, 5, 1..=10, 86_400),
            (Context::Webhook, 5, 3..=8, 86_400),
            (Context::WebhookPatient, 4, 3..=8, 86_400),
            (Context::Batch, 3, 1..=5, 86_400),
            (Context::Grpc, 3, 1..=5, 30),
        ] {
            let policy = preset(context);
            assert_eq!(policy.max_attempts, default + 1, "{context}");
            assert_eq!(context.allowed_retries(), allowed, "{context}");
            assert_eq!(policy.total_budget, Duration::from_secs(cap), "{context}");
            assert_eq!(context.duration_cap(), Duration::from_secs(cap), "{context}");
        }
    }

    #[test]
    fn all_but_webhooks_double_from_one_second_to_thirty_with_full_jitter() {
        let second = Duration::from_secs(1);
        let doubling = Backoff::Exponential { initial: second, multiplier: 2.0, max: 30 * second };
        for context in [Context::Sync, Context::Event, Context::Batch, Context::Grpc] {
            assert_eq!(
                (preset(context).backoff, preset(context).jitter),
                (doubling.clone(), Jitter::Full),
                "{context}"
            );
        }
    }

    #[test]
    fn webhooks_follow_their_schedules_give_or_take_a_fifth() {
        let (standard, patient) = (preset(Context::Webhook), preset(Context::WebhookPatient));
        assert_eq!(standard.backoff, schedule(&[1, 5, 30, 120, 900]));
        let whole = Spec { context: Some(Context::Webhook), max_attempts: Some(8), ..Spec::default() };
        let whole = Policy::resolve(&whole).unwrap();
        assert_eq!(whole.backoff, schedule(&[1, 5, 30, 120, 900, 3_600, 14_400]));
        assert_eq!(patient.backoff, schedule(&[30, 120, 600, 3_600]));
        for policy in [standard, patient] {
            assert_eq!(policy.jitter, Jitter::Proportional { ratio: 0.2 });
        }
    }

    #[test]
    fn a_webhook_lists_as_many_waits_as_it_makes_retries() {
        for context in Context::ALL.into_iter().filter(|context| context.is_webhook()) {
            for max_attempts in [2, 3, 4, 5, 6, 8] {
                let spec = Spec { context: Some(context), max_attempts: Some(max_attempts), ..Spec::default() };
                let listed = Policy::resolve(&spec).unwrap().to_spec().schedule_ms.unwrap();
                let all = context.schedule_ms().unwrap().len();
                assert_eq!(listed.len(), all.min(max_attempts as usize - 1), "{context}, {max_attempts}");
            }
        }
    }

    #[test]
    fn all_attempts_of_a_call_that_is_waited_for_fit_into_its_time() {
        for context in Context::ALL.into_iter().filter(|context| context.is_waited_for()) {
            let policy = preset(context);
            let waits: Duration = (1..policy.max_attempts).map(|retry| policy.backoff.ceiling(retry)).sum();
            let longest = waits + policy.attempt_timeout * policy.max_attempts;
            assert!(longest <= policy.total_budget, "{context}: {longest:?}");
        }
    }
}
