//! What is true of every page, whatever the story.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_core::Date;
use redrive_core::backoff::Backoff;
use redrive_core::guards::{breaker, budget};
use redrive_core::jitter::Jitter;
use redrive_core::policy::{Context, Policy, Spec};
use roxmltree::{Document, Node, ParsingOptions};

use super::picture::{NORMAL, SMALL};
use super::text::width;
use super::{occ_page, page};
use crate::{Comparison, Contender, Guards, Latencies, Outage, OutageKind, World, fixed_concurrency, occ, run};

const SECOND: Duration = Duration::from_secs(1);
const NASTY: &str = "<script>alert('x')</script> & \"co\" \u{0}\u{1b}[1m";

fn today() -> Date {
    Date::try_new(2026, 11, 16).unwrap()
}

fn outage(from: u32, to: u32, manner: OutageKind) -> Outage {
    Outage { from: from * SECOND, to: to * SECOND, manner }
}

fn world(outages: &[Outage]) -> World {
    World { clients: 400, over: 20 * SECOND, capacity: 30, queue: 20, outages: outages.to_vec(), ..World::default() }
}

fn contenders(count: usize) -> Vec<Contender> {
    let contender = |number: usize| {
        let jitter = [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Decorrelated][number % 4];
        let backoff = match number % 3 {
            0 => Backoff::Fixed { delay: SECOND },
            _ => Policy::default().backoff,
        };
        let policy = Policy { jitter, backoff, max_attempts: 3 + 4 * number as u32, ..Policy::default() };
        let guards = Guards {
            budget: (number % 3 == 2).then(budget::Settings::default),
            breaker: (number % 4 == 1).then(breaker::Settings::default),
            concurrency: (number % 5 == 4).then(|| fixed_concurrency(5)),
        };
        Contender { guards, ..Contender::new(format!("contender number {number}, with a long name"), policy) }
    };
    (0..count).map(contender).collect()
}

fn play(world: World, contenders: Vec<Contender>) -> Comparison {
    run(world, contenders, 3, None, |_| {}).unwrap()
}

/// Stories of all kinds, each with its name.
fn comparisons() -> Vec<(&'static str, Comparison)> {
    let down = outage(5, 12, OutageKind::Refuse);
    let calm = World { clients: 5, over: Duration::ZERO, capacity: 1_000, ..world(&[]) };
    let instant = World { latency: Latencies::Constant(Duration::ZERO), ..calm.clone() };
    let hopeless = World { over: 2 * SECOND, ..world(&[outage(0, 600, OutageKind::Fail)]) };
    let many: Vec<_> =
        (0..16).map(|number| outage(3 * number, 3 * number + 2, OutageKind::ALL[number as usize % 3])).collect();
    let day = 24 * 60 * 60;
    let long = World { over: day * 6 * SECOND, ..world(&[outage(day, 3 * day, OutageKind::Hang)]) };
    let nasty = Contender { name: NASTY.into(), ..contenders(1).remove(0) };
    vec![
        ("one outage", play(world(&[down]), contenders(3))),
        ("no outage", play(world(&[]), contenders(2))),
        ("one contender", play(world(&[down]), contenders(1))),
        ("eight contenders", play(world(&[down]), contenders(8))),
        ("one bucket", play(calm, contenders(2))),
        ("no time at all", play(instant, contenders(2))),
        ("no success at all", play(hopeless, contenders(1))),
        ("many outages", play(world(&many), contenders(4))),
        ("a long run", play(long, contenders(2))),
        ("a herd", play(World { clients: 5_000, over: Duration::ZERO, ..world(&[down]) }, contenders(5))),
        ("a nasty name", play(world(&[down]), vec![nasty])),
    ]
}

fn pages() -> Vec<(String, String)> {
    let compared =
        comparisons().into_iter().map(|(name, comparison)| (name.to_owned(), page(&comparison, NASTY, today())));
    let contended = [vec![1], vec![7], vec![2, 5, 10, 20], (1..=40).collect()].into_iter().map(|clients| {
        let settings = occ::Settings { clients, runs: 3, seed: 1 };
        let points = occ::run(&settings, |_, _| {}).unwrap();
        (format!("contention of {:?}", settings.clients), occ_page(&settings, &points, NASTY))
    });
    compared.chain(contended).collect()
}

fn parse(text: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).unwrap()
}

fn pictures<'a>(document: &'a Document<'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    document.descendants().filter(|node| node.has_tag_name("svg") && node.attribute("id").is_some())
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap_or("0").parse().unwrap()
}

fn size(picture: Node<'_, '_>) -> (f64, f64) {
    let numbers: Vec<f64> = picture.attribute("viewBox").unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
    (numbers[2], numbers[3])
}

