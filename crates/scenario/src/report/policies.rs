//! The contenders: the policy, the timetable, the guards and the findings of the retry standard of each.

use std::time::Duration;

use redrive_core::Date;
use redrive_core::backoff::Backoff;
use redrive_core::guards::budget::Drain;
use redrive_core::guards::{breaker, budget, concurrency};
use redrive_core::jitter::Jitter;
use redrive_core::policy::{Context, Policy};
use redrive_core::timetable::{self, FitsBudget, Range, Row};
use redrive_standard::rules::{self, Finding};

use super::number::{duration, times};
use super::table::{Table, named};
use super::text::escape;
use crate::contender::Guards;
use crate::story::{Comparison, Story};

/// The most attempts of a timetable that are shown one by one.
const ATTEMPTS: usize = 8;

/// The section; findings are judged as of `today`.
pub(super) fn section(comparison: &Comparison, today: Date) -> String {
    let cards: String =
        comparison.stories.iter().enumerate().map(|(number, story)| card(number, story, today)).collect();
    format!(
        "<section id=\"policies\">\n<h2>The contenders</h2>\n<p class=\"note\">When each attempt comes if all before it fail \
         at once. A Retry-After or a guard may make a wait longer.</p>\n<div class=\"cards\">\n{cards}</div>\n</section>\n"
    )
}

fn card(number: usize, story: &Story, today: Date) -> String {
    let contender = &story.contender;
    let findings = rules::check_policy(&contender.policy.to_spec(), None, today);
    format!(
        "<article class=\"card\">\n<h3>{}</h3>\n<p>{}</p>\n{}{}{}</article>\n",
        named(number, &contender.name),
        escape(&in_words(&contender.policy)),
        timetable(&contender.name, &contender.policy),
        guards(&contender.guards, contender.gives_up_when_held()),
        standard(&findings, contender.policy.context.unwrap_or(Context::Event)),
    )
}

/// The policy in a sentence or two.
fn in_words(policy: &Policy) -> String {
    let growth = match &policy.backoff {
        Backoff::Exponential { initial, multiplier, max } => {
            let factor = times(*multiplier);
            let factor = factor.trim_end_matches('×').trim_end_matches('0').trim_end_matches('.');
            format!("Exponential backoff from {}, ×{factor} up to {}", duration(*initial), duration(*max))
        }
        Backoff::Linear { initial, max } => {
            format!("Linear backoff from {}, up to {}", duration(*initial), duration(*max))
        }
        Backoff::Fixed { delay } => format!("Always {} between attempts", duration(*delay)),
        Backoff::Schedule { delays } => format!("A schedule of {} waits", delays.len()),
    };
    let jitter = match policy.jitter {
        Jitter::Full => "full jitter".to_owned(),
        Jitter::Equal => "equal jitter".to_owned(),
        Jitter::Decorrelated => "decorrelated jitter".to_owned(),
        Jitter::Proportional { ratio } => format!("jitter of ±{:.0}\u{a0}%", 100.0 * ratio),
        Jitter::None => "no jitter".to_owned(),
    };
    let attempts = match policy.max_attempts {
        1 => "One attempt".to_owned(),
        several => format!("At most {several} attempts"),
    };
    let context = policy.context.map_or_else(String::new, |context| format!(" Made for {}.", context.meaning()));
    format!(
        "{growth}, {jitter}. {attempts} in {}, each up to {}.{context}",
        duration(policy.total_budget),
        duration(policy.attempt_timeout)
    )
}

fn timetable(name: &str, policy: &Policy) -> String {
    let rows = timetable::of(policy);
    let head = ["Attempt", "Wait before it", "Typically at", "At the latest"].map(str::to_owned).to_vec();
    let mut table = Table::new("timetable", &format!("The timetable of {name}"), head);
    for row in rows.iter().take(ATTEMPTS) {
        let late = match row.fits {
            FitsBudget::Always => "",
            FitsBudget::Sometimes => " <small>may be too late</small>",
            FitsBudget::Never => " <small>too late</small>",
        };
        let cells = vec![range(row.wait), duration(row.at.typical), format!("{}{late}", duration(row.at.latest))];
        table.row(row.attempt.to_string(), cells);
    }
    format!("{}{}", table.finish(), rest(&rows))
}

