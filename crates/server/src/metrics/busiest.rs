//! Which lanes have series of their own.
//!
//! Callers name dependencies, so there may be any number of lanes, and a monitoring system must not get a series for
//! each. The busiest ones have series of their own and the others share one. The choice is *sticky*: a series that
//! appears and disappears is worse than one of the second busiest. A lane takes the place of another only at a review,
//! and only with twice its attempts.
//!
//! Lanes without a place are many, so their attempts are counted in a table of fixed size (Misra-Gries): a lane with
//! more than 1/[`CANDIDATES`] of these attempts is certain to be in it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use redrive_core::{Lane, Timestamp};

/// The most lanes with series of their own.
pub(super) const MOST: usize = 200;

/// The time between two reviews.
pub(super) const REVIEW_EVERY: Duration = Duration::from_secs(600);

/// The most lanes without a place whose attempts are counted.
const CANDIDATES: usize = 1_000;

/// How many times the attempts of a lane that has a place another must have to take it.
const FACTOR: u64 = 2;

/// The fewest attempts between two reviews with which a lane takes a place, also that of an idle one: a few attempts of many
/// lanes must not drive out those that are quiet for ten minutes.
const FEWEST: u64 = 60;

/// The places, and how busy each lane was since the last review.
#[derive(Debug, Default)]
pub(super) struct Busiest {
    places: HashMap<Lane, usize>,
    /// The lane of each place, and its attempts since the last review.
    named: Vec<(Lane, u64)>,
    candidates: BTreeMap<Lane, u64>,
    reviewed_at: Option<Timestamp>,
}

impl Busiest {
    /// The lane's place, if it has one. A lane gets a free place at once.
    pub(super) fn place(&mut self, lane: &Lane) -> Option<usize> {
        if let Some(place) = self.places.get(lane) {
            return Some(*place);
        }
        if self.has_free_places() {
            let place = self.named.len();
            self.named.push((lane.clone(), 0));
            self.places.insert(lane.clone(), place);
            return Some(place);
        }
        None
    }

    pub(super) fn has_free_places(&self) -> bool {
        self.named.len() < MOST
    }

    /// Counts an attempt of a lane, which has this place.
    pub(super) fn count(&mut self, lane: &Lane, place: Option<usize>) {
        match place.and_then(|place| self.named.get_mut(place)) {
            Some((_, attempts)) => *attempts += 1,
            None => self.count_candidate(lane),
        }
    }

    fn count_candidate(&mut self, lane: &Lane) {
        if let Some(attempts) = self.candidates.get_mut(lane) {
            *attempts += 1;
        } else if self.candidates.len() < CANDIDATES {
            self.candidates.insert(lane.clone(), 1);
        } else {
            self.candidates.retain(|_, attempts| {
                *attempts -= 1;
                *attempts > 0
            });
        }
    }

    /// The lane of each place.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.named.iter().map(|(lane, _)| lane)
    }

    /// Gives places to lanes that were much busier than those which had them, once every [`REVIEW_EVERY`]. Returns the
    /// places that changed hands.
    pub(super) fn review(&mut self, now: Timestamp) -> Vec<usize> {
        let reviewed_at = *self.reviewed_at.get_or_insert(now);
        if now.since(reviewed_at) < REVIEW_EVERY {
            return Vec::new();
        }
        self.reviewed_at = Some(now);
        let mut candidates: Vec<(Lane, u64)> = std::mem::take(&mut self.candidates).into_iter().collect();
        candidates.sort_by_key(|(_, attempts)| std::cmp::Reverse(*attempts));
        let mut quietest: Vec<usize> = (0..self.named.len()).collect();
        quietest.sort_by_key(|place| self.named[*place].1);
        let mut changed = Vec::new();
        for ((lane, attempts), place) in candidates.into_iter().zip(quietest) {
            if attempts < FEWEST || attempts <= self.named[place].1.saturating_mul(FACTOR) {
                break;
            }
            self.places.remove(&self.named[place].0);
            self.places.insert(lane.clone(), place);
            self.named[place] = (lane, attempts);
            changed.push(place);
        }
        self.named.iter_mut().for_each(|(_, attempts)| *attempts = 0);
        changed
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::{Dependency, TenantId};

    use super::*;

    fn lane(number: usize) -> Lane {
        let dependency = Dependency::try_new(format!("d{number}")).unwrap();
        Lane { tenant: TenantId::default_tenant(), dependency }
    }

    fn count(busiest: &mut Busiest, number: usize, attempts: usize) {
        for _ in 0..attempts {
            let place = busiest.place(&lane(number));
            busiest.count(&lane(number), place);
        }
    }

    fn after_reviews(reviews: u64) -> Timestamp {
        Timestamp::from_millis(0).after(REVIEW_EVERY * u32::try_from(reviews).unwrap())
    }

    /// All places taken, each by a lane with forty attempts.
    fn full() -> Busiest {
        let mut busiest = Busiest::default();
        assert!(busiest.review(after_reviews(0)).is_empty());
        for number in 0..MOST {
            count(&mut busiest, number, 40);
        }
        busiest
    }

    #[test]
    fn places_are_given_in_order_and_kept() {
        let mut busiest = full();
        assert_eq!(
            [0, 1, MOST - 1, MOST].map(|number| busiest.place(&lane(number))),
            [Some(0), Some(1), Some(199), None]
        );
        count(&mut busiest, MOST, 80);
        assert!(busiest.review(after_reviews(1)).is_empty(), "80 attempts are not more than twice 40");
        count(&mut busiest, MOST, 59);
        assert!(busiest.review(after_reviews(2)).is_empty(), "59 attempts are too few, although all others are idle");
        count(&mut busiest, MOST, 60);
        assert_eq!(busiest.review(after_reviews(3)), [0]);
    }

    #[test]
    fn a_lane_that_is_more_than_twice_as_busy_takes_the_place_of_the_quietest() {
        let mut busiest = full();
        count(&mut busiest, 7, 100);
        (0..MOST).filter(|number| *number != 42).for_each(|number| count(&mut busiest, number, 1));
        count(&mut busiest, MOST, 81);
        assert_eq!(busiest.review(after_reviews(1)), [42]);
        assert_eq!([42, MOST, 7].map(|number| busiest.place(&lane(number))), [None, Some(42), Some(7)]);
    }

    #[test]
    fn nothing_changes_hands_before_the_time() {
        let mut busiest = full();
        count(&mut busiest, MOST, 1_000);
        assert!(busiest.review(after_reviews(1).before(Duration::from_millis(1))).is_empty());
        assert_eq!(busiest.review(after_reviews(1)).len(), 1);
        assert!(busiest.review(after_reviews(2)).is_empty(), "counting begins anew after a review");
    }

    #[test]
    fn among_any_number_of_lanes_a_busy_one_is_noticed() {
        let mut busiest = full();
        for number in 0..20_000 {
            count(&mut busiest, MOST + 1 + number, 1);
            if number % 100 == 0 {
                count(&mut busiest, MOST, 1);
                assert!(busiest.candidates.len() <= CANDIDATES);
            }
        }
        assert_eq!(busiest.review(after_reviews(1)).len(), 1, "the others had one attempt each");
        assert!(busiest.place(&lane(MOST)).is_some());
    }
}
