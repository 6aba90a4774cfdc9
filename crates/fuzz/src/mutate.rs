//! Makes unusual inputs from samples and words.

use fastrand::Rng;

use crate::target::Target;

/// The most changes to one input.
const MOST_CHANGES: u32 = 12;

/// Bytes that often cause errors in parsers.
const AWKWARD: [u8; 16] = [0, 9, 10, 13, b' ', b'"', b'\\', b'{', b'}', b'[', b']', b',', b':', b'%', 0x7f, 0xff];

/// Numbers at the edges of their types, as they are written in documents.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "1e400",
    "1.5",
    "-0.0",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999999",
];

/// Input number `execution` of the run with this `seed`.
pub(crate) fn input(target: &Target, samples: &[Vec<u8>], seed: u64, execution: u64) -> Vec<u8> {
    // One generator per input: every input can be made again without those before it.
    let mut random = Rng::with_seed(seed ^ execution.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut input = match random.u8(..8) {
        0..3 => (target.generate)(&mut random),
        _ => sample(&mut random, samples),
    };
    // The sample itself occurs, too: valid input must stay valid.
    let most = random.u32(0..=MOST_CHANGES);
    for _ in 0..random.u32(0..=most) {
        change(&mut input, target, samples, &mut random);
    }
    input.truncate(target.max_bytes);
    input
}

fn sample(random: &mut Rng, samples: &[Vec<u8>]) -> Vec<u8> {
    random.choice(samples).cloned().unwrap_or_default()
}

fn change(input: &mut Vec<u8>, target: &Target, samples: &[Vec<u8>], random: &mut Rng) {
    let at = random.usize(0..=input.len());
    match random.u8(..10) {
        0 => flip_bit(input, random),
        1 => replace(input, at, at + 1, &[random.u8(..)]),
        2 => replace(input, at, at + 1, &[AWKWARD[random.usize(..AWKWARD.len())]]),
        3 => {
            let end = at + random.usize(0..=input.len() - at).min(64);
            replace(input, at, end, &[]);
        }
        4 => {
            let word = random.choice(target.words).copied().unwrap_or_default();
            replace(input, at, at, word.as_bytes());
        }
        5 => {
            let word = random.choice(target.words).copied().unwrap_or_default();
            replace(input, at, at + word.len(), word.as_bytes());
        }
        6 => replace_number(input, at, NUMBERS[random.usize(..NUMBERS.len())]),
        7 => {
            let other = sample(random, samples);
            let from = random.usize(0..=other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        8 => {
            let end = at + random.usize(0..=input.len() - at).min(256);
            let part = input[at..end].repeat(random.usize(1..=4));
            replace(input, end, end, &part);
        }
        _ => input.truncate(at),
    }
}

fn flip_bit(input: &mut [u8], random: &mut Rng) {
    if !input.is_empty() {
        let at = random.usize(..input.len());
        input[at] ^= 1 << random.u8(..8);
    }
}

/// Replaces the bytes from `start` to `end`, or to the end of the input, with `by`.
fn replace(input: &mut Vec<u8>, start: usize, end: usize, by: &[u8]) {
    let end = end.min(input.len());
    input.splice(start..end, by.iter().copied());
}

/// Replaces the next digits from `at` on with `number`.
fn replace_number(input: &mut Vec<u8>, at: usize, number: &str) {
    let Some(start) = input[at..].iter().position(u8::is_ascii_digit).map(|offset| at + offset) else { return };
    let digits = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    replace(input, start, start + digits, number.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TARGETS;

    #[test]
    fn an_input_is_a_function_of_its_seed_and_its_number() {
        for target in TARGETS {
            let samples = (target.samples)();
            let inputs = |seed| (0..50).map(|n| input(target, &samples, seed, n)).collect::<Vec<_>>();
            assert_eq!(inputs(7), inputs(7), "{}", target.name);
            assert_ne!(inputs(7), inputs(8), "{}", target.name);
            assert!(inputs(7).iter().all(|input| input.len() <= target.max_bytes), "{}", target.name);
        }
    }
}
