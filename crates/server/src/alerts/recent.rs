//! What happened in the window of a rule, by lane.

use std::collections::VecDeque;
use std::time::Duration;

use redrive_core::Timestamp;

use super::noted::ByLane;

/// The parts that a window is counted in: an event is counted for up to a thirtieth of the window too long.
const PARTS: u32 = 30;

/// The numbers of a window, by lane. Its memory does not depend on how often something happens.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Each with the moment of its last addition, oldest first.
    parts: VecDeque<Part>,
}

#[derive(Debug)]
struct Part {
    began: Timestamp,
    ended: Timestamp,
    numbers: ByLane,
}

impl Recent {
    /// Adds what happened until `now` and forgets what is older than the window, unless it `is_held`: then nothing is forgotten.
    pub(super) fn add(&mut self, news: ByLane, window: Duration, now: Timestamp, is_held: bool) {
        if !news.is_empty() {
            self.append(news, window, now);
        }
        while self.parts.front().is_some_and(|part| !is_held && now.since(part.ended) >= window) {
            self.parts.pop_front();
        }
        // Held numbers become older than the window: the oldest parts become one.
        while self.parts.len() > PARTS as usize + 1
            && let Some(oldest) = self.parts.pop_front()
            && let Some(next) = self.parts.front_mut()
        {
            next.numbers.merge(&oldest.numbers);
        }
    }

    fn append(&mut self, news: ByLane, window: Duration, now: Timestamp) {
        match self.parts.back_mut() {
            Some(part) if now.since(part.began) < window / PARTS => {
                part.numbers.merge(&news);
                part.ended = part.ended.max(now);
            }
            _ => self.parts.push_back(Part { began: now, ended: now, numbers: news }),
        }
    }

    /// The sums of the window.
    pub(super) fn sums(&self) -> ByLane {
        let mut sums = ByLane::default();
        self.parts.iter().for_each(|part| sums.merge(&part.numbers));
        sums
    }

    /// Whether nothing happened in the window.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::{Dependency, Lane, TenantId};

    use super::*;

    const WINDOW: Duration = Duration::from_secs(300);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1_000)
    }

    fn one(dependency: &str) -> ByLane {
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(dependency).unwrap() };
        ByLane { lanes: [(lane, 1)].into(), others: 0 }
    }

    fn total(recent: &Recent) -> u32 {
        recent.sums().lanes.values().sum()
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut recent = Recent::default();
        recent.add(one("a"), WINDOW, at(0), false);
        recent.add(one("b"), WINDOW, at(100), false);
        recent.add(ByLane::default(), WINDOW, at(299), false);
        assert_eq!(total(&recent), 2);
        recent.add(ByLane::default(), WINDOW, at(300), false);
        assert_eq!(total(&recent), 1);
        recent.add(ByLane::default(), WINDOW, at(400), false);
        assert!(recent.is_empty());
    }

    #[test]
    fn what_is_held_is_not_forgotten_and_takes_bounded_memory() {
        let mut recent = Recent::default();
        for look in 0..10_000 {
            recent.add(one("a"), WINDOW, at(look * 5), true);
            assert!(recent.parts.len() <= PARTS as usize + 1);
        }
        assert_eq!(total(&recent), 10_000);
        recent.add(ByLane::default(), WINDOW, at(50_000), false);
        assert!(total(&recent) < 100, "those of the window");
    }
}