fn rest(rows: &[Row]) -> String {
    match (rows.len().saturating_sub(ATTEMPTS), rows.last()) {
        (more @ 1.., Some(last)) => {
            let at = match (duration(last.at.typical), duration(last.at.latest)) {
                (typical, latest) if typical == latest => format!("at {latest}"),
                (typical, latest) => format!("typically at {typical}, at {latest} at the latest"),
            };
            format!("<p class=\"note\">… and {more} more, the last {at}.</p>\n")
        }
        _ => String::new(),
    }
}

fn range(range: Range) -> String {
    if range.earliest == range.latest {
        return duration(range.latest);
    }
    format!(
        "{}–{}",
        if range.earliest.is_zero() { "0".to_owned() } else { duration(range.earliest) },
        duration(range.latest)
    )
}

fn guards(guards: &Guards, gives_up: bool) -> String {
    let spent_opens_after = guards.budget.map(|_| guards.spent_opens_after());
    let all = [
        guards.budget.map(budget),
        guards.breaker.map(|settings| breaker(settings, spent_opens_after)),
        guards.concurrency.map(concurrency),
    ];
    let all: String = all.into_iter().flatten().map(|guard| format!("<li>{guard}</li>")).collect();
    if all.is_empty() {
        return "<h4>Guards</h4>\n<p>None: every attempt is sent as soon as it is due.</p>\n".to_owned();
    }
    let held = match gives_up {
        true => "A caller waits for the answer, so a request that the budget or the breaker holds back fails at once.",
        false => "A request that is held back waits, without losing an attempt.",
    };
    format!("<h4>Guards</h4>\n<ul>{all}</ul>\n<p class=\"note\">{held}</p>\n")
}

fn budget(budget: budget::Settings) -> String {
    let drain = match budget.drain {
        Drain::Earned => "a retry that succeeds while the dependency is healthy counts like a first attempt",
        Drain::Strict => "every retry counts, even if it succeeds",
    };
    format!(
        "<b>Retry budget</b>: {} retries and {}\u{a0}% of the first attempts in {}; {drain}",
        budget.floor,
        budget.percent,
        duration(budget.window),
    )
}

fn breaker(breaker: breaker::Settings, spent_opens_after: Option<Duration>) -> String {
    let spent = spent_opens_after
        .map(|after| format!(", or if retries wait {} for the budget while calls fail", duration(after)))
        .unwrap_or_default();
    format!(
        "<b>Circuit breaker</b>: opens on {} failures in a row, on {}\u{a0}% of at least {least} calls in {window}, if \
         {}\u{a0}% of at least {least} calls in {window} take {} or longer{spent}; for {}, doubling up to {}, ±{:.0}\u{a0}%; \
         then {probes} probes; when it closes, the attempts at once grow from {probes}",
        breaker.failures_in_a_row,
        breaker.failure_percent,
        breaker.slow_percent,
        duration(breaker.slow_call),
        duration(breaker.open),
        duration(breaker.longest_open),
        100.0 * breaker.spread,
        least = breaker.least_calls,
        window = duration(breaker.window),
        probes = breaker.probes,
    )
}

fn concurrency(limit: concurrency::Settings) -> String {
    match limit.is_adaptive {
        true => format!(
            "<b>Concurrency</b>: {} attempts at once at first, then {} to {}, as the dependency’s latency allows",
            limit.start, limit.least, limit.most
        ),
        false => format!("<b>Concurrency</b>: at most {} attempts at once", limit.most),
    }
}

fn standard(findings: &[Finding], context: Context) -> String {
    let finding = |finding: &Finding| {
        let permitted = if finding.is_permitted() { ", permitted" } else { "" };
        format!(
            "<li><b>✗ {}</b> {} <small>({}{permitted})</small><br/><small>Fix: {}.</small></li>",
            finding.check.rule.id(),
            escape(&finding.wrong),
            finding.check.gate.action(),
            escape(&finding.fix),
        )
    };
    let verdict = match findings {
        [] => "<p class=\"keeps\">✓ Breaks no rule that a policy can break.</p>".to_owned(),
        _ => format!("<ul class=\"breaks\">{}</ul>", findings.iter().map(finding).collect::<String>()),
    };
    format!("<h4>Retry standard <small>as it is for {}</small></h4>\n{verdict}\n", context.meaning())
}
