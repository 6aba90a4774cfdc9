//! Prints to standard output, which may be closed early.

use std::fmt;
use std::io::{ErrorKind, Write};

/// Prints a line. Ends the program if the reader has closed the pipe (`| head`).
pub(super) fn line(text: fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!("error: printing: {error}");
            std::process::exit(2);
        }
    }
}

/// [`line`] with the syntax of `println!`.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::command::say::line(format_args!($($words)*))
    };
}
pub(super) use say;
