//! JSON with hidden characters escaped. A writer of JSON must escape C0 only: C1 and what turns the direction of
//! writing would come through, and a log is also looked at on a terminal.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::hidden::is_hidden;

/// Passes whole lines of JSON on.
#[derive(Debug)]
pub(super) struct EscapingWriter<W>(pub(super) W);

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) if text.contains(needs_escape) => self.0.write_all(escaped(text).as_bytes())?,
            _ => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// C0 is escaped already, but for the line's own end.
fn needs_escape(c: char) -> bool {
    c > '\u{7e}' && is_hidden(c)
}

/// Such characters can only stand within strings, where an escape means the same.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if !needs_escape(c) {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            write!(text, "\\u{unit:04x}").unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_mean_the_same() {
        let said = "a\r\n\x1b[31m\u{7f}\u{9b}2J\u{202e}\u{e0041}é";
        let line = serde_json::json!({ "message": said }).to_string() + "\n";
        let mut written = Vec::new();
        EscapingWriter(&mut written).write_all(line.as_bytes()).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(!written.trim_end_matches('\n').contains(is_hidden), "{written:?}");
        assert!(written.ends_with("é\"}\n") && written.contains(r"\u009b2J\u202e\udb40\udc41"), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap()["message"], said);
    }
}
