//! `Retry-After`: the value of the header, a line end, and the value of the `Date` header beside it.

use std::time::{Duration, SystemTime};

use fastrand::Rng;
use redrive_core::decide::{Decision, RunState, after_attempt};
use redrive_core::{Policy, Timestamp, Verdict, classify, retry_after};

use crate::target::Target;
use crate::world::NOW;

pub(crate) const TARGET: Target = Target {
    name: "retry-after",
    what: "the Retry-After and Date headers of an answer",
    run,
    samples,
    words: &[
        "GMT",
        "Sun, ",
        "Sunday, ",
        "06 Nov 1994",
        "Feb",
        "31",
        "1969",
        "9999",
        "00:00:00",
        "23:59:60",
        "\n",
        "\t",
        "+1",
        "-1",
        "0",
        "18446744073709551616",
        "UTC",
        "٣",
    ],
    generate,
    max_bytes: 200,
};

fn samples() -> Vec<Vec<u8>> {
    [
        "120",
        "Sun, 06 Nov 1994 08:49:37 GMT\nSun, 06 Nov 1994 08:48:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994\nyesterday",
        "Tue, 14 Nov 2023 22:14:20 GMT",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// A date in whole seconds, within the years that an HTTP date can express; or a number of seconds.
fn generate(random: &mut Rng) -> Vec<u8> {
    let date = |random: &mut Rng| {
        let seconds = random.u64(..253_402_300_800);
        httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    };
    let value = if random.bool() { date(random) } else { random.u64(..).to_string() };
    match random.bool() {
        true => format!("{value}\n{}", date(random)).into_bytes(),
        false => value.into_bytes(),
    }
}

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (value, date) = text.split_once('\n').map_or((text, None), |(value, date)| (value, Some(date)));
    let asked = retry_after::parse(value, date, NOW);

    let padded = format!(" \t{value} ");
    assert_eq!(retry_after::parse(&padded, date, NOW), asked, "spaces around the value mean nothing");

    let value = value.trim_ascii();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        let seconds = value.bytes().fold(0_u64, |sum, digit| {
            sum.checked_mul(10).and_then(|sum| sum.checked_add(u64::from(digit - b'0'))).unwrap_or(u64::MAX)
        });
        // Once a number is too large, further digits make it no smaller.
        let seconds = if value.trim_start_matches('0').len() > 20 { u64::MAX } else { seconds };
        assert_eq!(asked, Some(Duration::from_secs(seconds)), "{value:?} is a number of seconds");
    } else if let Some(wait) = asked {
        check_date(value, date, wait);
    }
    if let Some(wait) = asked {
        check_decision(wait);
    }
}

/// A date is a whole second, and is unchanged when it is written and read again.
fn check_date(value: &str, date: Option<&str>, wait: Duration) {
    let until = httpdate::parse_http_date(value).expect("what asks for a wait is a number or a date");
    let again = retry_after::parse(&httpdate::fmt_http_date(until), date, NOW);
    assert_eq!(again, Some(wait), "{value:?} is the same moment however it is written");
    let date = date.filter(|date| httpdate::parse_http_date(date.trim_ascii()).is_ok());
    if date.is_none() {
        let since = until.duration_since(SystemTime::UNIX_EPOCH).expect("a date is not before 1970");
        assert_eq!(wait, Timestamp::default().after(since).since(NOW), "{value:?} is measured from now");
    }
}

/// No retry comes before the Retry-After, and none after the deadline.
fn check_decision(wait: Duration) {
    let policy = Policy::default();
    let deadline_at = NOW.after(policy.total_budget);
    let standing = RunState {
        attempt: 1,
        max_attempts: policy.max_attempts,
        deadline_at,
        previous_backoff: None,
        estimate: Duration::ZERO,
        dns_failures: 0,
    };
    let headers = vec![("retry-after".to_owned(), wait.as_secs().to_string())];
    let answer = redrive_core::Answer { status: 503, headers, body: redrive_core::Body::default(), truncated: false };
    let verdict = classify::answer(&policy, &answer, NOW);
    assert!(matches!(verdict, Verdict::Retry { .. }), "{verdict:?}");
    if let Decision::Retry { at, .. } = after_attempt(&policy, &standing, &verdict, NOW, 0.5) {
        let asked = NOW.after(Duration::from_secs(wait.as_secs()));
        assert!(at >= asked && at < deadline_at, "{at:?} is not between {asked:?} and {deadline_at:?}");
    }
}
