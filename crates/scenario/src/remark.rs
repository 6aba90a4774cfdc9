//! Remarks that explain surprising figures of a story.
//!
//! They are about guards that work as intended and yet are too weak, or too strong, alone.

use std::time::Duration;

use redrive_core::duration::duration_text;
use redrive_core::guards::budget::{self, Drain};

use crate::report::number::count;
use crate::story::{Comparison, Story, Totals};

/// The share of a budget, in percent, from which on requests are taken to have waited for it.
const USED_UP_PERCENT: u64 = 90;
/// A backlog that takes longer than this many windows of a budget is slow.
const SLOW_WINDOWS: u32 = 10;
/// How far apart the successes of two contenders may be, in percent of the requests, for their times to be compared.
const ALIKE_PERCENT: u64 = 1;

impl Comparison {
    /// The remarks about this story, in sentences without a full stop.
    pub fn remarks(&self, story: &Story) -> Vec<String> {
        let checks = [starved(story), self.unproven(story), unlimited_behind_breaker(story), self.narrow(story)];
        checks.into_iter().flatten().collect()
    }

    /// Durable work that waits after the outage until its few retries have shown a healthy dependency.
    fn unproven(&self, story: &Story) -> Option<String> {
        let budget::Settings { window, floor, .. } = budget_of(story, Drain::Earned)?;
        let idle =
            story.buckets.iter().skip(self.bucket_of_recovery()?).filter(|of| of.held > 0 && of.sends == 0).count();
        let idle = self.bucket.saturating_mul(u32::try_from(idle).unwrap_or(u32::MAX));
        (story.contender.guards.breaker.is_none() && idle > window).then(|| {
            format!(
                "its retries wait for the budget: until nearly all of its latest calls succeed, it allows {floor} in {}, whatever \
                 the dependency could serve; the probes of a breaker find out sooner",
                duration_text(window)
            )
        })
    }

    /// The first bucket after the last outage.
    fn bucket_of_recovery(&self) -> Option<usize> {
        let well_from = self.world.outages.last().map_or(Duration::ZERO, |outage| outage.to);
        usize::try_from(well_from.as_millis().div_ceil(self.bucket.as_millis().max(1))).ok()
    }

    /// A limit on concurrency that keeps it below what the dependency could serve, after the outage.
    fn narrow(&self, story: &Story) -> Option<String> {
        let (limit, capacity) = (story.contender.guards.fixed_limit()?, self.world.capacity);
        let peak = story.totals.peak_after_outage.unwrap_or(story.totals.peak).calls;
        let binds = story
            .buckets
            .iter()
            .skip(self.bucket_of_recovery()?)
            .any(|bucket| bucket.in_flight >= limit && bucket.held > 0);
        (binds && story.totals.rejected == 0 && peak < capacity).then(|| {
            let (limit, peak, capacity) =
                (count(u64::from(limit)), count(u64::from(peak)), count(u64::from(capacity)));
            format!(
                "at most {limit} at once, it makes up to {peak} calls/s where {capacity} could be served: gentle, and slower \
                 than it would have to be"
            )
        })
    }

    /// Whether about the same share of requests succeeds with all contenders. If not, their times cannot be compared: a
    /// contender that gives up early is quick with the rest.
    pub fn succeed_alike(&self) -> bool {
        self.succeed_most().into_iter().all(|does| does)
    }

    /// For each contender, whether about as many of its requests succeed as of the best one.
    pub fn succeed_most(&self) -> Vec<bool> {
        let most = self.stories.iter().map(|story| story.totals.succeeded).max().unwrap_or(0);
        let does = |totals: &Totals| 100 * (most - totals.succeeded) <= ALIKE_PERCENT * totals.requests;
        self.stories.iter().map(|story| does(&story.totals)).collect()
    }
}

/// Durable work that waits for a strict budget, which no new requests refill.
fn starved(story: &Story) -> Option<String> {
    let budget::Settings { window, floor, percent, .. } = budget_of(story, Drain::Strict)?;
    let Totals { retries, first_attempts, ended_at, held, .. } = story.totals;
    let windows = u64::try_from(ended_at.as_millis() / window.as_millis().max(1)).unwrap_or(u64::MAX);
    let allowed = windows.saturating_mul(u64::from(floor)) + first_attempts * u64::from(percent) / 100;
    let is_used_up = windows > 1 && retries.saturating_mul(100) >= allowed.saturating_mul(USED_UP_PERCENT);
    // A backlog that takes many windows, with nothing else in its way, waits for nothing but the budget.
    let unlimited = story.contender.guards.concurrency.is_none();
    let is_slow = unlimited && story.totals.backlog_drained.is_some_and(|took| took > window * SLOW_WINDOWS);
    (held > 0 && (is_used_up || is_slow)).then(|| {
        format!(
            "its retries wait for the budget, which new requests refill: when none come any more, it allows {floor} in {}, \
             whatever the dependency could serve",
            duration_text(window)
        )
    })
}

