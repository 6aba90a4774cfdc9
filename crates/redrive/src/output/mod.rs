//! Everything that the commands write to standard output.
//!
//! People get tables and colours (only on a terminal, and not if NO_COLOR is set), programs get the server's JSON.
//! A write can fail (`| head`), so every function says so instead of panicking.

mod layout;
mod style;
mod table;
mod time;

pub(crate) use layout::wrap;
pub(crate) use redrive_core::duration::brief as duration;
pub(crate) use style::{Colour, status_colour};
pub(crate) use table::{Cell, Table, printable};
pub(crate) use time::{moment, moment_cell, now_millis, precise_moment, timestamp, today};

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Standard output, and what it can do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// Whether colours may be used.
    pub(crate) coloured: bool,
    /// Whether a line can be drawn over: a person is watching.
    pub(crate) live: bool,
    /// How many characters fit on a line, if there is a limit.
    pub(crate) width: Option<usize>,
    /// How many lines fit on the screen, if it is one.
    pub(crate) height: Option<usize>,
}

impl Output {
    /// This process's standard output.
    pub(crate) fn standard() -> Self {
        let live = io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Output { coloured: live && !no_colour && !dumb, live: live && !dumb, width: width(live), height: height(live) }
    }

    /// Writes a line; on a terminal over whatever [`Output::overwrite`] left there.
    pub(crate) fn line(&self, text: impl Display) -> io::Result<()> {
        let clear = if self.live { "\r\x1b[2K" } else { "" };
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{clear}{text}")?;
        stdout.flush()
    }

    /// Writes a text in as many lines as it needs, each as long as the terminal shows.
    pub(crate) fn prose(&self, text: &str) -> io::Result<()> {
        wrap(text, self.width.unwrap_or(usize::MAX), false).iter().try_for_each(|line| self.line(line))
    }

    /// Writes text that brings its own line ends.
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Shows a line that the next one replaces; nothing where that cannot be done.
    pub(crate) fn overwrite(&self, text: impl Display) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        write!(stdout, "\r\x1b[2K{text}")?;
        stdout.flush()
    }

    /// Writes a table.
    pub(crate) fn table(&self, table: &Table) -> io::Result<()> {
        self.text(&table.render(self.coloured, self.width))
    }

    /// Writes a JSON document as the server sent it.
    pub(crate) fn json(&self, document: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(document.trim_ascii_end())?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    }

    /// `text` in a colour, where there are colours.
    pub(crate) fn paint(&self, text: &str, colour: Colour) -> String {
        if self.coloured { colour.paint(text) } else { text.to_owned() }
    }
}

/// The columns of the terminal, or what COLUMNS says; a pipe or a file has no limit.
fn width(is_terminal: bool) -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let size = || rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|_| is_terminal);
    given.or_else(|| size().map(|size| usize::from(size.ws_col))).filter(|columns| *columns > 0)
}

/// The lines of the terminal.
fn height(is_terminal: bool) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|_| is_terminal)?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// Whether notices are events of the log, because every line of standard error has to be JSON.
static ARE_NOTICES_EVENTS: AtomicBool = AtomicBool::new(false);

/// The target of notices that are events. They are logged at every level.
pub(crate) const NOTICES: &str = "redrive::notice";

/// Makes notices events of the log from now on.
pub(crate) fn log_notices() {
    ARE_NOTICES_EVENTS.store(true, Ordering::Relaxed);
}

/// Prints an error to standard error, or logs it at its level.
pub(crate) fn error_notice(text: impl Display) {
    if ARE_NOTICES_EVENTS.load(Ordering::Relaxed) {
        tracing::error!(target: NOTICES, "{text}");
    } else {
        notice(format!("error: {text}"));
    }
}

/// Prints a line to standard error, or logs it. Errors of writing are ignored.
pub(crate) fn notice(text: impl Display) {
    if ARE_NOTICES_EVENTS.load(Ordering::Relaxed) {
        tracing::info!(target: NOTICES, "{text}");
    } else {
        // Texts of servers may be in it, and must not reach the terminal as they are.
        let lines: Vec<String> = text.to_string().split('\n').map(printable).collect();
        writeln!(io::stderr().lock(), "{}", lines.join("\n")).ok();
    }
}
