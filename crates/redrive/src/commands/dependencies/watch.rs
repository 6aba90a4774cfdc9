//! `redrive dependencies watch`: a live view of all dependencies, the ones in trouble first.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::colour;
use crate::client::{Backlog, Client, Dependency, Pages, Totals, is_passing};
use crate::commands::Connection;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, printable};

const EXAMPLES: &str = "\
Examples:
  redrive dependencies watch
  redrive dependencies watch --once     # one view, after two looks a second apart

Dependencies whose tasks are held back come first, then the ones with the most calls.
CALLS/S and FAILED/S are of the last second, of the node that you ask. DUE and WAITING are
pending tasks that are due, and that are due later; 1000+ is 1000 or more. TREND shows CALLS/S
over time. Ctrl-C ends the view.";

/// How often the server is asked.
const EVERY: Duration = Duration::from_secs(1);
/// How many rates the trend shows, and how many if there is little room.
const TREND: usize = 20;
const SHORT_TREND: usize = 10;
/// The most dependencies that are read, and the most that are shown.
const MOST_READ: usize = 5_000;
const MOST_SHOWN: usize = 40;
/// The lines around the table: the title, an empty one, and the last, where the cursor is.
const TITLE_LINES: usize = 3;
/// The most characters of a name and of a reason.
const NAME_CHARS: usize = 40;
const WHY_CHARS: usize = 70;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print one view and end
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut rates = Rates::default();
    let mut dependencies = read(&mut client).await?;
    rates.look(&dependencies, Instant::now());
    let screen = Screen::enter(output, args.once || args.connection.json)?;
    let mut trouble = String::new();
    loop {
        if !args.once {
            show(&args, &screen, &dependencies, &rates, &trouble)?;
        }
        tokio::select! {
            _ = interrupt.recv() => return Ok(Exit::Interrupted),
            () = tokio::time::sleep(EVERY) => {}
        }
        match read(&mut client).await {
            Ok(read) => {
                (dependencies, trouble) = (read, String::new());
                rates.look(&dependencies, Instant::now());
            }
            // The server may be restarting.
            Err(error) if !args.once && is_passing(&error) => trouble = format!("; {error:#}"),
            Err(error) => return Err(error),
        }
        if args.once {
            show(&args, &screen, &dependencies, &rates, &trouble)?;
            return Ok(Exit::Done);
        }
    }
}

fn show(args: &Args, screen: &Screen, dependencies: &[Listed], rates: &Rates, trouble: &str) -> anyhow::Result<()> {
    if args.connection.json {
        let items: Vec<&str> = dependencies.iter().map(|listed| listed.json.as_str()).collect();
        screen.output.line(format!("{{\"dependencies\":[{}]}}", items.join(",")))?;
        return Ok(());
    }
    let parsed: Vec<&Dependency> = dependencies.iter().map(|listed| &listed.dependency).collect();
    let noun = if parsed.len() == 1 { "dependency" } else { "dependencies" };
    let title = format!("{} {noun}{}", parsed.len(), printable(trouble));
    let height = screen.output.height.filter(|_| screen.is_live);
    Ok(screen.draw(&format!("{title}\n\n{}", fitting(&parsed, rates, Output { height, ..screen.output })))?)
}

/// The table with as many dependencies as the screen has lines for. Those in trouble come first, and must not scroll away.
fn fitting(dependencies: &[&Dependency], rates: &Rates, output: Output) -> String {
    let table = |most: usize| frame(dependencies, rates, most).render(output.coloured, output.width);
    let room = output.height.map(|height| height.saturating_sub(TITLE_LINES));
    let fits = |text: &String| room.is_none_or(|room| text.lines().count() <= room);
    (1..=MOST_SHOWN).rev().map(table).find(fits).unwrap_or_else(|| table(1))
}

/// A dependency as the server wrote it, and as it is shown.
struct Listed {
    json: String,
    dependency: Dependency,
}

