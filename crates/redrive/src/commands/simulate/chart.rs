//! Charts of block characters: attempts per second over time, and bars.

use std::time::Duration;

use redrive_scenario::{Comparison, Outage, Story};

use super::figures::{number, rounded};
use crate::config::duration_text;
use crate::output::{Cell, Colour, Output, Table, duration, printable};

/// How many columns a chart has at most, and how many even where they do not fit.
const COLUMNS: usize = 84;
const FEWEST_COLUMNS: usize = 20;
/// How long a bar is at most, and what stands beside it.
const BAR: usize = 60;
const BESIDE_BAR: usize = 28;
/// How far a chart is from the left.
const INDENT: usize = 2;
/// A column is not narrower where there are this many of them: a burst within a tenth of a second is no rate per
/// second.
const SECONDS_WORTH_SHOWING: u128 = 20;
const SECOND: Duration = Duration::from_secs(1);
/// What a column may be wide, in milliseconds: what people find on a clock.
const NICE: [u128; 17] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000,
    3_600_000, 7_200_000, 21_600_000,
];
/// How many lines a chart has.
const LINES: usize = 4;
/// An eighth of a line, two eighths, …
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The attempts per second of every contender, all on the same scale.
pub(super) fn attempts(output: Output, comparison: &Comparison) -> std::io::Result<()> {
    let most = columns_within(output, COLUMNS, INDENT);
    let together = together(comparison.bucket, comparison.stories.first().map_or(0, |story| story.buckets.len()), most);
    let column = comparison.bucket.saturating_mul(u32::try_from(together).unwrap_or(u32::MAX));
    let rates: Vec<Vec<f64>> = comparison.stories.iter().map(|story| rates(story, together, column)).collect();
    let highest = rates.iter().flatten().copied().fold(1.0, f64::max);
    let columns = rates.first().map_or(0, Vec::len);
    for (story, rates) in comparison.stories.iter().zip(&rates) {
        let peak = rates.iter().copied().fold(0.0, f64::max);
        let scale = format!("{}, at most {}", unit(column), number(peak.round() as u64));
        let name = output.paint(&printable(&story.contender.name), Colour::Strong);
        let rest = if story.goes_on() { rest(story) } else { String::new() };
        output.line(format!("\n{name}  {}", output.paint(&format!("{scale}{rest}"), Colour::Faint)))?;
        for line in lines(rates, highest).iter().skip_while(|line| line.trim().is_empty()) {
            output.line(format!("  {}", line.trim_end()))?;
        }
        output.line(format!("  {}", axis(output, &comparison.world.outages, column, columns)))?;
    }
    let end = duration(column.saturating_mul(u32::try_from(columns).unwrap_or(u32::MAX)));
    let gap = " ".repeat(columns.saturating_sub(2 + end.len()).max(1));
    let is_ever_down = !comparison.world.outages.is_empty();
    let meaning = if is_ever_down { "━ the dependency is down" } else { "" };
    let fits = output.width.is_none_or(|width| INDENT + columns + 3 + meaning.chars().count() <= width);
    let text = if fits { format!("0s{gap}{end}   {meaning}") } else { format!("0s{gap}{end}\n  {meaning}") };
    output.line(format!("  {}", output.paint(text.trim_end(), Colour::Faint)))
}

/// How many columns fit beside what else is on the line, at most as many as are wanted.
fn columns_within(output: Output, wanted: usize, beside: usize) -> usize {
    output.width.map_or(wanted, |width| wanted.min(width.saturating_sub(beside).max(FEWEST_COLUMNS)))
}

/// What happened after the chart's end.
fn rest(story: &Story) -> String {
    let calls = number(u64::from(story.later.sends));
    format!("; after this chart {calls} calls more, until {}", rounded(story.totals.ended_at))
}

