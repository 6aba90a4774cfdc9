//! Calls per second over time: a panel for each contender, all on the same axes.

use std::time::Duration;

use super::figure::{NARROW_PANEL, figure, in_both_sizes, panels};
use super::number::{count, duration, rate, short, times};
use super::palette::{DRAWN, letter};
use super::picture::{Anchor, Picture, SMALL, Size};
use super::plot::{Plot, count_labels, time_labels};
use super::scale::Scale;
use super::table::{Table, all_named, named};
use super::text::escape;
use super::{steps, text, ticks};
use crate::story::{Bucket, Comparison, Story};

/// Calls are shown per second, so no step is narrower than one: then the highest step is the peak that the table names.
const NARROWEST: Duration = Duration::from_secs(1);
/// If the highest peak is more than this many capacities, the panels are shown once more from nearby.
const DWARFED: f64 = 5.0;
/// How many capacities high the second look is.
const NEARBY: f64 = 2.0;
/// A capacity beyond this many peaks would flatten everything else, and is only named.
const FAR: f64 = 2.0;
/// What is lower than this part of a panel is hardly to be seen.
const FLAT: f64 = 0.03;
/// The most rows of the table.
const ROWS: usize = 20;

/// The section.
pub(super) fn section(comparison: &Comparison) -> String {
    let panels = Panels::of(comparison);
    let mut pictures = KEY.to_owned();
    let has_nearby = panels.highest > DWARFED * panels.capacity;
    let about = |story: &Story| match panels.peaks(story) {
        peaks if has_nearby && panels.is_flat(story) => format!("{peaks}. Hardly to be seen at this scale: see below"),
        peaks => peaks,
    };
    pictures += &panels.row("calls", panels.top(), &|story| escape(&about(story)).into_owned());
    if has_nearby {
        let top = NEARBY * panels.capacity;
        pictures += &format!(
            "<h3>The same from nearby, up to {}</h3>\n<p class=\"note\">What is higher is cut off at the top; ▲ says \
             how high it goes.</p>\n",
            rate(top as u64)
        );
        pictures += &panels.row("nearby", top, &|_| String::new());
    }
    let caption = format!(
        "Calls per second, first attempts and retries on top of each other, counted over {} and on the same axes for all. \
         The line is what succeeded.{}{}{}",
        duration(panels.step),
        if panels.step > NARROWEST { " A shorter peak is lower here than it is in the table." } else { "" },
        if panels.draws_capacity(panels.top()) { "" } else { " The capacity is higher than these pictures." },
        panels.beyond(),
    );
    format!(
        "<section id=\"calls\">\n<h2>Calls per second</h2>\n{}</section>\n",
        figure(&pictures, &caption, panels.table())
    )
}

/// What the areas and lines are: once for all panels.
const KEY: &str = "<ul class=\"key-line\">\
<li><svg viewBox=\"0 0 22 12\" aria-hidden=\"true\"><rect class=\"first\" width=\"22\" height=\"12\"/></svg>first attempts</li>\
<li><svg viewBox=\"0 0 22 12\" aria-hidden=\"true\"><rect class=\"retry\" width=\"22\" height=\"12\"/>\
<rect class=\"hatch\" width=\"22\" height=\"12\"/></svg>retries</li>\
<li><svg viewBox=\"0 0 22 12\" aria-hidden=\"true\"><line class=\"success\" x1=\"0\" y1=\"6\" x2=\"22\" y2=\"6\"/></svg>\
succeeded</li>\
<li><svg viewBox=\"0 0 22 12\" aria-hidden=\"true\"><line class=\"capacity\" x1=\"0\" y1=\"6\" x2=\"22\" y2=\"6\"/></svg>\
capacity</li></ul>\n";

/// All panels, in one measure.
struct Panels<'a> {
    comparison: &'a Comparison,
    /// How wide a step is.
    step: Duration,
    /// One for each story that is drawn.
    rates: Vec<Rates>,
    highest: f64,
    capacity: f64,
}

/// One contender's steps, per second.
struct Rates {
    firsts: Vec<f64>,
    calls: Vec<f64>,
    successes: Vec<f64>,
}

