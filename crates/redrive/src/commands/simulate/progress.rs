//! A progress bar on standard error, if that is a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Nothing is shown for what is done sooner.
const PATIENCE: Duration = Duration::from_millis(300);
/// How often the bar is drawn.
const EVERY: Duration = Duration::from_millis(50);
const WIDTH: usize = 40;
/// What fits behind it.
const LONGEST: usize = 30;

/// A bar on standard error.
#[derive(Debug)]
pub(super) struct Bar {
    begun: Instant,
    drawn: Option<Instant>,
    watched: bool,
}

impl Bar {
    pub(super) fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        Bar { begun: Instant::now(), drawn: None, watched: std::io::stderr().is_terminal() && !dumb }
    }

    /// Shows that this part of the whole is done.
    pub(super) fn show(&mut self, done: f64, what: &str) {
        let now = Instant::now();
        let soon = self.drawn.map_or(now - self.begun < PATIENCE, |drawn| now - drawn < EVERY);
        if !self.watched || soon {
            return;
        }
        self.drawn = Some(now);
        let filled = ((done.clamp(0.0, 1.0) * WIDTH as f64) as usize).min(WIDTH);
        let (full, rest) = ("█".repeat(filled), "░".repeat(WIDTH - filled));
        // A line that wraps could not be drawn over.
        let what: String = what.chars().take(LONGEST).collect();
        // Errors of writing are ignored.
        write!(std::io::stderr().lock(), "\r\x1b[2K{full}{rest} {:3.0} % {what}", done * 100.0).ok();
    }
}

/// The bar is gone when it is done.
impl Drop for Bar {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            write!(std::io::stderr().lock(), "\r\x1b[2K").ok();
        }
    }
}
