//! The table: a row for each figure, a column for each contender.

use std::time::Duration;

use redrive_scenario::{Comparison, Latencies, Peak, Story, World};

use super::contender::labelled;
use crate::config::duration_text;
use crate::output::{Cell, Colour, Output, Table, duration, printable, wrap};

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
        "{} {} {arriving}; {} calls/s, queue {}, latency {latency}{asked}; {down}; seed {}",
        number(u64::from(*clients)),
        if *clients == 1 { "request" } else { "requests" },
        number(u64::from(*capacity)),
        number(u64::from(*queue)),
        comparison.seed
    )
}

/// What labels stand for.
pub(super) fn labels(output: Output, texts: &[&str]) -> std::io::Result<()> {
    let mut table = Table::without_header().indented(2);
    for (label, text) in texts.iter().map(|text| labelled(text)) {
        if let Some(label) = label {
            table.row([Cell::coloured(label, Colour::Strong), Cell::coloured(text, Colour::Faint)]);
        }
    }
    if table.is_empty() { Ok(()) } else { output.table(&table) }
}

/// What a reader may wonder about, and why it is so.
pub(super) fn remarks(output: Output, comparison: &Comparison) -> std::io::Result<()> {
    let one = |story: &Story| {
        let name = printable(&story.contender.name);
        comparison.remarks(story).into_iter().map(move |remark| format!("{name}: {remark}"))
    };
    let mut remarks: Vec<String> = comparison.stories.iter().flat_map(one).collect();
    if !comparison.succeed_alike() {
        remarks.push(
            "times: the contenders complete different numbers of requests; one that gives up early is quick with the rest"
                .into(),
        );
    }
    if !remarks.is_empty() {
        output.line("")?;
    }
    remarks.iter().try_for_each(|remark| output.line(output.paint(&wrapped(output, remark), Colour::Faint)))
}

/// As many lines as it takes, the further ones indented.
pub(super) fn wrapped(output: Output, text: &str) -> String {
    wrap(text, width_of(output) - 2, false).join("\n  ")
}

/// What the terminal shows of a line, or most terminals do.
fn width_of(output: Output) -> usize {
    output.width.unwrap_or(WIDTH).max(NARROWEST)
}

/// All figures of all contenders, as many of them side by side as fit.
pub(super) fn print(output: Output, comparison: &Comparison) -> std::io::Result<()> {
    let mut rest = &comparison.stories[..];
    while !rest.is_empty() {
        let table = |count: usize| side_by_side(&rest[..count], &comparison.stories);
        let fit = (2..=rest.len()).take_while(|count| table(*count).width() <= width_of(output)).last().unwrap_or(1);
        output.line("")?;
        output.table(&table(fit))?;
        rest = &rest[fit..];
    }
    Ok(())
}

fn side_by_side(stories: &[Story], all: &[Story]) -> Table {
    let mut table = Table::without_header();
    let names = stories.iter().map(|story| Cell::coloured(story.contender.name.as_str(), Colour::Strong));
    table.row([Cell::from("")].into_iter().chain(names));
    for (name, figure) in FIGURES {
        if all.iter().any(|story| figure(story).is_some()) {
            let cells: Vec<Option<Cell>> = stories.iter().map(figure).collect();
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| Cell::from("-")));
            table.row([Cell::coloured(name, Colour::Faint)].into_iter().chain(cells));
        }
    }
    table
}

const MINUTE: Duration = Duration::from_secs(60);
/// What most terminals show of a line, and the least that a line is written for.
const WIDTH: usize = 100;
const NARROWEST: usize = 40;

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
    ("peak after recovery", |story| story.totals.peak_after_outage.map(peak)),
    ("calls while it was down", |story| story.totals.backlog.map(|_| number(story.totals.calls_while_down).into())),
    ("rejected, queue full", |story| some(story.totals.rejected)),
    ("served after the timeout", |story| some(story.totals.wasted)),
    ("held back by a guard", |story| some(story.totals.held)),
    ("open at recovery", |story| story.totals.backlog.map(|backlog| number(backlog).into())),
    ("  99 % of these ended after", |story| {
        let some = story.totals.backlog.is_some_and(|backlog| backlog > 0);
        story.totals.backlog_drained.filter(|_| some).map(|took| rounded(took).into())
    }),
    ("  all requests ended after", |story| story.totals.drained.map(|took| rounded(took).into())),
    ("success took, median", |story| story.completion.p50().map(|took| rounded(took).into())),
    ("  99 %", |story| story.completion.p99().map(|took| rounded(took).into())),
    ("  longest", |story| story.completion.max().map(|took| rounded(took).into())),
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
    format!("{} at {}", number(u64::from(peak.calls)), instant(peak.at)).into()
}

/// A time since the beginning, which `duration` would call milliseconds if it is zero.
fn instant(at: Duration) -> String {
    if at < MINUTE { duration_text(at) } else { rounded(at) }
}

/// A time to the nearest of what is shown of it: 26.9 s are 27 and not 26.
pub(super) fn rounded(time: Duration) -> String {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let step = match millis {
        0..1_000 => 1,
        1_000..9_950 => 100,
        9_950..3_599_500 => 1_000,
        3_599_500..86_370_000 => 60_000,
        _ => 3_600_000,
    };
    duration(Duration::from_millis(millis.saturating_add(step / 2) / step * step))
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
    fn a_long_remark_is_wrapped_between_words() {
        let output = |width| Output { coloured: false, live: false, width, height: None };
        for (width, expected) in [(None, [94, 96, 36]), (Some(120), [114, 111, 0])] {
            let lines = wrapped(output(width), "word ".repeat(45).trim_end());
            let widths: Vec<_> = lines.lines().map(|line| line.chars().count()).chain([0]).take(3).collect();
            assert_eq!(widths, expected);
        }
        assert_eq!(wrapped(output(None), "short"), "short");
    }

    #[test]
    fn times_are_rounded_to_the_nearest() {
        for (millis, expected) in [
            (0, "0ms"),
            (874, "874ms"),
            (5_590, "5.6s"),
            (9_949, "9.9s"),
            (9_950, "10s"),
            (26_900, "27s"),
            (59_500, "1m"),
            (84_700, "1m 25s"),
            (3_599_499, "59m 59s"),
            (3_599_500, "1h"),
            (30_999_000, "8h 37m"),
            (86_370_000, "1d"),
        ] {
            assert_eq!(rounded(Duration::from_millis(millis)), expected, "{millis}");
        }
    }

    #[test]
    fn thousands_are_apart() {
        for (value, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(value), expected);
        }
    }
}
