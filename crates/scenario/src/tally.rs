//! Counts what happens while a contender is played.

use std::time::Duration;

use redrive_core::task::Reason;

use crate::dependency::DependencyCounts;
use crate::story::{Completion, Peak, Totals};
use crate::timeline::Timeline;

/// The part of a backlog that has to end before it counts as drained, in percent: the last one may wait for its
/// deadline.
const DRAINED_PERCENT: u64 = 99;
const SECOND: u32 = 1_000;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// The request succeeded.
    Succeeded,
    /// The request is a dead letter.
    Dead(Option<Reason>),
    /// The request failed at once because the budget was spent.
    Suppressed,
    /// The request failed at once because the breaker was open.
    TurnedAway,
}

/// The counts of a contender while it is played.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) timeline: Timeline,
    totals: Totals,
    /// When the last outage ends, in milliseconds.
    outage_end: Option<u32>,
    arrived: u64,
    ended: u64,
    seconds: Seconds,
    /// The same, from the end of the last outage on.
    seconds_after: Option<Seconds>,
    /// Of the requests that were open when the last outage ended, those that have ended since.
    backlog_ended: u64,
    dead: [u64; Reason::ALL.len()],
    took: Vec<u32>,
}

impl Tally {
    pub(crate) fn new(requests: u32, outage_end: Option<u32>) -> Self {
        Tally {
            timeline: Timeline::new(),
            totals: Totals { requests: u64::from(requests), ..Totals::default() },
            outage_end,
            arrived: 0,
            ended: 0,
            seconds: Seconds::from(0),
            seconds_after: outage_end.map(Seconds::from),
            backlog_ended: 0,
            dead: [0; Reason::ALL.len()],
            took: Vec::with_capacity(requests as usize),
        }
    }

    /// How many requests have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// How many calls were made.
    pub(crate) fn calls(&self) -> u64 {
        self.totals.calls
    }

    /// How many requests have arrived and not ended yet.
    pub(crate) fn open(&self) -> u32 {
        u32::try_from(self.arrived - self.ended).unwrap_or(u32::MAX)
    }

    /// Time has come to `now`; called before anything at that time is counted.
    pub(crate) fn come_to(&mut self, now: u32) {
        if self.totals.backlog.is_none() && self.outage_end.is_some_and(|end| end <= now) {
            self.totals.backlog = Some(self.arrived - self.ended);
            self.note_drained(now);
        }
    }

    /// A request arrived.
    pub(crate) fn arrived(&mut self) {
        self.arrived += 1;
    }

    /// A guard holds a request back that none had held back before.
    pub(crate) fn held(&mut self) {
        self.totals.held += 1;
    }

    /// An attempt was sent.
    pub(crate) fn sent(&mut self, now: u32, is_retry: bool) {
        self.totals.calls += 1;
        let slot = self.timeline.at(now);
        slot.sends += 1;
        if is_retry {
            self.totals.retries += 1;
            slot.retries += 1;
        } else {
            self.totals.first_attempts += 1;
        }
        self.seconds.count(now);
        if let Some(seconds) = &mut self.seconds_after {
            seconds.count(now);
        }
    }

    /// An attempt ended.
    pub(crate) fn answered(&mut self, now: u32, well: bool) {
        let slot = self.timeline.at(now);
        if well { slot.successes += 1 } else { slot.failures += 1 }
    }

    /// A request that arrived at `arrived` ended.
    pub(crate) fn end(&mut self, arrived: u32, now: u32, how: RequestEnd) {
        match how {
            RequestEnd::Succeeded => {
                self.totals.succeeded += 1;
                self.took.push(now - arrived);
            }
            RequestEnd::Dead(reason) => {
                // A decision that ends a task without success always has its reason.
                let reason = reason.unwrap_or(Reason::NotRetryable);
                self.dead[reason as usize] += 1;
            }
            RequestEnd::Suppressed => self.totals.suppressed += 1,
            RequestEnd::TurnedAway => self.totals.turned_away += 1,
        }
        self.ended += 1;
        self.totals.ended_at = Duration::from_millis(u64::from(now));
        if self.totals.backlog.is_some() && self.outage_end.is_some_and(|end| arrived < end) {
            self.backlog_ended += 1;
            self.note_drained(now);
        }
    }

    /// The whole, when everything has ended.
    pub(crate) fn finish(mut self, seen: DependencyCounts) -> (Timeline, Totals, Completion) {
        let totals = &mut self.totals;
        totals.peak = self.seconds.highest();
        totals.peak_after_outage = self.seconds_after.map(Seconds::highest);
        let reasons = Reason::ALL.into_iter().map(|reason| (reason, self.dead[reason as usize]));
        totals.dead_letters = reasons.filter(|(_, count)| *count > 0).collect();
        totals.calls_while_down = seen.while_down;
        totals.rejected = seen.rejected;
        totals.served = seen.served;
        totals.wasted = seen.wasted;
        if let Some(end) = self.outage_end {
            let end = Duration::from_millis(u64::from(end));
            totals.drained = totals.ended_at.checked_sub(end).filter(|after| !after.is_zero());
            // Everything had ended before the outage did.
            totals.backlog.get_or_insert(0);
            totals.backlog_drained.get_or_insert(Duration::ZERO);
        }
        (self.timeline, self.totals, Completion::of(self.took))
    }

    fn note_drained(&mut self, now: u32) {
        let Some((backlog, end)) = self.totals.backlog.zip(self.outage_end) else { return };
        if self.totals.backlog_drained.is_none() && self.backlog_ended * 100 >= backlog * DRAINED_PERCENT {
            let after = if backlog == 0 { 0 } else { now - end };
            self.totals.backlog_drained = Some(Duration::from_millis(u64::from(after)));
        }
    }
}

/// Calls counted second by second, from a moment on, of which only the highest count is kept.
#[derive(Debug, Clone, Copy)]
struct Seconds {
    from: u32,
    current: Peak,
    highest: Peak,
}

impl Seconds {
    fn from(from: u32) -> Self {
        let nothing = Peak { calls: 0, at: Duration::from_millis(u64::from(from)) };
        Seconds { from, current: nothing, highest: nothing }
    }

    /// Counts a call at `now`, which must not be before the last one; what is before the beginning does not count.
    fn count(&mut self, now: u32) {
        let Some(since) = now.checked_sub(self.from) else { return };
        let at = Duration::from_millis(u64::from(now - since % SECOND));
        if at != self.current.at {
            self.highest = self.highest();
            self.current = Peak { calls: 0, at };
        }
        self.current.calls += 1;
    }

    fn highest(self) -> Peak {
        if self.current.calls > self.highest.calls { self.current } else { self.highest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_the_fullest_second_since_the_beginning() {
        let calls = [0, 999, 1_000, 1_500, 1_999, 2_400, 2_500, 3_399, 3_400, 3_401, 9_000];
        // from, calls, at
        for (from, most, at) in
            [(0, 3, 1_000), (2_400, 3, 2_400), (2_500, 4, 2_500), (3_400, 2, 3_400), (9_001, 0, 9_001)]
        {
            let mut seconds = Seconds::from(from);
            calls.iter().for_each(|now| seconds.count(*now));
            let expected = Peak { calls: most, at: Duration::from_millis(at) };
            assert_eq!(seconds.highest(), expected, "from {from}");
        }
    }
}
