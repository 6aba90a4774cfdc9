//! The exponential and the logarithm, the same on every machine.
//!
//! The ones of the standard library are those of the operating system, and differ in the last digit from one to the
//! next. These use nothing but additions, multiplications and divisions, which are exact to the last bit everywhere, so
//! that a seed gives the same numbers on every machine. They are accurate to about fifteen digits.

use std::f64::consts::{LN_2, SQRT_2};

/// e to the power of `x`, for `x` between -700 and 700; held to that range.
pub(crate) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let halvings = (x / LN_2).round();
    let rest = x - halvings * LN_2;
    // The series, from its small end: the rest is at most 0.35, and 0.35^17 / 17! is far below the last digit.
    let series = (1..=17).rev().fold(1.0, |sum, n| 1.0 + sum * rest / f64::from(n));
    series * power_of_two(halvings as i32)
}

/// The natural logarithm of `x`, which must be above zero and not smaller than the smallest normal number.
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.max(f64::MIN_POSITIVE).to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | (1023 << 52));
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)): the fraction is at most 0.172, its 25th power far below the last digit.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let series = (0..=12).rev().fold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1));
    f64::from(exponent) * LN_2 + 2.0 * ratio * series
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "to be compared with")]
    fn they_agree_with_the_standard_library_to_fifteen_digits() {
        for x in [-300.5, -20.0, -1.0, -1e-9, 0.0, 1e-12, 0.1, 0.5, 1.0, LN_2, 3.7, 100.25, 650.0] {
            let (ours, theirs) = (exp(x), x.exp());
            assert!((ours / theirs - 1.0).abs() < 2e-15 * x.abs().max(1.0), "exp {x}: {ours} and {theirs}");
        }
        for x in [1e-300, 1e-9, 0.2, 0.999_999, 1.0, 1.000_001, SQRT_2, 1.5, 2.0, 10.0, 12_345.678, 1e300] {
            let (ours, theirs) = (ln(x), x.ln());
            assert!((ours - theirs).abs() <= 2e-15 * theirs.abs().max(1.0), "ln {x}: {ours} and {theirs}");
        }
    }

    #[test]
    fn they_are_exact_where_that_is_known() {
        assert_eq!((exp(0.0), ln(1.0)), (1.0, 0.0));
        assert!(exp(1e9).is_finite() && exp(-1e9) > 0.0 && ln(0.0).is_finite());
    }
}
