//! The verdict in numbers: a row for each figure, a column for each contender.

use std::time::Duration;

use redrive_core::task::Reason;

use super::number::{count, duration, percent, rate, times};
use super::table::{Table, all_named, badge, named};
use super::text::escape;
use crate::story::{Comparison, Story, Totals};

/// Which end of a row is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BetterIf {
    Less,
    More,
    /// Neither, or it cannot be said.
    Neither,
}

/// One contender's entry: what is compared, and what is written.
struct Entry {
    value: Option<f64>,
    text: String,
}

/// With more contenders than these the columns have to be narrow.
const ROOMY: usize = 4;
/// With more calls than these, in all or in a second, a narrow page has no room for four figures in a line.
const MOST_CALLS: u64 = 999_999;
const MOST_CALLS_PER_SECOND: u32 = 99_999;

/// The section.
pub(super) fn section(comparison: &Comparison) -> String {
    let stories = &comparison.stories;
    let head = std::iter::once("Figure".to_owned());
    let is_large = |totals: &Totals| totals.calls > MOST_CALLS || totals.peak.calls > MOST_CALLS_PER_SECOND;
    let has_large = stories.len() > 1 && stories.iter().any(|story| is_large(&story.totals));
    let class = match stories.len() {
        1 => "verdict one",
        count if count > ROOMY && has_large => "verdict many lettered large",
        count if count > ROOMY => "verdict many lettered",
        2 if has_large => "verdict two lettered large",
        _ if has_large => "verdict lettered large",
        2 => "verdict two",
        _ => "verdict",
    };
    let mut rows = Rows {
        stories,
        table: Table::new(class, "The verdict in numbers", head.chain(all_named(comparison)).collect()),
        alike: comparison.succeed_alike(),
        may_be_best: comparison.succeed_most(),
        has_letters: class.contains("lettered"),
    };
    rows.load(f64::from(comparison.world.capacity), !comparison.world.outages.is_empty());
    rows.ends();
    rows.times(!comparison.world.outages.is_empty());
    let note = if rows.alike || stories.len() < 2 {
        ""
    } else {
        " Times are not ranked here: with these contenders different shares of the requests succeed, and one that gives up \
         early is quick with the rest."
    };
    let marked = if stories.len() < 2 {
        String::new()
    } else {
        format!(
            "<p class=\"note\">“best” marks the single best of a row. Ties are not marked, nor is a contender with fewer successful \
             requests than another.{note}</p>\n"
        )
    };
    let remarks = remarks(comparison);
    format!(
        "<section id=\"verdict\">\n<h2>The verdict in numbers</h2>\n{}{marked}{remarks}</section>\n",
        rows.table.finish()
    )
}

/// What is remarkable about the contenders, and why it is so.
fn remarks(comparison: &Comparison) -> String {
    let one = |(number, story): (usize, &Story)| -> String {
        let remark =
            |remark: String| format!("<li>{}: {}.</li>\n", named(number, &story.contender.name), escape(&remark));
        comparison.remarks(story).into_iter().map(remark).collect()
    };
    let remarks: String = comparison.stories.iter().enumerate().map(one).collect();
    if remarks.is_empty() { remarks } else { format!("<h3>Why?</h3>\n<ul class=\"remarks\">\n{remarks}</ul>\n") }
}

struct Rows<'a> {
    stories: &'a [Story],
    table: Table,
    alike: bool,
    /// A contender with fewer successful requests has low load because it gave up, and is never marked as best.
    may_be_best: Vec<bool>,
    /// On a narrow page the figures take several lines, and each has the letter of its contender.
    has_letters: bool,
}

