//! The pages as a reader sees and uses them, in a real browser.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use redrive_testbed::browser::keys;
use redrive_testbed::{Browser, ColorScheme};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::world::World;

const PAGES: [&str; 3] = ["/docs", "/problems", "/problems/idempotency-key-reused"];

/// The links that the search shows: what each is called and where it leads.
const FOUND: &str = "[...document.querySelectorAll('#results a')].map((link) => \
                     [link.querySelector('.name').lastChild.textContent, link.hash])";
/// Whether the search shows matches.
const SHOWS: &str = "document.querySelectorAll('#results a').length > 0";

fn url(world: &World, path: &str) -> String {
    format!("http://{}{path}", world.address)
}

/// Types a query into the search and waits until its first match is the one expected.
fn find(browser: &Browser, query: &str, expected: [&str; 2]) {
    // Cleared, left, and entered again.
    browser.press(&[keys::ESCAPE, keys::ESCAPE, "/", query].concat());
    let first = json!(expected).to_string();
    browser.wait_until(&format!("JSON.stringify({FOUND}[0]) === {}", json!(first)));
}

/// What a proxy does with a request for the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reference {
    Passed,
    Refused,
    /// It waits until this is changed.
    Held,
}

/// A proxy that serves the API under `/redrive`, without that prefix for the server, and another application beside it.
struct PrefixProxy {
    address: SocketAddr,
    reference: watch::Sender<Reference>,
    /// The paths that were asked for.
    paths: Arc<Mutex<Vec<String>>>,
}

impl PrefixProxy {
    async fn of(world: &World) -> PrefixProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, server) = (listener.local_addr().unwrap(), world.address);
        let (reference, watched) = watch::channel(Reference::Passed);
        let paths: Arc<Mutex<Vec<String>>> = Arc::default();
        let asked = paths.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (asked, watched) = (asked.clone(), watched.clone());
                // A browser opens connections that it does not use, and closes them at any moment.
                tokio::spawn(async move { pass(client, server, &asked, watched).await.unwrap_or_default() });
            }
        });
        PrefixProxy { address, reference, paths }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/redrive{path}", self.address)
    }

    /// How often this path was asked for.
    fn count(&self, path: &str) -> usize {
        self.paths.lock().unwrap().iter().filter(|asked| *asked == path).count()
    }
}

/// One request and its answer.
async fn pass(
    client: TcpStream,
    server: SocketAddr,
    asked: &Mutex<Vec<String>>,
    mut reference: watch::Receiver<Reference>,
) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    let mut line = String::new();
    client.read_line(&mut line).await?;
    let Some(path) = line.split(' ').nth(1).map(str::to_owned) else { return Ok(()) };
    while line.trim_end() != "" {
        line.clear();
        client.read_line(&mut line).await?;
    }
    asked.lock().unwrap().push(path.clone());
    if path == "/redrive/docs" {
        reference.wait_for(|reference| *reference != Reference::Held).await.map_err(std::io::Error::other)?;
    }
    let is_refused = path == "/redrive/docs" && *reference.borrow() == Reference::Refused;
    let Some(stripped) = path.strip_prefix("/redrive").filter(|_| !is_refused) else {
        return client.write_all(b"HTTP/1.1 503 x\r\ncontent-length: 5\r\nconnection: close\r\n\r\nother").await;
    };
    let mut upstream = TcpStream::connect(server).await?;
    upstream
        .write_all(format!("GET {stripped} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n").as_bytes())
        .await?;
    tokio::io::copy(&mut upstream, &mut client).await.map(drop)
}

