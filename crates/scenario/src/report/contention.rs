//! The page of the contention model: calls and time by the number of clients, a line for each strategy.

use std::time::Duration;

use super::curves::{self, Curve, Marked};
use super::figure::{figure, whole_row};
use super::number::{count, duration, mean, times};
use super::page::document;
use super::picture::{Picture, Size};
use super::plot::{Plot, count_labels, time_labels};
use super::scale::Scale;
use super::table::{Table, named};
use super::text::words;
use super::{steps, ticks};
use crate::occ::{Measure, Point, Settings, Strategy};

/// One page, complete in itself, of what [`crate::occ::run`] gave for these settings. `command` is what repeats the
/// run.
pub fn occ_page(settings: &Settings, points: &[Point], command: &str) -> String {
    let lines = Lines::of(points);
    let body = [lead(settings, &lines, command), lines.verdict(), lines.calls(), lines.time(), notes()];
    document(TITLE, &body.concat())
}

const TITLE: &str = "What jitter does for clients that contend for one row";

/// The points by strategy, each in order of the number of clients.
struct Lines<'a> {
    lines: Vec<(Strategy, Vec<&'a Point>)>,
    most: u32,
}

impl<'a> Lines<'a> {
    fn of(points: &'a [Point]) -> Self {
        let line = |strategy: Strategy| {
            let mut line: Vec<_> = points.iter().filter(|point| point.strategy == strategy).collect();
            line.sort_by_key(|point| point.clients);
            line.dedup_by_key(|point| point.clients);
            (strategy, line)
        };
        let lines = Strategy::ALL.into_iter().map(line).filter(|(_, line)| !line.is_empty()).collect();
        Lines { lines, most: points.iter().map(|point| point.clients).max().unwrap_or(0) }
    }

    fn highest(&self, measure: fn(&Point) -> &Measure) -> f64 {
        self.lines.iter().flat_map(|(_, line)| line).map(|point| measure(point).mean).fold(0.0, f64::max)
    }

    /// The numbers at the most clients.
    fn verdict(&self) -> String {
        let last: Vec<_> = self.lines.iter().filter_map(|(strategy, line)| Some((*strategy, *line.last()?))).collect();
        let caption = format!("Means at {} clients", count(u64::from(self.most)));
        let head = ["Strategy", "Calls", "For each client", "Time until all are done"].map(str::to_owned).to_vec();
        let mut table = Table::new("verdict", &caption, head);
        let calls: Vec<_> = last.iter().map(|(_, point)| point.calls.mean).collect();
        let millis: Vec<_> = last.iter().map(|(_, point)| point.millis.mean).collect();
        for (number, (strategy, point)) in last.iter().enumerate() {
            let each = times(point.calls.mean / f64::from(point.clients)).replace('×', "");
            let spread = |text: String| format!(" <small>± {text}</small>");
            let cells = vec![
                marked(
                    format!("{}{}", mean(point.calls.mean), spread(mean(point.calls.deviation))),
                    is_single_least(&calls, number),
                ),
                each,
                marked(
                    format!(
                        "{}{}",
                        duration(millis_of(point.millis.mean)),
                        spread(duration(millis_of(point.millis.deviation)))
                    ),
                    is_single_least(&millis, number),
                ),
            ];
            table.row(named(number, name(*strategy)), cells);
        }
        format!(
            "<section id=\"verdict\">\n<h2>{caption}</h2>\n{}<p class=\"note\">± is the standard deviation of a single \
             run. “best” marks the single best of a column.</p>\n</section>\n",
            table.finish()
        )
    }

    fn calls(&self) -> String {
        let draw = |id: &str, size: Size| {
            let mut picture = Picture::new(size);
            let plot = Plot::within(&picture, self.room(size, |point| mean(point.calls.mean)));
            let values = ticks::counts(self.highest(|point| &point.calls), 5);
            let y = plot.up(values.last().copied().unwrap_or(1.0));
            plot.left_axis(&mut picture, &y, "calls", &count_labels(&values));
            self.draw(picture, &plot, &y, |point| point.calls.mean, mean).finish(
                id,
                "Calls by the number of clients",
                &self.in_words(|point| mean(point.calls.mean)),
            )
        };
        let caption = "The writes that are tried until every client has succeeded, by the number of clients: means.";
        let numbers = self.table("Calls", |point| mean(point.calls.mean));
        section("calls", "Calls", &figure(&whole_row("calls-chart", &self.names(), draw), caption, numbers))
    }

    fn time(&self) -> String {
        let all = || self.lines.iter().flat_map(|(_, line)| line).map(|point| millis_of(point.millis.mean));
        let (least, most) = (all().min().unwrap_or_default(), all().max().unwrap_or_default());
        let seconds = |point: &Point| point.millis.mean / 1e3;
        let draw = |id: &str, size: Size| {
            let mut picture = Picture::new(size);
            let plot = Plot::within(&picture, self.room(size, |point| duration(millis_of(point.millis.mean))));
            let values = ticks::round_times(least, most, 12);
            let ends = (values[0].as_secs_f64(), values[values.len() - 1].as_secs_f64());
            let y = Scale::log(ends.0, ends.1, plot.bottom, plot.top);
            plot.left_axis(&mut picture, &y, "time", &time_labels(&values));
            self.draw(picture, &plot, &y, seconds, |seconds| duration(millis_of(seconds * 1e3))).finish(
                id,
                "Time until all are done by the number of clients",
                &self.in_words(|point| duration(millis_of(point.millis.mean))),
            )
        };
        let caption = "The time until the last client is done, by the number of clients: means. The axis of time is \
                       logarithmic.";
        let numbers = self.table("Time until all are done", |point| duration(millis_of(point.millis.mean)));
        section("time", "Time", &figure(&whole_row("time-chart", &self.names(), draw), caption, numbers))
    }

