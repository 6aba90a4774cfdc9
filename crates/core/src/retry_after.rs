//! Retry-After (RFC 9110, section 10.2.3): how long a dependency asks to wait.
//!
//! A date is measured against the answer's own Date header where there is a valid one: the difference of two readings
//! of the dependency's clock is right even if that clock is not. A malformed value is ignored.

use std::time::{Duration, SystemTime};

use crate::attempt::Answer;
use crate::time::Timestamp;

/// The wait that `answer`, received at `now`, asks for.
pub fn of(answer: &Answer, now: Timestamp) -> Option<Duration> {
    parse(answer.header("retry-after")?, answer.header("date"), now)
}

/// The wait that a Retry-After of `value` asks for, in an answer with the Date header `date` received at `now`.
pub fn parse(value: &str, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let value = value.trim_ascii();
    seconds(value).or_else(|| {
        let until = moment(value)?;
        Some(until.since(date.and_then(moment).unwrap_or(now)))
    })
}

/// Digits only. A number that is too large is the longest wait, not ignored: the dependency did ask for a long one.
fn seconds(value: &str) -> Option<Duration> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Duration::from_secs(value.parse().unwrap_or(u64::MAX)))
}

/// An HTTP date in any of its three forms.
fn moment(value: &str) -> Option<Timestamp> {
    let date = httpdate::parse_http_date(value.trim_ascii()).ok()?;
    let since_epoch = date.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Timestamp::default().after(since_epoch))
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const RECEIVED: Timestamp = Timestamp::from_millis(784_111_777_000);

    #[test]
    fn seconds_are_digits_only() {
        let cases = [
            ("0", Some(0)),
            ("120", Some(120)),
            ("007", Some(7)),
            ("  5\t", Some(5)),
            ("18446744073709551615", Some(u64::MAX)),
            ("99999999999999999999999999999999", Some(u64::MAX)),
            ("", None),
            ("   ", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("1e3", None),
            ("1 2", None),
            ("5s", None),
            ("soon", None),
            ("٣", None),
        ];
        for (value, expected) in cases {
            assert_eq!(parse(value, None, RECEIVED), expected.map(Duration::from_secs), "{value:?}");
        }
    }

    #[test]
    fn a_date_is_understood_in_all_three_forms() {
        for value in ["Sun, 06 Nov 1994 08:50:37 GMT", "Sunday, 06-Nov-94 08:50:37 GMT", "Sun Nov  6 08:50:37 1994"] {
            assert_eq!(parse(value, None, RECEIVED), Some(Duration::from_secs(60)), "{value:?}");
        }
        assert_eq!(parse(" Sun, 06 Nov 1994 08:50:37 GMT ", None, RECEIVED), Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_date_that_does_not_exist_is_ignored() {
        for value in ["Mon, 06 Nov 1994 08:50:37 GMT", "Wed, 31 Feb 2024 00:00:00 GMT", "Sun, 06 Nov 1994 08:50:37 CET"]
        {
            assert_eq!(parse(value, None, RECEIVED), None, "{value:?}");
        }
    }

    #[test]
    fn a_date_in_the_past_is_no_wait() {
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:36 GMT", None, RECEIVED), Some(Duration::ZERO));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT", None, RECEIVED), Some(Duration::ZERO));
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT", None, RECEIVED), Some(Duration::ZERO));
    }

    #[test]
    fn a_date_is_measured_by_the_clock_that_wrote_it() {
        let until = "Sun, 06 Nov 1994 09:00:37 GMT";
        let cases = [
            // The dependency's clock is ten minutes ahead of ours.
            (Some("Sun, 06 Nov 1994 08:59:37 GMT"), 60),
            // It is a year behind.
            (Some("Sat, 06 Nov 1993 09:00:37 GMT"), 365 * 24 * 60 * 60),
            // It says that the moment has passed.
            (Some("Sun, 06 Nov 1994 10:00:00 GMT"), 0),
            (Some("yesterday"), 660),
            (Some(""), 660),
            (None, 660),
        ];
        for (date, expected) in cases {
            assert_eq!(parse(until, date, RECEIVED), Some(Duration::from_secs(expected)), "{date:?}");
        }
    }

    #[test]
    fn seconds_do_not_look_at_the_date() {
        assert_eq!(parse("30", Some("Sun, 06 Nov 1994 10:00:00 GMT"), RECEIVED), Some(Duration::from_secs(30)));
    }

    #[test]
    fn a_wait_from_now_is_exact_to_the_millisecond() {
        let now = RECEIVED.after(Duration::from_millis(250));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:38 GMT", None, now), Some(Duration::from_millis(750)));
    }

    #[test]
    fn the_headers_of_an_answer_are_found_in_any_case() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut answer = Answer { status: 503, headers: Vec::new(), body: crate::Body::default(), truncated: false };
        assert_eq!(of(&answer, RECEIVED), None);
        answer.headers.push(header("RETRY-AFTER", "Sun, 06 Nov 1994 09:00:37 GMT"));
        assert_eq!(of(&answer, RECEIVED), Some(Duration::from_secs(660)));
        answer.headers.push(header("Date", "Sun, 06 Nov 1994 08:59:37 GMT"));
        assert_eq!(of(&answer, RECEIVED), Some(Duration::from_secs(60)));
    }

    #[test]
    fn no_text_of_any_length_is_too_much() {
        for date in ["Sun, 06 Nov 1994 08:50:37 GMT", "Wednesday, 06-Nov-94 08:50:37 GMT", "Sun Nov  6 08:50:37 1994"] {
            for end in 0..date.len() {
                assert_eq!(parse(&date[..end], None, RECEIVED), None, "{:?}", &date[..end]);
            }
            for at in 0..date.len() {
                for byte in 0..=127_u8 {
                    let mut text = date.as_bytes().to_vec();
                    text[at] = byte;
                    // It only must not panic: some of these are dates.
                    parse(std::str::from_utf8(&text).unwrap(), None, RECEIVED);
                }
            }
        }
        assert_eq!(parse(&"9".repeat(100_000), None, RECEIVED), Some(Duration::from_secs(u64::MAX)));
    }
}