/// A bar for each name, all on the same scale.
pub(super) fn bars(output: Output, title: &str, values: &[(&str, f64)]) -> std::io::Result<()> {
    output.line(format!("\n{}", output.paint(title, Colour::Strong)))?;
    let highest = values.iter().map(|(_, value)| *value).fold(1.0, f64::max);
    let longest = columns_within(output, BAR, BESIDE_BAR);
    let mut table = Table::without_header().indented(INDENT);
    for (name, value) in values {
        let eighths = (value / highest * (longest * 8) as f64).round() as usize;
        let bar = "█".repeat(eighths / 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        table.row([Cell::from(*name), Cell::from(format!("{bar} {}", number(value.round() as u64)))]);
    }
    output.table(&table)
}

/// How many buckets make a column, so that there are not too many and each is as wide as people count time.
fn together(bucket: Duration, buckets: usize, most_columns: usize) -> usize {
    let millis = bucket.as_millis().max(1);
    let span = millis * buckets as u128;
    let least = if span >= SECONDS_WORTH_SHOWING * 1_000 { 1_000 } else { 0 };
    let fits = |count: &usize| {
        let width = millis * *count as u128;
        buckets.div_ceil(*count) <= most_columns && width >= least && NICE.contains(&width)
    };
    let most = buckets.max(1);
    (1..=most).find(fits).unwrap_or(buckets.div_ceil(most_columns).max(1))
}

/// What the columns count. A few attempts within a tenth of a second are no rate per second.
fn unit(column: Duration) -> String {
    match duration_text(column) {
        short if column < SECOND => format!("attempts in each {short}"),
        long => format!("attempts/s, {long} per column"),
    }
}

/// The attempts per second of each column, or all of a column that is shorter than a second.
fn rates(story: &Story, together: usize, column: Duration) -> Vec<f64> {
    // The last column may be shorter than the others.
    let seconds = |buckets: usize| column.as_secs_f64() * buckets as f64 / together as f64;
    let rate = |sends: u64, buckets: usize| match column < SECOND {
        true => sends as f64,
        false => sends as f64 / seconds(buckets),
    };
    let columns = story.buckets.chunks(together);
    columns.map(|buckets| rate(buckets.iter().map(|bucket| u64::from(bucket.sends)).sum(), buckets.len())).collect()
}

/// The lines of a chart from the top. What is not zero is always to be seen.
fn lines(rates: &[f64], highest: f64) -> Vec<String> {
    let eighths = |rate: f64| match (rate / highest * (LINES * 8) as f64).round() as usize {
        0 if rate > 0.0 => 1,
        eighths => eighths,
    };
    let block = |rate: f64, line: usize| match eighths(rate).saturating_sub(line * 8) {
        0 => ' ',
        eighths => BLOCKS[eighths.min(8) - 1],
    };
    (0..LINES).rev().map(|line| rates.iter().map(|rate| block(*rate, line)).collect()).collect()
}

/// The line below a chart, on which the outages are marked.
fn axis(output: Output, outages: &[Outage], column: Duration, columns: usize) -> String {
    let down = |at: usize| {
        let begins = column.saturating_mul(u32::try_from(at).unwrap_or(u32::MAX));
        outages.iter().any(|outage| outage.from < begins.saturating_add(column) && begins < outage.to)
    };
    let marks: Vec<bool> = (0..columns).map(down).collect();
    let stretches = marks.chunk_by(|one, other| one == other).map(|stretch| match stretch[0] {
        true => output.paint(&"━".repeat(stretch.len()), Colour::Bad),
        false => output.paint(&"─".repeat(stretch.len()), Colour::Faint),
    });
    stretches.collect()
}

#[cfg(test)]
mod tests {
    use redrive_scenario::OutageKind;

    use super::*;

    #[test]
    fn a_chart_is_as_high_as_its_rates() {
        let expected = ["    █", "    █", "   ▄█", " ▁▄██"];
        assert_eq!(lines(&[0.0, 0.1, 4.0, 12.0, 32.0], 32.0), expected);
    }

    #[test]
    fn a_column_is_a_second_or_more_where_there_are_enough_and_never_too_many() {
        // bucket in ms, how many, the column in ms
        for (bucket, buckets, expected) in [
            (100, 51, 100),
            (100, 150, 200),
            (100, 221, 1_000),
            (200, 252, 1_000),
            (500, 240, 2_000),
            (1_000, 300, 5_000),
            (5_000, 300, 20_000),
            (60_000, 300, 300_000),
            (86_400_000, 20, 86_400_000),
            (100, 0, 100),
        ] {
            let column = together(Duration::from_millis(bucket), buckets, COLUMNS) as u64 * bucket;
            assert_eq!(column, expected, "{buckets} buckets of {bucket} ms");
        }
    }

    #[test]
    fn a_column_that_is_shorter_than_a_second_counts_attempts() {
        let unit = |millis| unit(Duration::from_millis(millis));
        assert_eq!(unit(200), "attempts in each 200ms");
        assert_eq!(unit(2_000), "attempts/s, 2s per column");
    }

    #[test]
    fn the_axis_shows_when_the_dependency_is_down() {
        let second = Duration::from_secs(1);
        let outage = Outage { from: 2 * second, to: 4 * second, manner: OutageKind::Fail };
        let plain = Output { coloured: false, live: false, width: None, height: None };
        assert_eq!(axis(plain, &[outage], second, 6), "──━━──");
        assert_eq!(axis(plain, &[outage], 3 * second, 2), "━━");
        assert_eq!(axis(plain, &[], second, 3), "───");
    }
}