impl Rows<'_> {
    /// What the dependency has to bear.
    fn load(&mut self, capacity: f64, has_outage: bool) {
        let counted = |value: u64| Entry { value: Some(value as f64), text: count(value) };
        let peak = |calls: u32| Entry {
            value: Some(f64::from(calls)),
            text: match calls {
                0 => "0".to_owned(),
                _ => {
                    format!("{} <small>{} capacity</small>", rate(u64::from(calls)), times(f64::from(calls) / capacity))
                }
            },
        };
        self.table.group("Load on the dependency");
        self.row("Calls", "first attempts and retries", BetterIf::Less, |totals| counted(totals.calls));
        self.row("Amplification", "calls for each request", BetterIf::Less, |totals| Entry {
            value: Some(totals.amplification()),
            text: times(totals.amplification()),
        });
        self.row("Calls for each success", "", BetterIf::Less, |totals| {
            let each = totals.calls as f64 / totals.succeeded as f64;
            Entry { value: each.is_finite().then_some(each), text: times(each).replace('×', "") }
        });
        self.row("Peak", "the second with the most calls", BetterIf::Less, |totals| peak(totals.peak.calls));
        if has_outage {
            self.row("Peak after recovery", "the same, once the last outage is over", BetterIf::Less, |totals| {
                totals.peak_after_outage.map_or_else(none, |highest| peak(highest.calls))
            });
            self.row("Calls while down", "", BetterIf::Less, |totals| part(totals.calls_while_down, totals.calls));
        }
        self.row("Turned away by a full queue", "calls answered 503", BetterIf::Less, |totals| {
            part(totals.rejected, totals.calls)
        });
        self.row("Wasted work", "served after the caller had timed out", BetterIf::Less, |totals| {
            part(totals.wasted, totals.served)
        });
    }

    /// What becomes of the requests.
    fn ends(&mut self) {
        let of_all = |value: u64, totals: &Totals| part(value, totals.requests);
        self.table.group("How the requests end");
        self.row("Succeeded", "", BetterIf::More, |totals| of_all(totals.succeeded, totals));
        self.row("Dead letters", "", BetterIf::Less, |totals| of_all(totals.dead(), totals));
        for reason in Reason::ALL {
            let counted = |totals: &Totals| {
                totals.dead_letters.iter().find(|(of, _)| *of == reason).map_or(0, |(_, count)| *count)
            };
            self.row_if_any(in_words(reason), "", BetterIf::Neither, counted);
        }
        let at_once = "an error at once, because a caller waits";
        self.row_if_any("Given up: the budget was spent", at_once, BetterIf::Less, |totals| totals.suppressed);
        self.row_if_any("Given up: the breaker was open", at_once, BetterIf::Less, |totals| totals.turned_away);
        self.row_if_any(
            "Held back by a guard",
            "at least once; they wait without losing an attempt",
            BetterIf::Neither,
            |totals| totals.held,
        );
    }

    /// How long it takes.
    fn times(&mut self, has_outage: bool) {
        let took = |time: Option<Duration>| match time {
            Some(time) => Entry { value: Some(time.as_secs_f64()), text: duration(time) },
            None => none(),
        };
        let shorter = if self.alike { BetterIf::Less } else { BetterIf::Neither };
        self.table.group("How long it takes");
        if has_outage {
            self.row("Backlog at recovery", "requests open when the last outage ends", BetterIf::Neither, |totals| {
                totals.backlog.map_or_else(none, |open| part(open, totals.requests))
            });
            self.row("Backlog drained", "99 % of it, from recovery on", shorter, |totals| took(totals.backlog_drained));
            self.row("All requests ended", "from recovery on", shorter, |totals| {
                took(totals.drained.or(Some(Duration::ZERO)))
            });
        } else {
            self.row("All requests ended", "from the start", shorter, |totals| took(Some(totals.ended_at)));
        }
        let percentiles = [
            ("Completion, median", "of the requests that succeed", 50),
            ("90th percentile", "", 90),
            ("99th percentile", "", 99),
            ("slowest", "", 100),
        ];
        for (at, (name, about, percent)) in percentiles.into_iter().enumerate() {
            let entries = self.stories.iter().map(|story| took(story.completion.percentile(percent))).collect();
            self.entries(name, about, at > 0, shorter, entries);
        }
    }

    fn row(&mut self, name: &str, about: &str, good: BetterIf, entry: impl Fn(&Totals) -> Entry) {
        let entries = self.stories.iter().map(|story| entry(&story.totals)).collect();
        self.entries(name, about, false, good, entries);
    }

    /// A part of the row before; left out if there is none of it.
    fn row_if_any(&mut self, name: &str, about: &str, good: BetterIf, counted: impl Fn(&Totals) -> u64) {
        if self.stories.iter().any(|story| counted(&story.totals) > 0) {
            let entry = |story: &Story| part(counted(&story.totals), story.totals.requests);
            let is_reason = good == BetterIf::Neither && about.is_empty();
            self.entries(name, about, is_reason, good, self.stories.iter().map(entry).collect());
        }
    }

    fn entries(&mut self, name: &str, about: &str, is_part: bool, good: BetterIf, entries: Vec<Entry>) {
        let best = best(&entries, good).filter(|at| self.may_be_best[*at]);
        let of = |at: usize| match self.has_letters {
            true => format!("<span class=\"of\" aria-hidden=\"true\">{}</span>", badge(at)),
            false => String::new(),
        };
        let cell = |(at, entry): (usize, Entry)| match best == Some(at) {
            true => format!("{}<b class=\"best\"><span class=\"tag\">best</span> {}</b>", of(at), entry.text),
            false => format!("{}{}", of(at), entry.text),
        };
        let about = if about.is_empty() { String::new() } else { format!(" <small>{}</small>", escape(about)) };
        let name = escape(name);
        let heading =
            if is_part { format!("<span class=\"part\">{name}{about}</span>") } else { format!("{name}{about}") };
        self.table.row(heading, entries.into_iter().enumerate().map(cell).collect());
    }
}

