//! How long requests take: the part of them that has succeeded by each time, all contenders in one picture.

use std::time::Duration;

use super::curves::{self, Curve, Marked};
use super::figure::{figure, whole_row};
use super::number::{duration, percent};
use super::palette::DRAWN;
use super::picture::{Picture, Size};
use super::plot::{Plot, time_labels};
use super::scale::Scale;
use super::table::{Table, all_named};
use super::{steps, ticks};
use crate::story::{Comparison, Story};

/// What the table tells, in percent of the requests that succeeded.
const PERCENTS: [usize; 9] = [1, 10, 25, 50, 75, 90, 95, 99, 100];

/// The section.
pub(super) fn section(comparison: &Comparison) -> String {
    let times = || comparison.stories.iter().take(DRAWN).flat_map(|story| &story.completion.percentiles);
    let body = match (times().min(), times().max()) {
        (Some(least), Some(most)) => {
            let names: Vec<_> = all_named(comparison).take(DRAWN).collect();
            let pictures =
                whole_row("completion-chart", &names, |id, size| picture(comparison, id, size, (*least, *most)));
            let caption = "The part of all requests that has succeeded so long after its arrival. The axis of time is \
                           logarithmic. Where a curve ends below 100 %, the rest never succeeds.";
            figure(&pictures, caption, table(comparison))
        }
        _ => "<p>No request of any contender succeeds, so there is nothing to draw.</p>\n".to_owned(),
    };
    format!("<section id=\"completion\">\n<h2>How long requests take</h2>\n{body}</section>\n")
}

fn picture(comparison: &Comparison, id: &str, size: Size, (least, most): (Duration, Duration)) -> String {
    let mut picture = Picture::new(size);
    let stories = comparison.stories.iter().take(DRAWN);
    let plot = Plot::within(
        &picture,
        curves::room(size.width, stories.clone().map(|story| (story.contender.name.as_str(), remark(story)))),
    );
    let times = ticks::round_times(least, most, plot.columns(40.0) as usize);
    let ends = (times[0].as_secs_f64(), times[times.len() - 1].as_secs_f64());
    let (x, y) = (Scale::log(ends.0, ends.1, plot.left, plot.right), plot.up(1.0));
    let parts = [0_u32, 25, 50, 75, 100].map(|part| (f64::from(part) / 100.0, format!("{part} %")));
    plot.left_axis(&mut picture, &y, "succeeded", &parts);
    plot.bottom_axis(&mut picture, &x, &time_labels(&times));
    let drawn: Vec<_> = stories.enumerate().map(|(number, story)| curve(number, story, &x, &y)).collect();
    curves::draw(&mut picture, &plot, &drawn, Marked::AtTheEnd);
    picture.finish(id, "The part of the requests that has succeeded, by time since arrival", &in_words(comparison))
}

fn curve<'a>(number: usize, story: &'a Story, x: &Scale, y: &Scale) -> Curve<'a> {
    let totals = &story.totals;
    let succeeded = totals.succeeded as f64 / totals.requests.max(1) as f64;
    let times = story.completion.percentiles.iter().enumerate();
    let points: Vec<_> = times.map(|(part, time)| (time.as_secs_f64(), succeeded * part as f64 / 100.0)).collect();
    let places = points.iter().map(|(time, part)| (x.at(*time), y.at(*part))).collect();
    Curve { number, name: &story.contender.name, remark: remark(story), path: steps::through(&points, x, y), places }
}

fn remark(story: &Story) -> String {
    percent(story.totals.succeeded, story.totals.requests)
}

fn in_words(comparison: &Comparison) -> String {
    let each = comparison.stories.iter().take(DRAWN).map(|story| {
        let succeeded = percent(story.totals.succeeded, story.totals.requests);
        let median = story
            .completion
            .p50()
            .map_or_else(String::new, |median| format!(", half of these within {}", duration(median)));
        format!("{}: {succeeded} succeed{median}", story.contender.name)
    });
    format!("{}.", each.collect::<Vec<_>>().join("; "))
}

fn table(comparison: &Comparison) -> Table {
    let stories = || comparison.stories.iter().take(DRAWN);
    let head =
        std::iter::once("Of the requests that succeed".to_owned()).chain(all_named(comparison).take(DRAWN)).collect();
    let mut table = Table::new("numbers", "How long the requests that succeed take at most", head);
    for part in PERCENTS {
        let cell = |story: &Story| story.completion.percentile(part).map_or_else(|| "–".to_owned(), duration);
        table.row(format!("{part} %"), stories().map(cell).collect());
    }
    let never = |story: &Story| percent(story.totals.requests - story.totals.succeeded, story.totals.requests);
    table.row("Never succeed".to_owned(), stories().map(never).collect());
    table
}
