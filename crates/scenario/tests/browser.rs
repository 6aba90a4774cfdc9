//! The report as a reader sees it, in a real browser.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use std::time::Duration;

use redrive_core::Date;
use redrive_core::backoff::Backoff;
use redrive_core::jitter::Jitter;
use redrive_core::policy::Policy;
use redrive_scenario::report::{occ_page, page};
use redrive_scenario::{Contender, Guards, Outage, OutageKind, World, fixed_concurrency, occ, run};
use redrive_testbed::{Browser, ColorScheme};
use serde_json::json;
use tempfile::TempDir;

const SECOND: Duration = Duration::from_secs(1);

/// Reports in files, as users open them.
struct Reports {
    directory: TempDir,
    names: Vec<String>,
}

impl Reports {
    fn new() -> Self {
        let mut reports = Reports { directory: tempfile::tempdir().unwrap(), names: Vec::new() };
        for (name, contenders) in [("one", 1), ("two", 2), ("four", 4), ("eight", 8)] {
            reports.write(name, &compared(400, contenders, 6));
        }
        // Figures of six digits and a unit.
        reports.write("large", &compared(100_000, 4, 1));
        let settings = occ::Settings { clients: vec![2, 10, 40], runs: 3, seed: 1 };
        reports.write("contention", &occ_page(&settings, &occ::run(&settings, |_, _| {}).unwrap(), "redrive simulate"));
        reports
    }

    fn write(&mut self, name: &str, page: &str) {
        std::fs::write(self.directory.path().join(format!("{name}.html")), page).unwrap();
        self.names.push(name.to_owned());
    }

    fn url(&self, name: &str) -> String {
        format!("file://{}/{name}.html", self.directory.path().display())
    }
}

/// So many contenders in an outage, the last of them with a limit.
fn compared(clients: u32, contenders: usize, max_attempts: u32) -> String {
    let outage = Outage { from: Duration::ZERO, to: 5 * SECOND, manner: OutageKind::Refuse };
    let world =
        World { clients, capacity: clients / 20, queue: clients / 20, outages: vec![outage], ..World::default() };
    let contender = |number: usize| {
        let backoff =
            if number.is_multiple_of(2) { Backoff::Fixed { delay: SECOND } } else { Policy::default().backoff };
        let jitter = [Jitter::None, Jitter::Full][usize::from(number + 1 == contenders)];
        let concurrency = (number + 1 == contenders).then(|| fixed_concurrency(clients / 40));
        let guards = Guards { concurrency, ..Guards::default() };
        let policy = Policy { backoff, jitter, max_attempts, ..Policy::default() };
        Contender { guards, ..Contender::new(format!("contender {number}"), policy) }
    };
    let comparison = run(world, (0..contenders).map(contender).collect(), 1, None, |_| {}).unwrap();
    page(&comparison, "redrive simulate --seed 1", Date::try_new(2026, 11, 16).unwrap())
}

#[test]
fn the_report_fits_from_320_to_1280_pixels() {
    let (reports, browser) = (Reports::new(), Browser::start());
    for name in &reports.names {
        browser.open(&reports.url(name));
        browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })");
        for width in [320, 400, 700, 900, 1024, 1280] {
            browser.resize(width, 800);
            assert_eq!(browser.beyond_the_edge(), (0, vec![]), "{name} at {width} pixels");
        }
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn the_report_shows_the_winner_and_every_column_at_400_pixels() {
    let (reports, browser) = (Reports::new(), Browser::start());
    // The figures of the verdict, and what reaches out of the page or is cut off within its own cell.
    let figures = "[...document.querySelectorAll('.verdict tbody tr:not(.group) td')]";
    let hidden = format!(
        "{figures}.filter((cell) => {{ const box = cell.getBoundingClientRect(); \
         return box.width < 20 || box.left < 0 || box.right > document.documentElement.clientWidth + 0.5 \
         || cell.scrollWidth > cell.clientWidth + 1; }}).map((cell) => cell.textContent)"
    );
    let scrolls = "[...document.querySelectorAll('.scroll')].filter((box) => box.querySelector('.verdict') && \
                   box.scrollWidth > box.clientWidth).length";
    // A number that goes on in the next line looks like a smaller one.
    let broken = format!(
        "{figures}.filter((cell) => {{ const number = [...cell.querySelectorAll('.best'), cell].flatMap((part) => \
         [...part.childNodes]).find((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()); \
         const range = document.createRange(); range.selectNodeContents(number); \
         return range.getBoundingClientRect().height > 1.5 * parseFloat(getComputedStyle(cell).lineHeight); }}) \
         .map((cell) => cell.textContent)"
    );
    for name in &reports.names {
        browser.open(&reports.url(name));
        for width in [320, 400, 700, 900, 1024, 1280] {
            browser.resize(width, 800);
            let shown = browser.evaluate(&format!("{figures}.length"));
            assert!(shown.as_u64().unwrap() > 10, "{name}: {shown}");
            assert_eq!(browser.evaluate(&hidden), json!([]), "{name} at {width} pixels");
            assert_eq!(browser.evaluate(scrolls), 0, "{name} at {width} pixels");
            assert_eq!(browser.evaluate(&broken), json!([]), "{name} at {width} pixels");
        }
        let best = browser.evaluate("document.querySelectorAll('.verdict .best').length").as_u64().unwrap();
        // Nothing succeeds in the large one, and one contender is better than none.
        assert_eq!(best > 0, !["one", "large"].contains(&name.as_str()), "{name}: {best} are marked");
    }
}

#[test]
fn every_text_of_the_report_can_be_read_in_light_and_in_dark() {
    let (reports, browser) = (Reports::new(), Browser::start());
    for scheme in ColorScheme::ALL {
        browser.prefer(scheme);
        for name in &reports.names {
            browser.open(&reports.url(name));
            for width in [400, 1280] {
                browser.resize(width, 800);
                assert_eq!(browser.low_contrast(), [""; 0], "{name}, {scheme:?}, {width} pixels");
            }
        }
    }
}
