//! What came out, as JSON for programs.

use std::time::Duration;

use redrive_scenario::occ::{Measure, Point, Settings};
use redrive_scenario::{Bucket, Comparison, Latencies, Peak, Story, Totals, World};
use serde_json::{Map, Value, json};

/// Everything about an outage.
pub(super) fn outage(comparison: &Comparison) -> Value {
    json!({
        "scenario": "outage",
        "seed": comparison.seed,
        "world": world(&comparison.world),
        "bucketMs": millis(comparison.bucket),
        "contenders": comparison.stories.iter().map(story).collect::<Vec<_>>(),
    })
}

/// Everything about contention.
pub(super) fn occ(settings: &Settings, points: &[Point]) -> Value {
    let measure = |of: Measure| json!({"mean": of.mean, "deviation": of.deviation, "least": of.least, "most": of.most});
    let point = |point: &Point| {
        json!({
            "strategy": point.strategy.as_str(),
            "clients": point.clients,
            "calls": measure(point.calls),
            "durationMs": measure(point.millis),
        })
    };
    let points: Vec<_> = points.iter().map(point).collect();
    json!({"scenario": "occ", "seed": settings.seed, "runs": settings.runs, "points": points})
}

fn world(world: &World) -> Value {
    let latency = match world.latency {
        Latencies::Constant(latency) => json!({"constantMs": millis(latency)}),
        Latencies::LogNormal { median, p99 } => json!({"medianMs": millis(median), "p99Ms": millis(p99)}),
    };
    let outages = world.outages.iter().map(
        |outage| json!({"fromMs": millis(outage.from), "toMs": millis(outage.to), "manner": outage.manner.as_str()}),
    );
    json!({
        "clients": world.clients,
        "overMs": millis(world.over),
        "capacity": world.capacity,
        "queue": world.queue,
        "latency": latency,
        "outages": outages.collect::<Vec<_>>(),
        "retryAfterMs": world.retry_after.map(millis),
    })
}

/// A name, and what is told under it.
type Field = (&'static str, fn(&Bucket) -> u32);

/// What is told of a bucket.
const FIELDS: [Field; 7] = [
    ("sends", |bucket| bucket.sends),
    ("retries", |bucket| bucket.retries),
    ("successes", |bucket| bucket.successes),
    ("failures", |bucket| bucket.failures),
    ("held", |bucket| bucket.held),
    ("inFlight", |bucket| bucket.in_flight),
    ("open", |bucket| bucket.open),
];

fn story(story: &Story) -> Value {
    let guards = &story.contender.guards;
    let series = |of: fn(&Bucket) -> u32| story.buckets.iter().map(of).collect::<Vec<_>>();
    json!({
        "name": story.contender.name,
        "policy": story.contender.policy.to_spec(),
        "guards": {
            "budget": guards.budget.is_some(),
            "breaker": guards.breaker.is_some(),
            "concurrency": guards.concurrency.map(|limit| limit.most),
            "budgetDrain": guards.budget.map(|budget| budget.drain.as_str()),
            "concurrencyAdapts": guards.concurrency.is_some_and(|limit| limit.is_adaptive),
        },
        "totals": totals(&story.totals),
        "completionPercentilesMs": story.completion.percentiles.iter().copied().map(millis).collect::<Vec<_>>(),
        "buckets": FIELDS.iter().map(|(name, of)| ((*name).to_owned(), json!(series(*of)))).collect::<Map<_, _>>(),
        "later": FIELDS.iter().map(|(name, of)| ((*name).to_owned(), json!(of(&story.later)))).collect::<Map<_, _>>(),
    })
}

fn totals(totals: &Totals) -> Value {
    let peak = |peak: Peak| json!({"calls": peak.calls, "atMs": millis(peak.at)});
    let reasons = totals.dead_letters.iter().map(|(reason, count)| (reason.as_str().to_owned(), json!(count)));
    json!({
        "requests": totals.requests,
        "succeeded": totals.succeeded,
        "deadLetters": totals.dead(),
        "deadLettersByReason": reasons.collect::<Map<_, _>>(),
        "suppressed": totals.suppressed,
        "turnedAway": totals.turned_away,
        "held": totals.held,
        "calls": totals.calls,
        "firstAttempts": totals.first_attempts,
        "retries": totals.retries,
        "amplification": totals.amplification(),
        "peak": peak(totals.peak),
        "peakAfterOutage": totals.peak_after_outage.map(peak),
        "callsWhileDown": totals.calls_while_down,
        "rejected": totals.rejected,
        "served": totals.served,
        "wasted": totals.wasted,
        "backlog": totals.backlog,
        "backlogDrainedMs": totals.backlog_drained.map(millis),
        "drainedMs": totals.drained.map(millis),
        "endedAtMs": millis(totals.ended_at),
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
