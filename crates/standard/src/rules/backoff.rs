//! R-1, and R-3's schedule: waits that grow, and that are spread.
//!
//! A policy is checked by its waits and not by the name of its backoff: a multiplier of 1.0001 is a fixed interval.

use std::time::Duration;

use redrive_core::backoff::Backoff;
use redrive_core::duration::duration_text;
use redrive_core::jitter::Jitter;

use super::check::{
    EQUAL_JITTER, FIXED_INTERVAL, LINEAR_BACKOFF, LITTLE_JITTER, MISSING_JITTER, PROPORTIONAL_JITTER,
    SCHEDULE_ELSEWHERE, SCHEDULE_NOT_INCREASING,
};
use super::finding::{Finding, Step};
use super::policy::{PolicyCheck, finding};

/// Less than this of a wait spreads nothing.
const LEAST_JITTER_RATIO: f64 = 0.1;
/// Over three retries and more, a wait that does not grow to this many times the first one hardly grows at all.
const LEAST_GROWTH: f64 = 2.0;
/// Two waits that differ by no more than this part are the same to whoever is waited for.
const SAME_WITHIN: f64 = 0.1;

const BACKOFF: &str = "backoff";
const JITTER: &str = "jitterType";
const SCHEDULE: &str = "scheduleMs";

