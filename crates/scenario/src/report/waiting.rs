//! Waiting: how many requests are open over time, all contenders in one picture.

use super::curves::{self, Curve, Marked};
use super::figure::{figure, whole_row};
use super::number::{count, duration};
use super::palette::DRAWN;
use super::picture::{Picture, Size};
use super::plot::{Plot, count_labels, time_labels};
use super::scale::Scale;
use super::table::{Table, all_named};
use super::{steps, ticks};
use crate::story::{Comparison, Story};

/// The most rows of the table.
const ROWS: usize = 20;

/// The section.
pub(super) fn section(comparison: &Comparison) -> String {
    let held = comparison.stories.iter().any(|story| story.totals.held > 0);
    let caption = format!(
        "Requests that have arrived and not ended yet: in their backoff, at the dependency{}. The most in each {}.",
        if held { ", or held back by a guard" } else { "" },
        duration(comparison.bucket),
    );
    let names: Vec<_> = all_named(comparison).take(DRAWN).collect();
    let pictures = whole_row("waiting-chart", &names, |id, size| picture(comparison, id, size));
    format!(
        "<section id=\"waiting\">\n<h2>Waiting</h2>\n{}</section>\n",
        figure(&pictures, &caption, table(comparison))
    )
}

fn picture(comparison: &Comparison, id: &str, size: Size) -> String {
    let mut picture = Picture::new(size);
    let stories = comparison.stories.iter().take(DRAWN);
    let plot = Plot::within(
        &picture,
        curves::room(size.width, stories.clone().map(|story| (story.contender.name.as_str(), remark(story)))),
    );
    let values = ticks::counts(f64::from(stories.clone().map(most).max().unwrap_or(0)), 5);
    let x = plot.across(comparison.span().as_secs_f64());
    let y = plot.up(values.last().copied().unwrap_or(1.0));
    plot.outages(&mut picture, &x, &comparison.world.outages);
    plot.left_axis(&mut picture, &y, "requests", &count_labels(&values));
    plot.bottom_axis(&mut picture, &x, &time_labels(&ticks::clock(comparison.span(), plot.columns(80.0))));
    let width = comparison.bucket.as_secs_f64();
    let drawn: Vec<_> =
        stories.enumerate().map(|(number, story)| curve(number, story, width, &plot, (&x, &y))).collect();
    curves::draw(&mut picture, &plot, &drawn, Marked::AtTheEnd);
    picture.finish(id, "Open requests over time", &in_words(comparison))
}

fn curve<'a>(number: usize, story: &'a Story, width: f64, plot: &Plot, (x, y): (&Scale, &Scale)) -> Curve<'a> {
    let open = || story.buckets.iter().map(|bucket| f64::from(bucket.open));
    let places = open().enumerate().map(|(at, open)| (x.at((at as f64 + 0.5) * width), y.at(open)));
    Curve {
        number,
        name: &story.contender.name,
        remark: remark(story),
        path: steps::line(open(), width, x, y),
        places: places.chain([(plot.right, y.at(open().next_back().unwrap_or(0.0)))]).collect(),
    }
}

fn remark(story: &Story) -> String {
    format!("max {}", count(u64::from(most(story))))
}

fn most(story: &Story) -> u32 {
    story.buckets.iter().map(|bucket| bucket.open).max().unwrap_or(0)
}

fn in_words(comparison: &Comparison) -> String {
    let each = comparison.stories.iter().take(DRAWN);
    let each = each.map(|story| format!("{}: {} at most", story.contender.name, count(u64::from(most(story)))));
    format!("Requests that have arrived and not ended. {}.", each.collect::<Vec<_>>().join("; "))
}

fn table(comparison: &Comparison) -> Table {
    let stories = || comparison.stories.iter().take(DRAWN);
    let head = std::iter::once("From".to_owned()).chain(all_named(comparison).take(DRAWN)).collect();
    let mut table =
        Table::new("numbers", "Open requests: the most in each stretch (of these, held back by a guard)", head);
    let buckets = comparison.stories.first().map_or(0, |story| story.buckets.len());
    let together = buckets.div_ceil(ROWS).max(1);
    for from in (0..buckets).step_by(together) {
        let cell = |story: &Story| {
            let stretch = story.buckets.iter().skip(from).take(together);
            let open = stretch.clone().map(|bucket| bucket.open).max().unwrap_or(0);
            match stretch.map(|bucket| bucket.held).max().unwrap_or(0) {
                0 => count(u64::from(open)),
                held => format!("{} <small>({})</small>", count(u64::from(open)), count(u64::from(held))),
            }
        };
        let at = comparison.bucket.saturating_mul(u32::try_from(from).unwrap_or(u32::MAX));
        table.row(duration(at), stories().map(cell).collect());
    }
    table
}
