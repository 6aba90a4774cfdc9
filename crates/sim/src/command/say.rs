//! Printing to people, who may stop listening.

use std::fmt;
use std::io::{ErrorKind, Write};

/// Prints a line; whoever closed the other end (`| head`) has seen enough, and the program ends.
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

/// [`line`], with the words of `println!`.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::command::say::line(format_args!($($words)*))
    };
}
pub(super) use say;