impl PolicyCheck<'_> {
    /// The longest waits before the retries that it makes.
    fn ceilings(&self) -> Vec<Duration> {
        (1..self.policy.max_attempts).map(|retry| self.policy.backoff.ceiling(retry)).collect()
    }

    /// exponential, not fixed, not linear.
    pub(super) fn growth(&self) -> Option<Finding> {
        const FIX: &str = "leave backoff out, or use exponential with a multiplier of 2";
        let ceilings = self.ceilings();
        let first = ceilings.first().copied().unwrap_or_default();
        let text = duration_text(first);
        match &self.policy.backoff {
            Backoff::Fixed { .. } => {
                let wrong = format!("the wait does not grow: {text} before every retry, jitter aside");
                Some(finding(&FIXED_INTERVAL, BACKOFF, wrong, FIX))
            }
            Backoff::Linear { .. } => {
                Some(finding(&LINEAR_BACKOFF, BACKOFF, "the wait grows by addition instead of doubling", FIX))
            }
            // Its waits grow by themselves, unless they are not let.
            Backoff::Exponential { initial, max, .. }
                if self.policy.jitter == Jitter::Decorrelated && max > initial =>
            {
                None
            }
            Backoff::Exponential { .. } if !hardly_grow(&ceilings) => None,
            Backoff::Exponential { initial, multiplier, max } => {
                let retries = i32::try_from(ceilings.len()).unwrap_or(i32::MAX);
                if initial.as_secs_f64() * multiplier.powi(retries - 1) < max.as_secs_f64() {
                    let given = self.spec.multiplier.unwrap_or(*multiplier);
                    let wrong = format!("a multiplier of {given} hardly makes the wait of {text} grow");
                    return Some(finding(
                        &FIXED_INTERVAL,
                        "multiplier",
                        wrong,
                        "use a multiplier of 2, or leave it out",
                    ));
                }
                let longest = duration_text(*max);
                let wrong = format!("the wait hardly grows: from {text} to {longest}");
                let larger = first.saturating_mul(30);
                let fix = match larger <= self.context.duration_cap() {
                    true => {
                        format!("let maxDelayMs be much larger than initialDelayMs, such as {}", larger.as_millis())
                    }
                    false => format!("let initialDelayMs be much smaller, such as {}", (*max / 30).as_millis().max(1)),
                };
                Some(finding(&FIXED_INTERVAL, "maxDelayMs", wrong, fix))
            }
            Backoff::Schedule { delays } if delays.is_empty() || !mostly_stands_still(&ceilings) => None,
            Backoff::Schedule { delays } if !mostly_stands_still(delays) => {
                let (last, repeats) = (duration_text(delays[delays.len() - 1]), ceilings.len() - delays.len());
                let wrong = format!("the last wait, {last}, is repeated {repeats} times");
                let fix = format!(
                    "let scheduleMs have an entry for every retry, or maxAttempts be at most {}",
                    delays.len() + 2
                );
                Some(finding(&FIXED_INTERVAL, SCHEDULE, wrong, fix))
            }
            Backoff::Schedule { .. } => {
                let wrong = "most retries have the same time to wait as the one before";
                Some(finding(&FIXED_INTERVAL, SCHEDULE, wrong, "let each wait be longer than the one before"))
            }
        }
    }

    /// full jitter, or decorrelated; what a webhook's schedule promises is spread by a part of itself.
    pub(super) fn spread(&self) -> Option<Finding> {
        let is_schedule = matches!(self.policy.backoff, Backoff::Schedule { .. });
        let fix = match self.policy.backoff {
            Backoff::Exponential { .. } => "leave jitterType out, or use FULL (or DECORRELATED)",
            Backoff::Schedule { .. } => "leave jitterType out for PROPORTIONAL jitter of a fifth, or use FULL",
            _ => "leave jitterType out, or use FULL",
        };
        match self.policy.jitter {
            Jitter::Full | Jitter::Decorrelated => None,
            Jitter::None => Some(finding(&MISSING_JITTER, JITTER, "the waits have no jitter", fix)),
            Jitter::Equal => {
                Some(finding(&EQUAL_JITTER, JITTER, "EQUAL jitter leaves half of every wait the same for all", fix))
            }
            Jitter::Proportional { ratio } if is_schedule && ratio < LEAST_JITTER_RATIO => {
                let wrong = format!("a jitterRatio of {ratio} hardly spreads the schedule");
                Some(finding(&LITTLE_JITTER, "jitterRatio", wrong, "use a jitterRatio of 0.2, or leave it out"))
            }
            Jitter::Proportional { .. } if is_schedule => None,
            Jitter::Proportional { ratio } => {
                let percent = (ratio * 10_000.0).round() / 100.0;
                let wrong = format!("PROPORTIONAL jitter moves a wait by {percent} % of itself at most");
                Some(finding(&PROPORTIONAL_JITTER, JITTER, wrong, fix))
            }
        }
    }

    /// a schedule is for webhooks, and its waits grow.
    pub(super) fn schedule(&self, stands_still: bool) -> Option<Finding> {
        let Backoff::Schedule { delays } = &self.policy.backoff else { return None };
        if !self.context.is_webhook() {
            let wrong = format!("a schedule is for webhooks, and this is for {}", self.context.meaning());
            return Some(finding(&SCHEDULE_ELSEWHERE, BACKOFF, wrong, "use exponential, or the context webhook"));
        }
        // That it mostly stands still is worse, and has been said.
        if stands_still || delays.is_empty() {
            return None;
        }
        const FIX: &str = "let each wait be longer than the one before";
        let used = delays.len().min(usize::try_from(self.retry_count()).unwrap_or(usize::MAX));
        if let Some(at) = delays[..used].windows(2).position(|pair| pair[1] <= pair[0]) {
            let (before, after) = (duration_text(delays[at]), duration_text(delays[at + 1]));
            let wrong =
                format!("the wait of {after} before retry {} is not longer than the {before} before it", at + 2);
            let at = [Step::Field(SCHEDULE), Step::Index(at + 1)];
            return Some(Finding::new(&SCHEDULE_NOT_INCREASING, at, wrong, FIX));
        }
        // R-2 allows one retry more than R-3's schedule has entries.
        let repeats = usize::try_from(self.retry_count()).unwrap_or(usize::MAX).saturating_sub(delays.len());
        let last = delays.last().copied().unwrap_or_default();
        (repeats > 1).then(|| {
            let wrong = format!("the last wait, {}, is repeated {repeats} times", duration_text(last));
            finding(&SCHEDULE_NOT_INCREASING, SCHEDULE, wrong, "let the schedule have an entry for every retry")
        })
    }
}

/// Whether these waits are about the same from the first to the last. One retry has nothing to be compared with.
fn hardly_grow(ceilings: &[Duration]) -> bool {
    let (Some(first), Some(last)) = (ceilings.first(), ceilings.last()) else { return false };
    match ceilings.len() {
        1 => false,
        2 => first == last,
        _ => last.as_secs_f64() < first.as_secs_f64() * LEAST_GROWTH,
    }
}

/// Whether most of these waits are about as long as the one before.
fn mostly_stands_still(ceilings: &[Duration]) -> bool {
    let is_same = |pair: &&[Duration]| {
        let (before, after) = (pair[0].as_secs_f64(), pair[1].as_secs_f64());
        (before - after).abs() <= SAME_WITHIN * before.max(after)
    };
    let same = ceilings.windows(2).filter(is_same).count();
    same > 0 && 2 * same >= ceilings.len()
}