/// Left, top, right and bottom of a text, and what it says.
fn extent(text: Node<'_, '_>) -> ([f64; 4], String) {
    let says: String = text.children().filter(|child| child.is_text()).filter_map(|child| child.text()).collect();
    let size = match text.attribute("class").unwrap() {
        "name" | "remark" => NORMAL,
        "letter" => 11.0,
        _ => SMALL,
    };
    let (x, y, width) = (number(text, "x"), number(text, "y"), width(&says, size));
    let left = match text.attribute("text-anchor").unwrap() {
        "start" => x,
        "middle" => x - width / 2.0,
        _ => x - width,
    };
    ([left, y - 0.75 * size, left + width, y + 0.2 * size], says)
}

#[test]
fn every_page_is_well_formed_and_loads_nothing() {
    for (name, text) in pages() {
        let document = parse(&text);
        for forbidden in ["script", "img", "link", "iframe", "object", "foreignObject"] {
            assert!(!document.descendants().any(|node| node.has_tag_name(forbidden)), "{name}: {forbidden}");
        }
        let own = text.replace("xmlns=\"http://www.w3.org/1999/xhtml\"", "");
        for outside in ["http:", "https:", "//", "@import", "url(h", "url(\""] {
            assert!(!own.contains(outside), "{name}: {outside}");
        }
    }
}

