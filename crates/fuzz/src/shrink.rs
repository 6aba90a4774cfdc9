//! Makes an input that breaks a property smaller.

use crate::catch::run;
use crate::target::Target;

/// The most inputs that are tried to shrink one.
const MOST_TRIES: usize = 400;

/// A smaller input that still breaks a property, or the same one.
pub(crate) fn shrink(target: &Target, input: &[u8]) -> Vec<u8> {
    let mut smallest = input.to_vec();
    let mut piece = smallest.len() / 2;
    let mut tries = 0;
    while piece > 0 {
        let mut at = 0;
        while at < smallest.len() && tries < MOST_TRIES {
            let end = (at + piece).min(smallest.len());
            let smaller = [&smallest[..at], &smallest[end..]].concat();
            tries += 1;
            match run(target, &smaller) {
                Err(_) => smallest = smaller,
                Ok(()) => at = end,
            }
        }
        piece /= 2;
    }
    smallest
}