async fn read(client: &mut Client) -> anyhow::Result<Vec<Listed>> {
    let mut pages = Pages::new("/dependencies".into(), Vec::new(), "dependencies", MOST_READ);
    let mut listed = Vec::new();
    while let Some(page) = pages.next(client).await? {
        for (item, dependency) in page.items.iter().zip(page.read()?) {
            listed.push(Listed { json: item.get().to_owned(), dependency });
        }
    }
    Ok(listed)
}

/// The table of one view, with at most so many dependencies.
fn frame(dependencies: &[&Dependency], rates: &Rates, most: usize) -> Table {
    let mut sorted: Vec<_> = dependencies.iter().map(|of| (*of, rates.latest(&of.dependency))).collect();
    sorted.sort_by(|(one, one_rate), (other, other_rate)| {
        let by_trouble = trouble(&one.state).cmp(&trouble(&other.state));
        let by_calls = other_rate.calls.total_cmp(&one_rate.calls);
        by_trouble.then(by_calls).then_with(|| one.dependency.cmp(&other.dependency))
    });
    let header = ["DEPENDENCY", "STATE", "CALLS/S", "FAILED/S", "DUE", "WAITING", "IN FLIGHT", "LIMIT", "TREND", "WHY"];
    let mut table = Table::new(&header).folding(1).leading();
    for (of, rate) in sorted.iter().take(most) {
        table.row([
            shortened(&of.dependency, NAME_CHARS).into(),
            Cell::coloured(&of.state, colour(&of.state)),
            format!("{:.1}", rate.calls).into(),
            format!("{:.1}", rate.failures).into(),
            of.backlog.as_ref().map_or_else(|| "-".into(), Backlog::due_text).into(),
            of.backlog.as_ref().map_or_else(|| "-".into(), Backlog::waiting_text).into(),
            of.concurrency.in_flight.to_string().into(),
            of.concurrency.limit.to_string().into(),
            Cell::from(rates.trend(&of.dependency, TREND)).or_short(rates.trend(&of.dependency, SHORT_TREND)),
            if of.state == "ok" { "-".into() } else { shortened(&of.why, WHY_CHARS).into() },
        ]);
    }
    if sorted.len() > most {
        table.row([format!("and {} more", sorted.len() - most).into()]);
    }
    table
}

/// The order of states: those that hold tasks back come first.
fn trouble(state: &str) -> usize {
    let order = ["paused", "open", "probing", "budget", "busy"];
    order.iter().position(|each| *each == state).unwrap_or(order.len())
}

fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Calls and failures per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Rate {
    calls: f64,
    failures: f64,
}

/// The rates of each dependency, from the differences of what the server counts.
#[derive(Debug, Default)]
struct Rates {
    of: BTreeMap<String, History>,
    looked_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct History {
    totals: Totals,
    rates: VecDeque<Rate>,
}

impl Rates {
    fn look(&mut self, listed: &[Listed], now: Instant) {
        let seconds = self.looked_at.map(|before| (now - before).as_secs_f64()).filter(|seconds| *seconds > 0.0);
        self.looked_at = Some(now);
        let mut before = std::mem::take(&mut self.of);
        for Listed { dependency, .. } in listed {
            let mut history = before.remove(&dependency.dependency);
            if let (Some(history), Some(seconds)) = (&mut history, seconds) {
                history.add(dependency.totals, seconds);
            }
            let history = history.unwrap_or_else(|| History { totals: dependency.totals, ..History::default() });
            self.of.insert(dependency.dependency.clone(), history);
        }
    }

    fn latest(&self, name: &str) -> Rate {
        self.of.get(name).and_then(|history| history.rates.back()).copied().unwrap_or_default()
    }

