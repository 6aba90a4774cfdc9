//! A run: the same world for each contender, and their stories on one scale.

use std::time::Duration;

use crate::chance::Chance;
use crate::contender::Contender;
use crate::dependency::millis;
use crate::play::Play;
use crate::story::{Comparison, Completion, Story, Totals};
use crate::timeline::{Timeline, bucket_width};
use crate::world::{Invalid, World, at_most, within};

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The contender that is played, from 0.
    pub contender: usize,
    /// Of how many.
    pub contenders: usize,
    /// How many of its requests have ended.
    pub ended: u64,
    /// Of how many.
    pub requests: u64,
    /// How many calls it has made.
    pub calls: u64,
    /// How many it can make at most.
    pub most_calls: u64,
}

impl Progress {
    /// The share of the run that is done, at least. Simultaneous requests end almost together, so calls are counted as
    /// well.
    pub fn part(&self) -> f64 {
        let part = |of: u64, whole: u64| of as f64 / whole.max(1) as f64;
        let own = part(self.ended, self.requests).max(part(self.calls, self.most_calls));
        (self.contender as f64 + own) / self.contenders.max(1) as f64
    }
}

/// Plays `world` once for each contender; the buckets go up to `until`, or as far as [`Story::buckets`] says.
/// `progress` is called every some ten thousand steps.
pub fn run(
    world: World,
    contenders: Vec<Contender>,
    seed: u64,
    until: Option<Duration>,
    mut progress: impl FnMut(Progress),
) -> Result<Comparison, Invalid> {
    let world = world.checked()?;
    within("the number of contenders", contenders.len() as u64, 1, Contender::MOST as u32)?;
    at_most("the end of the charts", until.unwrap_or_default(), World::LONGEST)?;
    let (chance, count, requests) = (Chance::new(seed), contenders.len(), u64::from(world.clients));
    let mut plays = Vec::with_capacity(count);
    for (number, contender) in contenders.into_iter().enumerate() {
        let mut play = Play::new(&world, &contender, chance);
        let most_calls = requests * u64::from(contender.policy.max_attempts);
        play.play_out(|ended, calls| {
            progress(Progress { contender: number, contenders: count, ended, requests, calls, most_calls });
        });
        let (tally, seen) = play.finish();
        plays.push((contender, tally.finish(seen)));
    }
    Ok(compare(world, seed, until, plays))
}

/// In milliseconds.
const SECOND: u64 = 1_000;

type PlayedContender = (Contender, (Timeline, Totals, Completion));

/// Puts all timelines on one scale.
fn compare(world: World, seed: u64, until: Option<Duration>, plays: Vec<PlayedContender>) -> Comparison {
    let timelines = || plays.iter().map(|(_, (timeline, _, _))| timeline);
    let until = match until {
        Some(until) => u64::from(millis(until)).max(1),
        None => {
            let outages_end = world.outages.last().map_or(0, |outage| u64::from(millis(outage.to)));
            worth_showing(timelines().map(|timeline| timeline.sent_by(Story::COVERED_PERCENT)).collect(), outages_end)
        }
    };
    // Whole seconds: half of one would look like a second with half of the calls.
    let until = if until > SECOND { until.next_multiple_of(SECOND) } else { until };
    let slots = timelines().map(|timeline| timeline.finest(until)).max().unwrap_or(1);
    let bucket = bucket_width(until, Story::MAX_BUCKETS, slots);
    let width = u64::try_from(bucket.as_millis()).unwrap_or(u64::MAX);
    let story = |(contender, (timeline, totals, completion)): PlayedContender| {
        let (buckets, later) = timeline.buckets(width, until);
        Story { contender, buckets, later, totals, completion }
    };
    Comparison { seed, world, bucket, stories: plays.into_iter().map(story).collect() }
}

/// Until when the buckets go, if these are the times at which contenders are as good as done: until the last one is,
/// but a contender that takes much longer than the others does not stretch the scale. At least half of them are shown
/// completely.
fn worth_showing(mut done: Vec<u64>, outages_end: u64) -> u64 {
    done.sort_unstable();
    let half = done.len().div_ceil(2);
    while let [.., before, last] = done[..]
        && done.len() > half
        && last > Story::TOO_LONG * before.max(outages_end)
    {
        done.pop();
    }
    done.last().copied().unwrap_or(1).max(outages_end)
}

impl Comparison {
    /// From the beginning to the end of the buckets.
    pub fn span(&self) -> Duration {
        let buckets = self.stories.first().map_or(0, |story| story.buckets.len());
        self.bucket.saturating_mul(u32::try_from(buckets).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests;
