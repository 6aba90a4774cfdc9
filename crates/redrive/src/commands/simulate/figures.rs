//! The table: a row for each figure, a column for each contender.

use redrive_scenario::{Comparison, Latencies, Peak, Story, World};

use crate::config::duration_text;
use crate::output::{Cell, Colour, Output, Table, duration};

/// What is compared, in a sentence.
pub(super) fn headline(comparison: &Comparison) -> String {
    let World { clients, over, capacity, queue, latency, outages, retry_after } = &comparison.world;
    let arriving = if over.is_zero() { "at once".into() } else { format!("over {}", duration_text(*over)) };
    let latency = match latency {
        Latencies::Constant(latency) => duration_text(*latency),
        Latencies::LogNormal { median, p99 } => format!("{} (p99 {})", duration_text(*median), duration_text(*p99)),
    };
    let down = outages.iter().map(|outage| {
        let (from, to) = (duration_text(outage.from), duration_text(outage.to));
        format!("{from}..{to} ({})", outage.manner.as_str())
    });
    let down = down.collect::<Vec<_>>().join(", ");
    let down = if down.is_empty() { "never down".into() } else { format!("down {down}") };
    let asked = retry_after.map(|asked| format!(", Retry-After {}", duration_text(asked))).unwrap_or_default();
    format!(
        "{} requests {arriving}; {} calls/s, queue {}, latency {latency}{asked}; {down}; seed {}",
        number(u64::from(*clients)),
        number(u64::from(*capacity)),
        number(u64::from(*queue)),
        comparison.seed
    )
}

/// All figures of all contenders.
pub(super) fn print(output: Output, comparison: &Comparison) -> std::io::Result<()> {
    let stories = &comparison.stories;
    let mut table = Table::of_fields();
    let names = stories.iter().map(|story| Cell::coloured(story.contender.name.as_str(), Colour::Strong));
    table.row([Cell::from("")].into_iter().chain(names));
    for (name, figure) in FIGURES {
        let cells: Vec<Option<Cell>> = stories.iter().map(figure).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| Cell::from("-")));
            table.row([Cell::coloured(name, Colour::Faint)].into_iter().chain(cells));
        }
    }
    output.table(&table)
}

/// One figure of a story; a figure that no story has is left out.
type Figure = fn(&Story) -> Option<Cell>;

const FIGURES: [(&str, Figure); 19] = [
    ("succeeded", |story| Some(of_all(story.totals.succeeded, story, Colour::Good))),
    ("dead letters", |story| Some(bad(story.totals.dead()))),
    ("error at once, budget spent", |story| some(story.totals.suppressed)),
    ("error at once, breaker open", |story| some(story.totals.turned_away)),
    ("calls", |story| Some(number(story.totals.calls).into())),
    ("calls per request", |story| Some(format!("{:.2}", story.totals.amplification()).into())),
    ("retries", |story| Some(number(story.totals.retries).into())),
    ("peak, calls/s", |story| Some(peak(story.totals.peak))),
    ("peak after the outage", |story| story.totals.peak_after_outage.map(peak)),
    ("calls while it was down", |story| story.totals.backlog.map(|_| number(story.totals.calls_while_down).into())),
    ("rejected, queue full", |story| some(story.totals.rejected)),
    ("served for nobody", |story| some(story.totals.wasted)),
    ("held back by a guard", |story| some(story.totals.held)),
    ("backlog at its end", |story| story.totals.backlog.map(|backlog| number(backlog).into())),
    ("  99 % of it ended after", |story| story.totals.backlog_drained.map(|took| duration(took).into())),
    ("  everything ended after", |story| story.totals.drained.map(|took| duration(took).into())),
    ("success took, median", |story| story.completion.p50().map(|took| duration(took).into())),
    ("  99 %", |story| story.completion.p99().map(|took| duration(took).into())),
    ("  longest", |story| story.completion.max().map(|took| duration(took).into())),
];

fn some(count: u64) -> Option<Cell> {
    (count > 0).then(|| number(count).into())
}

fn bad(count: u64) -> Cell {
    Cell::coloured(number(count), if count == 0 { Colour::Good } else { Colour::Bad })
}

fn of_all(count: u64, story: &Story, colour: Colour) -> Cell {
    if count == story.totals.requests { Cell::coloured(number(count), colour) } else { number(count).into() }
}

fn peak(peak: Peak) -> Cell {
    if peak.calls == 0 {
        return "0".into();
    }
    format!("{} at {}", number(u64::from(peak.calls)), duration_text(peak.at)).into()
}

/// A number with its thousands apart.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        for (value, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(value), expected);
        }
    }
}