#[test]
fn names_and_commands_are_escaped() {
    for (name, text) in pages() {
        assert!(!text.contains("<script"), "{name}");
        assert!(!text.contains(['\u{0}', '\u{1b}']), "{name}");
        assert!(text.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"), "{name}: the command");
    }
}

#[test]
fn every_picture_says_what_it_shows() {
    for (name, text) in pages() {
        let document = parse(&text);
        let mut ids = BTreeSet::new();
        let all = document.descendants().filter_map(|node| node.attribute("id"));
        all.for_each(|id| assert!(ids.insert(id), "{name}: {id} twice"));
        assert!(pictures(&document).count() > 0, "{name}");
        for picture in pictures(&document) {
            assert_eq!(picture.attribute("role"), Some("img"), "{name}");
            for id in picture.attribute("aria-labelledby").unwrap().split(' ') {
                let said =
                    picture.children().find(|child| child.attribute("id") == Some(id)).and_then(|said| said.text());
                assert!(said.is_some_and(|said| said.len() > 5), "{name}: {id}");
            }
        }
        for figure in document.descendants().filter(|node| node.has_tag_name("figure")) {
            let rows = figure.descendants().filter(|node| node.has_tag_name("tr")).count();
            assert!(rows > 1, "{name}: the numbers are there as a table");
        }
    }
}

#[test]
fn everything_that_is_drawn_has_a_place_in_its_picture() {
    for (name, text) in pages() {
        let document = parse(&text);
        for picture in pictures(&document) {
            let (wide, high) = size(picture);
            let inside = |x: f64, y: f64| (0.0..=wide).contains(&x) && (0.0..=high).contains(&y);
            for node in picture.descendants().filter(Node::is_element) {
                for (x, y) in [("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")] {
                    let (x, y) = (number(node, x), number(node, y));
                    assert!(inside(x, y), "{name}: {node:?}");
                }
                let path = node.attribute("d").unwrap_or("");
                for place in path.split(|c: char| c.is_ascii_alphabetic() || c == ' ').filter(|place| !place.is_empty())
                {
                    let place: f64 = place.parse().unwrap();
                    assert!((0.0..=wide).contains(&place), "{name}: {path}");
                }
            }
        }
    }
}

#[test]
fn no_label_leaves_its_picture_or_touches_another() {
    for (name, text) in pages() {
        let document = parse(&text);
        for picture in pictures(&document) {
            let (wide, high) = size(picture);
            let texts = picture.descendants().filter(|node| node.has_tag_name("text"));
            let labels: Vec<_> = texts.map(extent).collect();
            for (at, ([left, top, right, bottom], says)) in labels.iter().enumerate() {
                let is_inside = *left >= -0.1 && *top >= -0.1 && *right <= wide + 0.1 && *bottom <= high + 0.1;
                assert!(is_inside, "{name}: {says} from {left} to {right} of {wide}");
                for (other, also) in &labels[at + 1..] {
                    let apart = *left >= other[2] || *right <= other[0] || *top >= other[3] || *bottom <= other[1];
                    assert!(apart, "{name}: {says} and {also} in {:?}", picture.attribute("id"));
                }
            }
        }
    }
}

#[test]
fn all_panels_have_the_same_axes() {
    let (_, comparison) = comparisons().remove(3);
    let text = page(&comparison, "", today());
    let document = parse(&text);
    let ticks = |picture: Node<'_, '_>| {
        let ticks = picture.descendants().filter(|node| node.attribute("class") == Some("tick"));
        ticks.map(|tick| (tick.text().map(str::to_owned), tick.attribute("x").map(str::to_owned))).collect::<Vec<_>>()
    };
    let panels: Vec<_> = pictures(&document)
        .filter(|picture| picture.attribute("id").unwrap().starts_with("calls-"))
        .map(ticks)
        .collect();
    assert_eq!(panels.len(), 8);
    assert!(panels.iter().all(|panel| *panel == panels[0]), "{panels:?}");
}

#[test]
fn more_contenders_than_can_be_drawn_are_in_the_table_and_the_page_says_so() {
    let mut comparison = play(world(&[outage(5, 12, OutageKind::Refuse)]), contenders(8));
    let mut ninth = comparison.stories[0].clone();
    ninth.contender.name = "the ninth".into();
    comparison.stories.push(ninth);
    let text = page(&comparison, "", today());
    let document = parse(&text);
    let panels = pictures(&document).filter(|picture| picture.attribute("id").unwrap().starts_with("calls-"));
    assert_eq!(panels.count(), 8);
    let verdict = document.descendants().find(|node| node.attribute("id") == Some("verdict")).unwrap();
    let says = |node: Node<'_, '_>, what: &str| {
        node.descendants().any(|node| node.text().is_some_and(|text| text.contains(what)))
    };
    assert!(says(verdict, "the ninth"));
    assert!(says(document.root(), "The pictures show the first 8 contenders; 1 more are in the table only."));
}

#[test]
fn a_long_name_is_shortened_and_whole_in_its_title() {
    let long = "exponential with equal jitter as the payments team has had it for years";
    let mut contenders = contenders(2);
    contenders[0].name = long.into();
    let text = page(&play(world(&[]), contenders), "", today());
    let document = parse(&text);
    for id in ["waiting-chart", "completion-chart"] {
        let picture = pictures(&document).find(|picture| picture.attribute("id") == Some(id)).unwrap();
        let name = picture.descendants().find(|node| node.attribute("class") == Some("name")).unwrap();
        assert_eq!(name.first_element_child().and_then(|title| title.text()), Some(long));
        assert!(extent(name).1.contains('…'), "{:?}", extent(name).1);
    }
}

#[test]
fn what_a_policy_breaks_is_on_the_page_and_what_holds_it_back_too() {
    let guards = Guards {
        budget: Some(budget::Settings::default()),
        breaker: Some(breaker::Settings::default()),
        concurrency: Some(fixed_concurrency(20)),
    };
    let bad = Policy { backoff: Backoff::Fixed { delay: SECOND }, jitter: Jitter::None, ..Policy::default() };
    let two = vec![Contender::new("bad", bad), Contender { guards, ..Contender::new("good", Policy::default()) }];
    let text = page(&play(world(&[]), two), "", today());
    for expected in [
        "<b>✗ R-1</b> the wait does not grow: 1s before every retry, jitter aside <small>(blocks merge)</small>",
        "<b>✗ R-1</b> the waits have no jitter",
        "✓ Breaks no rule that a policy can break.",
        "None: every attempt is sent as soon as it is due.",
        "<b>Retry budget</b>: 10 retries and 20\u{a0}% of the first attempts in 30s",
        "a retry that succeeds while the dependency is healthy counts like a first attempt",
        "opens on 10 failures in a row, on 50\u{a0}% of at least 20 calls in 30s, if 100\u{a0}% of at least 20 calls in 30s \
         take 1m or longer, or if retries wait 10s for the budget while calls fail; for 15s, doubling up to 1m, ±20\u{a0}%; then \
         3 probes; when it closes, the attempts at once grow from 3",
        "<b>Concurrency</b>: at most 20 attempts at once",
        "Always 1s between attempts, no jitter.",
        "Exponential backoff from 1s, ×2 up to 30s, full jitter.",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
}

#[test]
fn the_page_begins_with_what_was_simulated() {
    let outages = [outage(5, 12, OutageKind::Refuse), outage(15, 16, OutageKind::Hang)];
    let world = World { retry_after: Some(3 * SECOND), ..world(&outages) };
    let text = page(&play(world, contenders(2)), "redrive simulate --seed 3", today());
    for expected in [
        "<h1>What two retry policies do in two outages, 8s in all</h1>",
        "400 clients make one request each, spread at random over 20s, of one dependency that serves 30 calls per second \
         and takes 50ms for half of them and up to 400ms for 99\u{a0}%. Up to 20 more may wait in its queue, any beyond \
         that get a 503 with a Retry-After of 3s. It is down from 5s to 12s (connections are refused), from 15s to 16s \
         (calls hang until they time out).",
        "Seed 3.",
        "<span>redrive</span> <span>simulate</span> <span>--seed 3</span>",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
    let calm = page(&play(self::world(&[]), contenders(1)), "", today());
    assert!(calm.contains("<h1>What one retry policy does to a dependency under load</h1>"));
    assert!(calm.contains("It is never down."));
    assert!(!calm.contains("Peak after recovery"), "there is nothing to recover from");
}

#[test]
fn a_verdict_remains_a_table_for_screen_readers_where_its_style_lays_it_out_as_lines() {
    for (name, text) in pages() {
        let document = parse(&text);
        let verdict = document.descendants().find(|node| node.attribute("id") == Some("verdict")).unwrap();
        let table = verdict.descendants().find(|node| node.has_tag_name("table")).unwrap();
        for part in table.descendants().filter(Node::is_element) {
            let expected = match (part.tag_name().name(), part.attribute("scope")) {
                ("table", _) => "table",
                ("thead" | "tbody", _) => "rowgroup",
                ("tr", _) => "row",
                ("th", Some("col")) => "columnheader",
                ("th", _) => "rowheader",
                ("td", _) => "cell",
                _ => continue,
            };
            assert_eq!(part.attribute("role"), Some(expected), "{name}");
        }
    }
}

#[test]
fn where_nothing_succeeds_there_is_no_distribution_to_draw() {
    let hopeless = World { over: 2 * SECOND, ..world(&[outage(0, 600, OutageKind::Fail)]) };
    let text = page(&play(hopeless, contenders(1)), "", today());
    assert!(text.contains("No request of any contender succeeds"));
    assert!(!text.contains("svg id=\"completion-chart\""));
}

#[test]
fn a_curve_ends_at_the_part_that_succeeded() {
    let comparison = play(world(&[outage(5, 12, OutageKind::Refuse)]), contenders(1));
    let totals = &comparison.stories[0].totals;
    assert!(totals.succeeded < totals.requests, "some must fail for this to be seen");
    let text = page(&comparison, "", today());
    let document = parse(&text);
    let picture = pictures(&document).find(|picture| picture.attribute("id") == Some("completion-chart")).unwrap();
    let end = picture.descendants().find(|node| node.attribute("class") == Some("end s0")).unwrap();
    let line = |label: &str| {
        let tick = picture.descendants().find(|node| node.text() == Some(label)).unwrap();
        number(tick, "y") - 0.35 * SMALL
    };
    let part = (line("0 %") - number(end, "cy")) / (line("0 %") - line("100 %"));
    let expected = totals.succeeded as f64 / totals.requests as f64;
    assert!((part - expected).abs() < 0.002, "{part} for {expected}");
}

#[test]
fn the_highest_step_is_the_peak_of_the_table() {
    let comparison = play(world(&[outage(5, 12, OutageKind::Refuse)]), contenders(1));
    assert!(comparison.bucket < SECOND, "steps are put together");
    let peak = comparison.stories.iter().map(|story| story.totals.peak.calls).max().unwrap();
    assert_eq!(super::calls::highest(&comparison), f64::from(peak));
}

#[test]
fn who_gave_up_is_not_the_best_of_anything() {
    let breaker = Guards { breaker: Some(breaker::Settings::default()), ..Guards::default() };
    let sync = Spec { context: Some(Context::Sync), ..Spec::default() };
    let gives_up = Contender { guards: breaker, ..Contender::new("gives up", Policy::resolve(&sync).unwrap()) };
    let comparison = play(World::default(), vec![Contender::new("durable", Policy::default()), gives_up]);
    let [durable, gives_up] = [0, 1].map(|at| &comparison.stories[at].totals);
    assert!(gives_up.calls < durable.calls && gives_up.succeeded < durable.succeeded, "{gives_up:?}");
    assert_eq!(comparison.succeed_most(), [true, false]);
    let page = page(&comparison, "redrive simulate", today());
    let document = parse(&page);
    let verdict = document.descendants().find(|node| node.attribute("id") == Some("verdict")).unwrap();
    let best_of = |column: usize| {
        let cells = verdict.descendants().filter(|node| node.has_tag_name("tr"));
        let cells = cells.filter_map(|row| row.children().filter(|cell| cell.has_tag_name("td")).nth(column));
        cells.filter(|cell| cell.descendants().any(|node| node.attribute("class") == Some("best"))).count()
    };
    assert!(best_of(0) > 0);
    assert_eq!(best_of(1), 0);
}