/// A part of a whole: how many, and in percent.
fn part(value: u64, whole: u64) -> Entry {
    let text = match value {
        0 => "0".to_owned(),
        _ => format!("{} <small>{}</small>", count(value), percent(value, whole)),
    };
    Entry { value: Some(value as f64), text }
}

fn none() -> Entry {
    Entry { value: None, text: "–".to_owned() }
}

/// The single best, if there is one that also looks better than the others.
fn best(entries: &[Entry], good: BetterIf) -> Option<usize> {
    let sign = match good {
        BetterIf::Less => 1.0,
        BetterIf::More => -1.0,
        BetterIf::Neither => return None,
    };
    if entries.len() < 2 {
        return None;
    }
    let ranked = entries.iter().enumerate().filter_map(|(at, entry)| Some((at, sign * entry.value?)));
    let (at, _) = ranked.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let looks_the_same = entries.iter().filter(|entry| entry.text == entries[at].text).count() > 1;
    (!looks_the_same).then_some(at)
}

/// Why a request ended as a dead letter, in words.
fn in_words(reason: Reason) -> &'static str {
    match reason {
        Reason::NotRetryable => "never to be retried",
        Reason::BodyLost => "body lost",
        Reason::PolicyLost => "policy lost",
        Reason::Attempts => "all attempts used",
        Reason::DnsAttempts => "name not resolved",
        Reason::Deadline => "out of time",
        Reason::RetryAfter => "asked to wait too long",
        Reason::Budget => "retry budget spent",
        Reason::OutcomeUnknown => "outcome unknown",
        Reason::Cancelled => "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(values: &[f64]) -> Vec<Entry> {
        values.iter().map(|value| Entry { value: Some(*value), text: format!("{value:.1}") }).collect()
    }

    #[test]
    fn the_single_best_is_marked_and_ties_are_not() {
        for (values, good, expected) in [
            (vec![3.0, 1.0, 2.0], BetterIf::Less, Some(1)),
            (vec![3.0, 1.0, 2.0], BetterIf::More, Some(0)),
            (vec![3.0, 1.0, 2.0], BetterIf::Neither, None),
            (vec![1.0, 1.0, 2.0], BetterIf::Less, None),
            (vec![1.01, 1.02, 2.0], BetterIf::Less, None),
            (vec![1.0], BetterIf::Less, None),
            (vec![], BetterIf::Less, None),
        ] {
            assert_eq!(best(&entries(&values), good), expected, "{values:?} {good:?}");
        }
        let with_nothing = [none(), Entry { value: Some(9.0), text: "9".to_owned() }];
        assert_eq!(best(&with_nothing, BetterIf::Less), Some(1), "what has no value is not ranked");
        assert_eq!(best(&[none(), none()], BetterIf::Less), None);
    }
}