// The browser blocks the thread that asks it, so the server runs on others.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_scrolls_sideways_from_320_to_1600_pixels() {
    let world = World::start().await;
    let browser = Browser::start();
    for path in PAGES {
        browser.open(&url(&world, path));
        for width in [320, 400, 700, 900, 1280, 1600] {
            browser.resize(width, 800);
            assert_eq!(browser.beyond_the_edge(), (0, vec![]), "{path} at {width} pixels");
        }
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_text_of_an_operation_is_a_readable_column_at_every_width() {
    let world = World::start().await;
    let browser = Browser::start();
    browser.open(&url(&world, "/docs"));
    for (width, least) in [(320, 270), (400, 350), (900, 520), (1100, 600), (1200, 420), (1280, 450), (1600, 600)] {
        browser.resize(width, 800);
        let widths = browser.evaluate(
            "[...document.querySelectorAll('.operation dd:not(.type), .operation .text > p:not(.path)')] \
             .filter((text) => text.closest('.answers') === null).map((text) => text.offsetWidth)",
        );
        let narrowest = widths.as_array().unwrap().iter().filter_map(serde_json::Value::as_i64).min().unwrap();
        assert!(narrowest >= least, "{narrowest} pixels of {width}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_can_be_read_in_light_and_in_dark() {
    let world = World::start().await;
    let browser = Browser::start();
    for scheme in ColorScheme::ALL {
        browser.prefer(scheme);
        browser.resize(1280, 800);
        browser.open(&url(&world, "/docs"));
        find(&browser, "maxAttempts", ["maxAttempts", "#putPolicy.body.maxAttempts"]);
        assert_eq!(browser.low_contrast(), [""; 0], "{scheme:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_search_finds_an_operation_a_field_a_document_and_a_problem() {
    let world = World::start().await;
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&url(&world, "/docs"));
    for (query, expected) in [
        ("replay", ["Replay a dead letter", "#replayTask"]),
        ("retry-now", ["Bring a waiting task forward", "#retryNow"]),
        ("/retry-tasks/batch", ["Submit many tasks", "#submitBatch"]),
        ("task attempts", ["Show a task's attempts", "#listAttempts"]),
        ("idempotency key", ["Idempotency-Key", "#submitTask.Idempotency-Key"]),
        ("maxattempts", ["maxAttempts", "#putPolicy.body.maxAttempts"]),
        ("Submission", ["Submission", "#doc-submission"]),
        ("unknown-host", ["Unknown host name", "#problem-unknown-host"]),
        ("maxAttemtps", ["maxAttempts", "#putPolicy.body.maxAttempts"]),
    ] {
        find(&browser, query, expected);
    }
    let message = browser.evaluate("document.querySelector('.message').textContent");
    assert_eq!(message, "Nothing matches “maxAttemtps”. Did you mean:");

    browser.press(&[keys::ESCAPE, "xyzzy"].concat());
    browser
        .wait_until("document.querySelector('[role=status]').textContent.startsWith('Nothing matches “xyzzy”. Try')");
    assert_eq!(browser.evaluate(FOUND), json!([]));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_search_is_used_by_keyboard_and_tells_a_screen_reader() {
    let world = World::start().await;
    let browser = Browser::start();
    for (width, bar) in [(1280, 0), (400, 56)] {
        browser.resize(width, 800);
        browser.open(&url(&world, "/docs"));
        let input = |property: &str| browser.evaluate(&format!("document.getElementById('search').{property}"));
        assert_eq!(input("labels[0].textContent"), "Search operations, fields, documents and problems");

        browser.press("/policy");
        browser.wait_until(SHOWS);
        assert_eq!(input("value"), "policy", "the shortcut itself is not typed");
        let said = browser.evaluate("document.querySelector('[role=status]').textContent");
        assert!(said.as_str().unwrap().ends_with(" matches"), "{said}");
        let chosen = "document.querySelector('#results [aria-selected=true]')";
        let is_told = format!("{chosen}.id === document.activeElement.getAttribute('aria-activedescendant')");
        for (key, expected) in [("", 0), (keys::DOWN, 1), (keys::DOWN, 2), (keys::UP, 1)] {
            browser.press(key);
            assert_eq!(browser.evaluate(&format!("{chosen}.id")), format!("result-{expected}"));
            assert_eq!(browser.evaluate(&is_told), true);
        }
        browser.press(&[keys::UP, keys::UP].concat());
        assert_eq!(
            browser.evaluate(&format!("{chosen} === [...document.querySelectorAll('#results a')].pop()")),
            true,
            "it goes round"
        );

        let target = browser.evaluate(&format!("{chosen}.hash"));
        browser.press(keys::ENTER);
        assert_eq!(browser.evaluate("location.hash"), target);
        assert_eq!((input("value"), input("getAttribute('aria-expanded')")), (json!(""), json!("false")));
        assert_eq!(browser.evaluate("'#' + document.activeElement.id"), target, "the focus goes there");
        let top = browser.evaluate("document.activeElement.getBoundingClientRect().top").as_f64().unwrap();
        assert!(top >= f64::from(bar) && top < 400.0, "{target} is at {top}");

        browser.press("/abc");
        browser.press(keys::ESCAPE);
        assert_eq!((input("value"), browser.evaluate("document.activeElement.id")), (json!(""), json!("search")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_a_problem_searches_the_reference() {
    let world = World::start().await;
    let browser = Browser::start();
    browser.resize(400, 800);
    browser.open(&url(&world, PAGES[2]));
    find(&browser, "targetUrl", ["targetUrl", "#submitTask.body.targetUrl"]);
    browser.press(keys::ENTER);
    browser.wait_until("location.pathname + location.hash === '/docs#submitTask.body.targetUrl'");
    browser.wait_until("document.querySelector(':target dt').textContent.startsWith('targetUrl')");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_works_behind_a_proxy_that_serves_it_under_a_prefix() {
    let world = World::start().await;
    let (browser, proxy) = (Browser::start(), PrefixProxy::of(&world).await);
    browser.resize(1280, 800);
    for path in PAGES {
        browser.open(&proxy.url(path));
        let before = proxy.count("/redrive/docs");
        find(&browser, "targetUrl", ["targetUrl", "#submitTask.body.targetUrl"]);
        let asked = proxy.count("/redrive/docs") - before;
        assert_eq!(asked, usize::from(path != "/docs"), "the reference is its own index: {path}");
        browser.press(keys::ENTER);
        browser.wait_until("location.pathname + location.hash === '/redrive/docs#submitTask.body.targetUrl'");
    }
    for path in PAGES {
        browser.open(&proxy.url(path));
        let links = browser.evaluate(
            "[...new Set([...document.links].filter((link) => !link.getAttribute('href').startsWith('#')) \
             .map((link) => link.pathname))]",
        );
        let links: Vec<_> = links.as_array().unwrap().iter().filter_map(serde_json::Value::as_str).collect();
        assert!(links.contains(&"/redrive/docs") && links.contains(&"/redrive/openapi.json"), "{path}: {links:?}");
        for link in links {
            let stripped = link.strip_prefix("/redrive").unwrap_or_else(|| panic!("{path} links to {link}"));
            assert_eq!(world.get(stripped).await.status, 200, "{path} links to {link}");
        }
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_a_problem_asks_once_for_the_reference_and_again_after_a_failure() {
    let world = World::start().await;
    let (browser, proxy) = (Browser::start(), PrefixProxy::of(&world).await);
    browser.open(&proxy.url(PAGES[2]));
    proxy.reference.send_replace(Reference::Held);
    browser.press("/targetUrl");
    proxy.reference.send_replace(Reference::Refused);
    browser
        .wait_until("document.querySelector('.message').textContent.startsWith('The reference could not be loaded')");
    assert_eq!(proxy.count("/redrive/docs"), 1, "nine letters wait for one answer");

    proxy.reference.send_replace(Reference::Passed);
    find(&browser, "targetUrl", ["targetUrl", "#submitTask.body.targetUrl"]);
    assert_eq!(proxy.count("/redrive/docs"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_telephone_has_a_low_bar_and_a_menu_that_opens_with_and_without_scripts() {
    let world = World::start().await;
    let browser = Browser::start();
    browser.resize(400, 800);
    let is_open = "document.getElementById('menu').matches(':popover-open')";
    for with_scripts in [true, false] {
        if !with_scripts {
            browser.forbid_scripts();
        }
        browser.open(&url(&world, "/docs"));
        let height = browser.evaluate("document.querySelector('.bar').offsetHeight").as_i64().unwrap();
        let main = browser.evaluate("document.querySelector('main').getBoundingClientRect().top").as_i64().unwrap();
        assert!(height <= 60 && main <= 60, "the bar has {height} pixels, and the text begins at {main}");
        assert_eq!(browser.evaluate("document.getElementById('search').offsetWidth > 0"), with_scripts);

        let menu = "document.getElementById('menu').getBoundingClientRect()";
        assert_eq!(browser.evaluate(&format!("{menu}.height")), 0);
        browser.click(".menu-button");
        browser.wait_until(is_open);
        let fits = format!("{menu}.left >= 0 && {menu}.right <= 400 && {menu}.bottom < 700 && {menu}.height > 400");
        assert_eq!(browser.evaluate(&fits), true);
        assert_eq!(browser.beyond_the_edge(), (0, vec![]));

        browser.click("#menu a[href='#getTask']");
        browser.wait_until("location.hash === '#getTask'");
        assert_eq!(browser.evaluate(is_open), !with_scripts, "a script closes it behind a link");
        browser.press(keys::ESCAPE);
        browser.wait_until(&format!("!{is_open}"));
        let top = browser.evaluate("document.getElementById('getTask').getBoundingClientRect().top").as_f64().unwrap();
        assert!((56.0..120.0).contains(&top), "the operation is at {top}, below the bar");
    }
}