impl<'a> Panels<'a> {
    fn of(comparison: &'a Comparison) -> Self {
        let bucket = comparison.bucket.max(Duration::from_millis(1));
        let together = NARROWEST.as_millis().div_ceil(bucket.as_millis()).max(1);
        let together = usize::try_from(together).unwrap_or(1);
        let step = bucket.saturating_mul(u32::try_from(together).unwrap_or(1));
        let rates = |story: &Story| Rates::of(&story.buckets, together, step.as_secs_f64());
        let rates: Vec<_> = comparison.stories.iter().take(DRAWN).map(rates).collect();
        let all = rates.iter().flat_map(|rates| rates.calls.iter().chain(&rates.successes));
        let highest = all.copied().fold(0.0, f64::max);
        Panels { comparison, step, rates, highest, capacity: f64::from(comparison.world.capacity) }
    }

    /// How high the panels are, to begin with.
    fn top(&self) -> f64 {
        if self.capacity <= FAR * self.highest { self.highest.max(self.capacity) } else { self.highest }
    }

    /// Whether a story is so low that at the first scale there is nothing to be seen of it.
    fn is_flat(&self, story: &Story) -> bool {
        f64::from(story.totals.peak.calls) < FLAT * self.top()
    }

    fn draws_capacity(&self, top: f64) -> bool {
        self.capacity <= top
    }

    fn row(&self, id: &str, top: f64, about: &dyn Fn(&Story) -> String) -> String {
        let (columns, wide) = panels(self.rates.len());
        let mut row = format!("<div class=\"panels of-{columns}\">\n");
        for (number, (story, rates)) in self.comparison.stories.iter().zip(&self.rates).enumerate() {
            let id = format!("{id}-{}", letter(number).to_ascii_lowercase());
            let drawn = in_both_sizes(&id, wide, NARROW_PANEL, |id, size| self.panel(id, size, top, story, rates));
            let name = named(number, &story.contender.name);
            let about = match about(story) {
                about if about.is_empty() => about,
                about => format!("<p class=\"note\">{about}</p>"),
            };
            row += &format!("<div class=\"panel\"><p class=\"panel-name\">{name}</p>{about}{drawn}</div>\n");
        }
        row + "</div>\n"
    }

    fn panel(&self, id: &str, size: Size, top: f64, story: &Story, rates: &Rates) -> String {
        let mut picture = Picture::new(size);
        let plot = Plot::within(&picture, 6.0);
        let span = self.comparison.span();
        let values = ticks::counts(top, 6);
        let (x, y) = (plot.across(span.as_secs_f64()), plot.up(values.last().copied().unwrap_or(1.0)));
        plot.outages(&mut picture, &x, &self.comparison.world.outages);
        plot.left_axis(&mut picture, &y, "calls/s", &count_labels(&values));
        let width = self.step.as_secs_f64();
        let retries = steps::area(&rates.firsts, &rates.calls, width, &x, &y);
        picture.path("first", &steps::area(&vec![0.0; rates.firsts.len()], &rates.firsts, width, &x, &y));
        picture.path("retry", &retries);
        picture.path("hatch", &retries);
        let successes = steps::line(rates.successes.iter().copied(), width, &x, &y);
        picture.path("success halo", &successes);
        picture.path("success", &successes);
        if self.draws_capacity(y.most()) {
            self.draw_capacity(&mut picture, &plot, &y);
        }
        rates.mark_cut(&mut picture, &plot, width, &x, y.most());
        plot.bottom_axis(&mut picture, &x, &time_labels(&ticks::clock(span, plot.columns(70.0))));
        let title = format!("Calls per second with {}", story.contender.name);
        picture.finish(id, &title, &self.peaks(story))
    }

    fn draw_capacity(&self, picture: &mut Picture, plot: &Plot, y: &Scale) {
        let at = y.at(self.capacity);
        picture.line("capacity", (plot.left, at), (plot.right, at));
        let label = format!("capacity {}", rate(self.capacity as u64));
        // Below the line if there is no room above it.
        let baseline = if at - plot.top > 1.3 * SMALL { at - 4.0 } else { at + SMALL + 1.0 };
        if text::width(&label, SMALL) < plot.right - plot.left {
            picture.text("capacity-label", Anchor::End, (plot.right - 2.0, baseline), &label);
        }
    }

