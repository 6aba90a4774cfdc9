//! The small words of the command line: a capacity, a latency, an outage.

use std::time::Duration;

use redrive_core::duration::parse_duration;
use redrive_scenario::{Latencies, Outage, OutageKind};

/// `500` or `500/s`.
pub(super) fn capacity(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    number.parse().map_err(|_| "must be a number of calls per second, such as 500 or 500/s".into())
}

/// A time that is some time.
pub(super) fn until(text: &str) -> Result<Duration, String> {
    parse_duration(text).and_then(|until| if until.is_zero() { Err("must be above 0s".into()) } else { Ok(until) })
}

/// `50ms`, or `50ms,400ms` for a median and a 99th percentile.
pub(super) fn latency(text: &str) -> Result<Latencies, String> {
    match text.split_once(',') {
        None => parse_duration(text).map(Latencies::Constant),
        Some((median, p99)) => Ok(Latencies::LogNormal { median: parse_duration(median)?, p99: parse_duration(p99)? }),
    }
}

/// `10s..40s`, `10s..40s:hang`; `none` is no outage.
pub(super) fn outage(text: &str) -> Result<Option<Outage>, String> {
    if text == "none" {
        return Ok(None);
    }
    let (times, manner) = match text.split_once(':') {
        None => (text, OutageKind::Refuse),
        Some((times, manner)) => {
            (times, OutageKind::from_name(manner).ok_or_else(|| format!("{manner:?} must be refuse, hang or fail"))?)
        }
    };
    let (from, to) = times.split_once("..").ok_or("must be FROM..TO[:MANNER], such as 10s..40s:hang, or none")?;
    Ok(Some(Outage { from: parse_duration(from)?, to: parse_duration(to)?, manner }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_may_say_that_it_is_per_second() {
        assert_eq!((capacity("500"), capacity("500/s")), (Ok(500), Ok(500)));
        for wrong in ["", "/s", "-1", "5/m", "1.5", "99999999999"] {
            assert!(capacity(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_latency_is_constant_or_has_a_tail() {
        let (fifty, tail) = (Duration::from_millis(50), Duration::from_millis(400));
        assert_eq!(latency("50ms"), Ok(Latencies::Constant(fifty)));
        assert_eq!(latency("50ms,400ms"), Ok(Latencies::LogNormal { median: fifty, p99: tail }));
        for wrong in ["", "50", "50ms,", "50ms,400ms,1s"] {
            assert!(latency(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_outage_has_a_beginning_an_end_and_a_manner() {
        let (from, to) = (Duration::from_secs(10), Duration::from_secs(40));
        assert_eq!(outage("10s..40s"), Ok(Some(Outage { from, to, manner: OutageKind::Refuse })));
        assert_eq!(outage("10s..40s:hang"), Ok(Some(Outage { from, to, manner: OutageKind::Hang })));
        assert_eq!(outage("none"), Ok(None));
        for wrong in ["", "10s", "10s-40s", "10s..", "..40s", "10s..40s:", "10s..40s:explode"] {
            assert!(outage(wrong).is_err(), "{wrong:?}");
        }
    }
}
