//! `redrive outbox`: a business database, its relay, and a service; and what is killed of them.

mod crashes;
mod moving;
mod put_off;
mod refused;
mod same_request;
mod secrets;
mod table;
mod two_relays;

use std::collections::BTreeMap;

use super::world::{Arrival, Target};

/// What arrives at the target in `count` requests, by key.
fn arrivals(target: &Target, count: usize) -> BTreeMap<String, Vec<Arrival>> {
    let mut by_key: BTreeMap<String, Vec<Arrival>> = BTreeMap::new();
    for _ in 0..count {
        let arrival = target.arrival();
        by_key.entry(arrival.header("idempotency-key").unwrap().to_owned()).or_default().push(arrival);
    }
    by_key
}

/// The numbers in the bodies, from the smallest.
fn numbers<'a>(arrivals: impl IntoIterator<Item = &'a Arrival>) -> Vec<usize> {
    let mut numbers: Vec<usize> = arrivals.into_iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

fn number(arrival: &Arrival) -> usize {
    String::from_utf8_lossy(&arrival.body).parse().unwrap()
}
