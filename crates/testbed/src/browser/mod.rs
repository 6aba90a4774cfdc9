//! A real browser: Chromium without a window, driven through ChromeDriver.
//!
//! A page is loaded when `open` returns. Everything else is read and done with a few calls; scripts see the page as its
//! own scripts do.

mod call;

use std::io;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::home::{Farewell, Home, StorageMedium};
use crate::program;
use crate::server::{Plan, Server};

/// What Chromium is started with. It resolves no name and uses no proxy, so it reaches nothing but loopback addresses.
/// The sandbox needs privileges that root and containers do not have; the pages are the tests' own.
const ARGUMENTS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// The longest time until Chromium is ready, on a machine that is busy with other tests.
const START_LIMIT: Duration = Duration::from_secs(120);
/// The longest time until ChromeDriver answers any other command. It answers `open` when the page is loaded.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// A part of ChromeDriver's message when Chromium ends or crashes while it starts.
const NOT_CREATED: &str = "session not created";

/// The texts with less contrast than WCAG 2.2 asks for (1.4.3).
const LOW_CONTRAST: &str = include_str!("low_contrast.js");
/// The boxes that reach over the right edge of the page, except within a box that scrolls.
const BEYOND_THE_EDGE: &str = include_str!("beyond_the_edge.js");

/// Keys that are not characters, for [`Browser::press`].
pub mod keys {
    /// Enter.
    pub const ENTER: &str = "\u{e007}";
    /// Escape.
    pub const ESCAPE: &str = "\u{e00c}";
    /// The arrow up.
    pub const UP: &str = "\u{e013}";
    /// The arrow down.
    pub const DOWN: &str = "\u{e015}";
}

/// The colours that a page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorScheme {
    /// Dark text on a light page.
    Light,
    /// Light text on a dark page.
    Dark,
}

impl ColorScheme {
    /// Both.
    pub const ALL: [ColorScheme; 2] = [ColorScheme::Light, ColorScheme::Dark];
}

/// A browser with one page. Dropping it ends ChromeDriver and Chromium.
#[derive(Debug)]
pub struct Browser {
    server: Server,
    /// The path of the session that ChromeDriver has with Chromium.
    session: String,
    chromium: u64,
}