    fn draw(
        &self,
        mut picture: Picture,
        plot: &Plot,
        y: &Scale,
        value: impl Fn(&Point) -> f64,
        shown: impl Fn(f64) -> String,
    ) -> Picture {
        let clients = ticks::counts(f64::from(self.most), plot.columns(60.0));
        let x = plot.across(f64::from(self.most.max(1)));
        let within: Vec<_> = clients.into_iter().filter(|tick| *tick <= f64::from(self.most)).collect();
        plot.bottom_axis(&mut picture, &x, &count_labels(&within));
        let curves = self.lines.iter().enumerate().map(|(number, (strategy, line))| {
            let points: Vec<_> = line.iter().map(|point| (f64::from(point.clients), value(point))).collect();
            let last = points.last().copied().unwrap_or_default();
            Curve {
                number,
                name: name(*strategy),
                remark: shown(last.1),
                path: steps::through(&points, &x, y),
                places: points.iter().map(|(clients, value)| (x.at(*clients), y.at(*value))).collect(),
            }
        });
        let curves: Vec<_> = curves.collect();
        curves::draw(&mut picture, plot, &curves, Marked::Everywhere);
        picture
    }

    fn names(&self) -> Vec<String> {
        self.lines.iter().enumerate().map(|(number, (strategy, _))| named(number, name(*strategy))).collect()
    }

    fn room(&self, size: Size, shown: impl Fn(&Point) -> String) -> f64 {
        let label = |(strategy, line): &(Strategy, Vec<&Point>)| Some((name(*strategy), shown(line.last()?)));
        curves::room(size.width, self.lines.iter().filter_map(label))
    }

    fn in_words(&self, shown: impl Fn(&Point) -> String) -> String {
        let each = self
            .lines
            .iter()
            .filter_map(|(strategy, line)| Some(format!("{}: {}", name(*strategy), shown(line.last()?))));
        format!("At {} clients: {}.", self.most, each.collect::<Vec<_>>().join("; "))
    }

    fn table(&self, caption: &str, shown: impl Fn(&Point) -> String) -> Table {
        let mut table =
            Table::new("numbers", caption, std::iter::once("Clients".to_owned()).chain(self.names()).collect());
        let mut clients: Vec<_> = self.lines.iter().flat_map(|(_, line)| line).map(|point| point.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        for clients in clients {
            let cell = |(_, line): &(Strategy, Vec<&Point>)| {
                line.iter().find(|point| point.clients == clients).map_or_else(|| "–".to_owned(), |point| shown(point))
            };
            table.row(count(u64::from(clients)), self.lines.iter().map(cell).collect());
        }
        table
    }
}

fn section(id: &str, title: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>\n")
}

fn marked(text: String, is_best: bool) -> String {
    if is_best { format!("<b class=\"best\"><span class=\"tag\">best</span> {text}</b>") } else { text }
}

fn is_single_least(values: &[f64], at: usize) -> bool {
    values.len() > 1 && values.iter().enumerate().all(|(other, value)| other == at || *value > values[at])
}

fn millis_of(millis: f64) -> Duration {
    Duration::try_from_secs_f64((millis / 1e3).max(0.0)).unwrap_or_default()
}

fn name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::None => "no backoff",
        Strategy::Exponential => "exponential",
        Strategy::Equal => "equal jitter",
        Strategy::Full => "full jitter",
        Strategy::Decorrelated => "decorrelated",
    }
}

fn lead(settings: &Settings, lines: &Lines<'_>, command: &str) -> String {
    let least = lines.lines.iter().flat_map(|(_, line)| line.first()).map(|point| point.clients).min().unwrap_or(0);
    let clients = match (least, lines.most) {
        (least, most) if least == most => format!("{} clients", count(u64::from(most))),
        (least, most) => format!("{} to {} clients", count(u64::from(least)), count(u64::from(most))),
    };
    format!(
        "<header>\n<p class=\"over\">redrive simulate · occ</p>\n<h1>{TITLE}</h1>\n<p class=\"lead\">{clients} begin at the \
         same moment. Each reads one versioned row, then writes it with the version that it read; a write whose version is \
         no longer the row’s fails, and its client waits and reads again. Each of the four messages of such a cycle takes \
         about 10ms. Means of {} runs with the first retry’s wait up to 10ms and none above 2s.</p>\n<div class=\"again\">\
         <p>Seed {}. The same seed gives the same numbers again, on any machine:</p><pre tabindex=\"0\"><code>{}</code></pre>\
         </div>\n</header>\n",
        count(u64::from(settings.runs)),
        settings.seed,
        words(command),
    )
}

fn notes() -> String {
    "<section id=\"notes\">\n<h2>How to read this</h2>\n<ul>\n\
     <li>Of all clients that read the same version one succeeds; the work of the others is wasted. The more of them come \
     back together, the more work is wasted.</li>\n\
     <li>Without backoff the work grows with the square of the number of clients. Exponential backoff without jitter makes \
     the clients wait, but together: they meet again and again. Jitter separates them.</li>\n\
     <li>Fewer calls and less time are different aims: full jitter makes the fewest calls or nearly so, decorrelated jitter \
     trades some for time, as long as the clients are not too many.</li>\n</ul>\n<h2>What the model leaves out</h2>\n<ul>\n\
     <li>One row, and a store that answers at once however many come: that is why no backoff looks quick here. No client gives up or pauses \
     between reading and writing, nothing gets lost, and no new clients come.</li>\n\
     <li>It is the model of “Exponential Backoff and Jitter” (AWS Architecture Blog, 2015). The waits are those of the very \
     code that the service runs.</li>\n</ul>\n</section>\n"
        .to_owned()
}