    /// The peaks in words.
    fn peaks(&self, story: &Story) -> String {
        let totals = &story.totals;
        let peak = format!("Peak {} at {}", rate(u64::from(totals.peak.calls)), duration(totals.peak.at));
        match totals.peak_after_outage {
            Some(after) if after.calls == 0 => format!("{peak}; none after recovery"),
            Some(after) => {
                let ratio = times(f64::from(after.calls) / self.capacity);
                format!("{peak}; after recovery {}, {ratio} the capacity", rate(u64::from(after.calls)))
            }
            None => format!("{peak}, {} the capacity", times(f64::from(totals.peak.calls) / self.capacity)),
        }
    }

    /// What happens after the right edge, in words.
    fn beyond(&self) -> String {
        let going_on = self.comparison.stories.iter().filter(|story| story.goes_on()).map(|story| {
            format!(
                " “{}” goes on after the right edge: {} of its calls are made then, and its last request ends at {}.",
                escape(&story.contender.name),
                count(u64::from(story.later.sends)),
                duration(story.totals.ended_at)
            )
        });
        going_on.collect()
    }

    fn table(&self) -> Table {
        let head = std::iter::once("From".to_owned()).chain(all_named(self.comparison).take(DRAWN)).collect();
        let mut table = Table::new("numbers", "Calls per second: all (of these, retries) and what succeeded", head);
        let count_steps = self.rates.first().map_or(0, |rates| rates.calls.len());
        let together = count_steps.div_ceil(ROWS).max(1);
        for from in (0..count_steps).step_by(together) {
            let at = self.step.saturating_mul(u32::try_from(from).unwrap_or(u32::MAX));
            let cells = self.rates.iter().map(|rates| rates.mean(from, together)).collect();
            table.row(duration(at), cells);
        }
        table
    }
}

impl Rates {
    fn of(buckets: &[Bucket], together: usize, seconds: f64) -> Self {
        let per_second = |count: fn(&Bucket) -> u32| -> Vec<f64> {
            let sum = |chunk: &[Bucket]| chunk.iter().map(|bucket| f64::from(count(bucket))).sum::<f64>();
            buckets.chunks(together).map(|chunk| sum(chunk) / seconds).collect()
        };
        Rates {
            firsts: per_second(|bucket| bucket.sends - bucket.retries.min(bucket.sends)),
            calls: per_second(|bucket| bucket.sends),
            successes: per_second(|bucket| bucket.successes),
        }
    }

    /// Says how high the calls are where they are cut off at the top; what is close together is said once.
    fn mark_cut(&self, picture: &mut Picture, plot: &Plot, width: f64, x: &Scale, top: f64) {
        const APART: f64 = 100.0;
        let mut groups: Vec<(f64, f64, f64)> = Vec::new();
        for (at, calls) in self.calls.iter().enumerate().filter(|(_, calls)| **calls > top * (1.0 + 1e-9)) {
            let (from, to) = (x.at(at as f64 * width), x.at((at + 1) as f64 * width));
            match groups.last_mut() {
                Some((_, end, most)) if from - *end < APART => (*end, *most) = (to, most.max(*calls)),
                _ => groups.push((from, to, *calls)),
            }
        }
        for (from, to, most) in groups {
            let label = format!("▲ {}/s", short(most));
            let half = text::width(&label, SMALL) / 2.0;
            let middle = f64::midpoint(from, to).min(plot.right - half).max(plot.left + half);
            picture.rectangle("plate", (middle - half - 3.0, plot.top + 1.0), (2.0 * half + 6.0, SMALL + 5.0));
            picture.text("cut", Anchor::Middle, (middle, plot.top + SMALL + 2.0), &label);
        }
    }

    /// The means of some steps, in words.
    fn mean(&self, from: usize, together: usize) -> String {
        let mean = |values: &[f64]| {
            let part = &values[from..values.len().min(from + together)];
            (part.iter().sum::<f64>() / part.len().max(1) as f64).round() as u64
        };
        let (calls, firsts) = (mean(&self.calls), mean(&self.firsts));
        let retries = calls.saturating_sub(firsts);
        format!("{} <small>({}) · {}</small>", count(calls), count(retries), count(mean(&self.successes)))
    }
}

/// The highest step of all panels, in calls per second.
#[cfg(test)]
pub(super) fn highest(comparison: &Comparison) -> f64 {
    Panels::of(comparison).highest
}
