//! The fields and the message of an event as text, with hidden characters escaped as in a Rust string.

use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

use super::hidden::is_hidden;

const MESSAGE: &str = "message";

/// Writes `message name=value …`.
#[derive(Debug, Clone, Copy)]
pub(super) struct EscapedFields;

impl<'w> FormatFields<'w> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut writing = Writing { writer, is_first: true, result: Ok(()) };
        fields.record(&mut writing);
        writing.result
    }
}

/// Fields on their way out, and whether all went well so far.
struct Writing<'w> {
    writer: Writer<'w>,
    is_first: bool,
    result: fmt::Result,
}

impl Writing<'_> {
    fn write(&mut self, field: &Field, value: &dyn Debug) -> fmt::Result {
        if !std::mem::replace(&mut self.is_first, false) {
            self.writer.write_char(' ')?;
        }
        let name = field.name().trim_start_matches("r#");
        match (name, self.writer.has_ansi_escapes()) {
            (MESSAGE, _) => {}
            (name, true) => write!(self.writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m")?,
            (name, false) => write!(self.writer, "{name}=")?,
        }
        write!(Escaping(&mut self.writer), "{value:?}")
    }
}

impl Visit for Writing<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            MESSAGE => self.record_debug(field, &format_args!("{value}")),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.result.is_ok() {
            self.result = self.write(field, value);
        }
    }
}

/// Passes text on, hidden characters as `\n` or `\u{1b}`.
struct Escaping<'a, W>(&'a mut W);

impl<W: Write> Write for Escaping<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, hidden)) = rest.char_indices().find(|(_, c)| is_hidden(*c)) {
            self.0.write_str(&rest[..at])?;
            write!(self.0, "{}", hidden.escape_default())?;
            rest = &rest[at + hidden.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What `log` leaves in a log of text.
    fn logged(coloured: bool, log: impl FnOnce()) -> String {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .without_time()
            .with_target(false)
            .with_ansi(coloured)
            .fmt_fields(EscapedFields)
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
    }

    const EVIL: &str = "a\r\nFAKE\x1b[31m\u{9b}2J\u{7f}\u{202e}\u{2066}\u{2028}\0é";
    const SHOWN: &str = r"a\r\nFAKE\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\u{2066}\u{2028}\u{0}é";

    #[test]
    fn hidden_characters_are_escaped_in_fields_messages_and_spans_at_every_level() {
        macro_rules! check {
            ($($level:ident)*) => {$(
                let line = logged(false, || tracing::$level!(shown = %EVIL, debug = ?EVIL, text = EVIL, "said {EVIL}"));
                assert!(line.ends_with(&format!(" said {SHOWN} shown={SHOWN} debug={0:?} text={0:?}\n", EVIL)), "{line}");
                assert!(!line.trim_end_matches('\n').contains(is_hidden), "{line:?}");
                let line = logged(false, || tracing::$level!(message = EVIL));
                assert!(line.ends_with(&format!(" {SHOWN}\n")), "{line}");
                let line = logged(false, || tracing::span!(tracing::Level::ERROR, "s", of = %EVIL).in_scope(|| tracing::$level!("x")));
                assert!(line.ends_with(&format!(" s{{of={SHOWN}}}: x\n")), "{line}");
            )*};
        }
        check!(error warn info debug trace);
    }

    #[test]
    fn colours_are_the_logs_own() {
        let line = logged(true, || tracing::info!(shown = %EVIL, "said"));
        assert!(line.ends_with(&format!("said \x1b[3mshown\x1b[0m\x1b[2m=\x1b[0m{SHOWN}\n")), "{line:?}");
    }

    #[test]
    fn what_is_harmless_stays_as_it_is() {
        let line = logged(false, || tracing::info!(name = %"naïve 日本 🎉", path = ?"C:\\x", count = 5, "plain"));
        assert_eq!(line, " INFO plain name=naïve 日本 🎉 path=\"C:\\\\x\" count=5\n");
    }
}