    /// The latest calls per second as bars, at most this many, relative to the largest.
    fn trend(&self, name: &str, most: usize) -> String {
        let Some(History { rates, .. }) = self.of.get(name) else { return String::new() };
        let latest = || rates.iter().skip(rates.len().saturating_sub(most));
        let largest = latest().map(|rate| rate.calls).fold(f64::MIN_POSITIVE, f64::max);
        let bar = |rate: &Rate| BARS[((rate.calls / largest * 7.0).round() as usize).min(7)];
        latest().map(bar).collect()
    }
}

impl History {
    fn add(&mut self, totals: Totals, seconds: f64) {
        // Less than before is a server that was restarted.
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let rate = Rate {
            calls: per_second(totals.attempts, self.totals.attempts),
            failures: per_second(totals.failures, self.totals.failures),
        };
        self.totals = totals;
        self.rates.push_back(rate);
        if self.rates.len() > TREND {
            self.rates.pop_front();
        }
    }
}

/// The terminal: a view is drawn over the one before. Elsewhere, views follow each other.
struct Screen {
    output: Output,
    is_live: bool,
}

impl Screen {
    fn enter(output: Output, is_plain: bool) -> std::io::Result<Self> {
        let screen = Screen { output, is_live: output.live && !is_plain };
        if screen.is_live {
            // The other screen, without a cursor: what was there before comes back at the end.
            output.text("\x1b[?1049h\x1b[?25l")?;
        }
        Ok(screen)
    }

    fn draw(&self, text: &str) -> std::io::Result<()> {
        match self.is_live {
            true => self.output.text(&format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))),
            false => self.output.text(&format!("{text}\n")),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_live {
            // If the terminal is gone, there is nothing to restore.
            self.output.text("\x1b[?25h\x1b[?1049l").ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, state: &str, attempts: u64, failures: u64) -> Listed {
        let totals = Totals { attempts, failures };
        let (dependency, state) = (name.to_owned(), state.to_owned());
        Listed { json: String::new(), dependency: Dependency { dependency, state, totals, ..Dependency::default() } }
    }

    #[test]
    fn rates_are_differences_and_a_restarted_server_has_none() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        for (second, attempts, failures) in [(0, 100, 5), (2, 120, 9), (3, 40, 0), (4, 45, 0)] {
            rates.look(&[listed("a", "ok", attempts, failures)], start + Duration::from_secs(second));
        }
        let calls: Vec<_> = rates.of["a"].rates.iter().map(|rate| (rate.calls, rate.failures)).collect();
        assert_eq!(calls, [(10.0, 2.0), (0.0, 0.0), (5.0, 0.0)]);
        assert_eq!(rates.trend("a", 20), "█▁▅");
        assert_eq!(rates.trend("a", 2), "▁█");
        assert_eq!((rates.trend("b", 20), rates.latest("b")), (String::new(), Rate::default()));
    }

    #[test]
    fn what_does_not_fit_the_screen_is_left_out_at_the_end() {
        let all: Vec<_> = (10..40).map(|n| listed(&format!("dependency-{n}"), "ok", 0, 0).dependency).collect();
        let paused = listed("dependency-99", "paused", 0, 0).dependency;
        let all: Vec<_> = all.iter().chain([&paused]).collect();
        for (width, height, lines, shown) in
            [(None, None, 32, 31), (None, Some(20), 17, 15), (Some(60), Some(20), 16, 6)]
        {
            let output = Output { coloured: false, live: true, width, height };
            let text = fitting(&all, &Rates::default(), output);
            assert_eq!(text.lines().count(), lines, "{width:?} {height:?}\n{text}");
            assert_eq!(text.matches("dependency-").count(), shown, "{text}");
            assert_eq!(text.find("dependency-99"), text.find("dependency-"), "what is in trouble is first: {text}");
            assert_eq!(text.contains(" more"), shown < 31, "{text}");
        }
    }

    #[test]
    fn trouble_comes_first_then_the_busiest() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let states = [("a", "ok"), ("b", "budget"), ("c", "open"), ("d", "ok"), ("e", "paused"), ("f", "probing")];
        for second in 0..2 {
            let attempts = |name| if name == "d" { second * 9 } else { 0 };
            let all: Vec<_> = states.iter().map(|(name, state)| listed(name, state, attempts(*name), 0)).collect();
            rates.look(&all, start + Duration::from_secs(second));
        }
        let all: Vec<_> = states.iter().map(|(name, state)| listed(name, state, 0, 0).dependency).collect();
        let text = frame(&all.iter().collect::<Vec<_>>(), &rates, MOST_SHOWN).render(false, None);
        let names: String = text.lines().skip(1).filter_map(|line| line.chars().next()).collect();
        assert_eq!(names, "ecfbda", "{text}");
    }
}
