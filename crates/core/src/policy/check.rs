//! The checks behind [`Policy::resolve`](super::Policy::resolve): each checks one field and collects what is wrong.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{FieldProblem, Limits};

/// The most invalid status codes that are reported of one list.
const REPORTED_CODES: usize = 10;

/// Collects problems. A value that is out of range is replaced by the nearest bound, so that one mistake is not
/// reported again by every field that is compared with it.
#[derive(Default)]
pub(super) struct Check {
    problems: Vec<FieldProblem>,
}

impl Check {
    pub(super) fn problem(&mut self, field: &'static str, message: impl Into<String>) {
        self.problems.push(FieldProblem { field, message: message.into() });
    }

    pub(super) fn number<T>(&mut self, field: &'static str, given: Option<T>, range: RangeInclusive<T>) -> Option<T>
    where
        T: PartialOrd + Display + Copy,
    {
        let given = given?;
        if range.contains(&given) {
            return Some(given);
        }
        let (least, most) = (*range.start(), *range.end());
        self.problem(field, format!("must be {least} to {most}, got {given}"));
        Some(if given < least { least } else { most })
    }

    pub(super) fn duration(
        &mut self,
        field: &'static str,
        given_ms: Option<u64>,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let range = millis(*range.start())..=millis(*range.end());
        self.number(field, given_ms, range).map(Duration::from_millis)
    }

    pub(super) fn at_least(&mut self, field: &'static str, value: Duration, other: &'static str, least: Duration) {
        if value < least {
            self.problem(field, format!("must be at least {other} ({}), got {}", millis(least), millis(value)));
        }
    }

    pub(super) fn at_most(&mut self, field: &'static str, value: Duration, other: &'static str, most: Duration) {
        if value > most {
            self.problem(field, format!("must be at most {other} ({}), got {}", millis(most), millis(value)));
        }
    }

    pub(super) fn delays(&mut self, field: &'static str, given_ms: &[u64]) -> Vec<Duration> {
        let entries = Limits::SCHEDULE_ENTRIES;
        if !entries.contains(&given_ms.len()) {
            let (least, most, got) = (entries.start(), entries.end(), given_ms.len());
            self.problem(field, format!("must have {least} to {most} entries, got {got}"));
            return Vec::new();
        }
        let (least, most) = (millis(*Limits::SCHEDULE_DELAY.start()), millis(*Limits::SCHEDULE_DELAY.end()));
        for (at, delay) in given_ms.iter().enumerate().filter(|(_, delay)| !(least..=most).contains(delay)) {
            self.problem(field, format!("entry {} must be {least} to {most}, got {delay}", at + 1));
        }
        given_ms.iter().copied().map(Duration::from_millis).collect()
    }

    pub(super) fn status_codes(&mut self, field: &'static str, codes: &BTreeSet<u16>) {
        let range = Limits::RETRYABLE_STATUS;
        for code in codes.iter().filter(|code| !range.contains(code)).take(REPORTED_CODES) {
            let (least, most) = (range.start(), range.end());
            let why = if (200..300).contains(code) { ", which is a success" } else { "" };
            self.problem(field, format!("must be {least} to {most}, got {code}{why}"));
        }
    }

    pub(super) fn characters(&mut self, field: &'static str, text: &str, allowed: RangeInclusive<usize>) {
        let got = text.chars().count();
        if !allowed.contains(&got) {
            self.problem(field, format!("must have {} to {} characters, got {got}", allowed.start(), allowed.end()));
        }
    }

    pub(super) fn done(self) -> Vec<FieldProblem> {
        self.problems
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