/// The budget, if a backlog drains in this way.
fn budget_of(story: &Story, drain: Drain) -> Option<budget::Settings> {
    story.contender.guards.budget.filter(|budget| budget.drain == drain)
}

/// A breaker without a limit on concurrency: when it closes, nothing but its slow start spreads the requests that waited.
fn unlimited_behind_breaker(story: &Story) -> Option<String> {
    let guards = &story.contender.guards;
    let unlimited = guards.breaker.is_some() && guards.concurrency.is_none();
    (unlimited && story.totals.held > 0 && story.totals.rejected > 0).then(|| {
        "when the breaker closes, the attempts at once grow until the dependency's queue is full; a limit on concurrency, \
         which a Redrive service always has, ends that earlier"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use redrive_core::guards::{breaker, budget, concurrency};
    use redrive_core::policy::{Context, Policy, Spec};

    use std::time::Duration;

    use crate::{Contender, Guards, Outage, OutageKind, World, fixed_concurrency, run};

    #[test]
    fn what_a_reader_may_wonder_about_is_explained() {
        let durable = Policy::default();
        let sync = Policy::resolve(&Spec { context: Some(Context::Sync), ..Spec::default() }).unwrap();
        let (budget, breaker) = (Some(budget::Settings::default()), Some(breaker::Settings::default()));
        let strict = Some(budget::Settings { drain: budget::Drain::Strict, ..budget::Settings::default() });
        let fixed = |most| Some(fixed_concurrency(most));
        // Policy, budget, breaker, concurrency, how the remarks begin.
        let cases = [
            (&durable, None, None, None, &[][..]),
            (&durable, budget, None, None, &["its retries wait for the budget: until nearly all"]),
            (&durable, strict, None, None, &["its retries wait for the budget, which new requests refill"]),
            (&durable, None, breaker, None, &["when the breaker closes, the attempts at once grow"]),
            (&durable, budget, breaker, fixed(20), &["at most 20 at once, it makes up to 30"]),
            (&durable, budget, breaker, fixed(200), &[]),
            (&durable, budget, breaker, Some(concurrency::Settings::default()), &[]),
            (&sync, budget, breaker, None, &[]),
            (&sync, budget, breaker, fixed(100), &[]),
        ];
        for (policy, budget, breaker, concurrency, expected) in cases {
            let guards = Guards { budget, breaker, concurrency };
            let contender = Contender { guards, ..Contender::new("it", policy.clone()) };
            let comparison = run(World::default(), vec![contender], 1, None, |_| {}).unwrap();
            let remarks = comparison.remarks(&comparison.stories[0]);
            assert_eq!(remarks.len(), expected.len(), "{guards:?}: {remarks:?}");
            for (remark, expected) in remarks.iter().zip(expected) {
                assert!(remark.starts_with(expected), "{remark}");
            }
        }
    }

    #[test]
    fn a_limit_that_was_reached_only_while_the_dependency_hung_is_not_narrow() {
        let second = Duration::from_secs(1);
        let world = World {
            clients: 6_000,
            over: 20 * second,
            outages: vec![Outage { from: 5 * second, to: 8 * second, manner: OutageKind::Hang }],
            ..World::default()
        };
        let sync = Policy::resolve(&Spec { context: Some(Context::Sync), ..Spec::default() }).unwrap();
        let guards = Guards {
            breaker: Some(breaker::Settings::default()),
            concurrency: Some(fixed_concurrency(100)),
            budget: None,
        };
        let comparison = run(world, vec![Contender { guards, ..Contender::new("it", sync) }], 1, None, |_| {}).unwrap();
        let story = &comparison.stories[0];
        assert!(story.buckets.iter().any(|bucket| bucket.in_flight == 100), "the limit was reached");
        assert_eq!(comparison.remarks(story), [""; 0]);
    }
}