impl Browser {
    /// Starts a browser with an empty profile. On a busy machine Chromium sometimes does not start: that is tried once more.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start() -> Self {
        start_with(Browser::try_start).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_start() -> io::Result<Self> {
        let (driver, chromium) = (program::CHROMEDRIVER.path(), program::CHROMIUM.path());
        let home = Home::new(StorageMedium::Memory, None, Farewell::Kill);
        let (files, profile) = (home.path().to_owned(), home.path().join("profile"));
        let command = move |port: u16| {
            let mut command = Command::new(&driver);
            // Both programs make temporary files, which are removed with the directory.
            command.arg(format!("--port={port}")).env("TMPDIR", &files).env("HOME", &files);
            command
        };
        let plan = Plan {
            name: "ChromeDriver",
            command: Box::new(command),
            ready: "was started successfully",
            farewell: Signal::KILL,
        };
        let server = Server::start(plan, home);
        let arguments = ARGUMENTS.iter().map(|each| (*each).to_owned());
        let arguments: Vec<_> = arguments.chain([format!("--user-data-dir={}", profile.display())]).collect();
        let options = json!({ "binary": chromium, "args": arguments });
        let wanted =
            json!({ "alwaysMatch": { "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } } });
        let wanted = json!({ "capabilities": wanted });
        let begun = call::call(server.port(), "POST", "/session", &wanted, START_LIMIT);
        let begun = begun.map_err(|error| explained(&error, &server.log()))?;
        let session = format!("/session/{}", begun["sessionId"].as_str().expect("a session has an id"));
        let chromium = begun["capabilities"]["goog:processID"].as_u64().expect("a session names its process");
        Ok(Browser { server, session, chromium })
    }

    /// The process ids of ChromeDriver and Chromium.
    pub fn pids(&self) -> [u64; 2] {
        let driver = self.server.pid().expect("ChromeDriver runs as long as this value");
        [driver.as_raw_nonzero().get().unsigned_abs().into(), self.chromium]
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// Gives the page this size in CSS pixels, also below the least width of a window.
    pub fn resize(&self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.develop("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Asks the page for these colours (`prefers-color-scheme`).
    pub fn prefer(&self, scheme: ColorScheme) {
        let value = match scheme {
            ColorScheme::Light => "light",
            ColorScheme::Dark => "dark",
        };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.develop("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Lets the pages that are opened from now on run no script of their own.
    pub fn forbid_scripts(&self) {
        self.develop("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    }

    /// The value of a JavaScript expression within the page.
    pub fn evaluate(&self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.develop("Runtime.evaluate", &parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Waits until a JavaScript expression is true within the page.
    ///
    /// # Panics
    ///
    /// When that takes more than a minute.
    pub fn wait_until(&self, expression: &str) {
        crate::wait_until(expression, || self.evaluate(&format!("Boolean({expression})")) == json!(true));
    }

    /// Presses keys one after the other, where the focus is.
    pub fn press(&self, keys: &str) {
        let each = keys.chars().flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })));
        let strokes: Vec<_> = each.collect();
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": strokes }] }));
    }

    /// Clicks in the middle of the first element that a CSS selector finds; it must be visible and not covered.
    pub fn click(&self, selector: &str) {
        let found = self.post("/element", &json!({ "using": "css selector", "value": selector }));
        let element = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        let element = element.unwrap_or_else(|| panic!("{selector} is not an element: {found}"));
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// How many pixels the page can be scrolled sideways, and what reaches over its edge.
    pub fn beyond_the_edge(&self) -> (i64, Vec<String>) {
        let width = self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        (width.as_i64().expect("a width is a number"), self.texts(BEYOND_THE_EDGE))
    }

    /// The visible texts whose contrast to what is behind them is too low to read (WCAG AA), each with its colours.
    pub fn low_contrast(&self) -> Vec<String> {
        self.texts(LOW_CONTRAST)
    }

    /// What the page has reported to the console: errors, and what its security policy has blocked.
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({ "type": "browser" }));
        let entries = entries.as_array().into_iter().flatten();
        entries.filter_map(|entry| entry["message"].as_str()).map(str::to_owned).collect()
    }

    fn texts(&self, script: &str) -> Vec<String> {
        let found = self.evaluate(script);
        let found = found.as_array().unwrap_or_else(|| panic!("a list of texts, not {found}"));
        found.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A command of the DevTools protocol.
    fn develop(&self, command: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let answer = call::call(self.server.port(), "POST", &format!("{}{path}", self.session), body, COMMAND_LIMIT);
        answer.unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium ends with its session. If that fails, it ends with ChromeDriver.
        if let Err(error) = call::call(self.server.port(), "DELETE", &self.session, &Value::Null, COMMAND_LIMIT) {
            eprintln!("Chromium was not asked to end: {error}");
        }
    }
}

/// Starts a second time if the first one was not ready in time or ended while it started.
fn start_with<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    match start() {
        Err(error) if error.kind() == io::ErrorKind::TimedOut || error.to_string().contains(NOT_CREATED) => {
            eprintln!("starting Chromium once more: {error}");
            start()
        }
        started => started,
    }
}

/// Why Chromium did not start, with ChromeDriver's log.
fn explained(error: &io::Error, log: &str) -> io::Error {
    let said = match error.kind() {
        io::ErrorKind::TimedOut => format!("starting Chromium took longer than {START_LIMIT:?}\n{log}"),
        _ => format!("starting Chromium: {error}\n{log}"),
    };
    io::Error::new(error.kind(), said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_that_does_not_start_is_started_once_more() {
        let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
        let crashed = || explained(&io::Error::other("session not created: Chrome failed to start"), "a log");
        let missing = || io::Error::other("unknown capability");
        for (errors, expected) in [
            (vec![], Ok(1)),
            (vec![timed_out()], Ok(2)),
            (vec![crashed()], Ok(2)),
            (vec![timed_out(), crashed()], Err(2)),
            (vec![missing()], Err(1)),
        ] {
            let (mut errors, mut starts) = (errors.into_iter(), 0);
            let started = start_with(|| {
                starts += 1;
                errors.next().map_or(Ok(starts), Err)
            });
            assert_eq!(started.map_err(|_| starts), expected);
        }
    }

    #[test]
    fn a_start_that_takes_too_long_is_said_as_that() {
        let error = explained(&io::Error::from(io::ErrorKind::TimedOut), "the log");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "it is tried again");
        assert_eq!(error.to_string(), "starting Chromium took longer than 120s\nthe log");
    }
}
